//! The GPUs of a policy of schema 1, which names render nodes alone, or none: then the machine's usable GPUs are meant.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use allocation::Render;
use allocation::gpu::{self, Gpu};
use allocation::policy::Policy;
use inventory::PciAddress;
use lease::open;
use rustix::fs::OFlags;

use crate::nodes::{Devices, Node, Place};

/// The most bytes of a KFD node's properties that are read: the kernel writes at most a page.
const LIMIT: u64 = 64 << 10;

/// The GPUs of such a policy, each with its card node, in the order of their indexes.
#[must_use]
pub fn gpus(policy: &Policy, devices: &Devices<'_>) -> Vec<Gpu> {
    match &policy.gpus {
        Some(listed) => listed.iter().map(|gpu| with_card_node(gpu.clone(), devices)).collect(),
        None => usable(devices),
    }
}

/// A render node whose place the kernel does not know is refused later, with a sentence.
fn with_card_node(mut gpu: Gpu, devices: &Devices<'_>) -> Gpu {
    if let Some(place) = place_of(gpu.render, devices) {
        gpu.nodes.splice(..0, card_node(&place, devices));
    }
    gpu
}

fn place_of(render: Render, devices: &Devices<'_>) -> Option<Place> {
    let path = render.path();
    let node = Node::at(Path::new(&path), devices).ok()?;
    devices.place_of(&node, Path::new(&path)).ok()
}

/// A device's folder lists its nodes: `drm/card1`, `drm/renderD128`.
fn card_node(place: &Place, devices: &Devices<'_>) -> Option<gpu::Node> {
    let names = fs::read_dir(devices.sys.join("dev/char").join(&place.folder).join("drm")).ok()?;
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_card = |name: &String| {
        name.strip_prefix("card").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names.find(is_card).map(|name| gpu::Node::at(format!("/dev/dri/{name}")))
}

/// A GPU of KFD's topology whose render node is there and amdgpu's.
struct Found {
    index: u32,
    render: Render,
    place: Place,
    uuid: Option<String>,
    /// Domain, bus and device, which KFD copies into each partition of a card (crates/amdgpu's card.rs).
    location: Option<(u64, u64)>,
}

/// The machine's usable GPUs in KFD's order, by which `rocworker detect` counts.
fn usable(devices: &Devices<'_>) -> Vec<Gpu> {
    let nodes = devices.sys.join("class/kfd/kfd/topology/nodes");
    let entries = fs::read_dir(&nodes).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    // A node that cannot be read may be a GPU: no index is known of those behind it.
    let properties = numbers.iter().map_while(|number| {
        let path = nodes.join(number.to_string()).join("properties");
        let (file, found) = open::regular(&path, OFlags::empty()).ok()?;
        String::from_utf8(open::bytes(&file, &found, LIMIT).ok()?).ok()
    });
    let with_render_node = properties.filter_map(|text| {
        // A processor has no render node.
        property(&text, "drm_render_minor ").filter(|minor| *minor != 0).map(|minor| (minor, text))
    });
    let found =
        (0..).zip(with_render_node).filter_map(|(index, (minor, text))| find(index, minor, &text, devices));
    let mut found: Vec<Found> = found.collect();
    let mut known = BTreeSet::new();
    found.retain(|one| known.insert(one.render));
    let cards: Vec<_> =
        found.iter().filter_map(|one| Some((one.location?, PciAddress::parse(&one.place.parent)?))).collect();
    found.iter().map(|one| gpu(one, &cards, devices)).collect()
}

fn property(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn find(index: u32, minor: u64, properties: &str, devices: &Devices<'_>) -> Option<Found> {
    let render = Render::parse(&format!("renderD{minor}"))?;
    let place = place_of(render, devices)?;
    if !place.is_partition() && PciAddress::parse(&place.parent).is_none() {
        return None;
    }
    devices.check_driver(&place).ok()?;
    let id = property(properties, "unique_id ").filter(|id| *id != 0);
    let location = property(properties, "location_id ").map(|location| (location & 0xffff) >> 3);
    let domain = property(properties, "domain ").unwrap_or_default();
    Some(Found {
        index,
        render,
        place,
        uuid: id.map(|id| format!("GPU-{id:016x}")),
        location: location.map(|location| (domain, location)),
    })
}

/// The kernel names no card for a further partition: it is the card whose own node is at its location.
fn gpu(found: &Found, cards: &[((u64, u64), PciAddress)], devices: &Devices<'_>) -> Gpu {
    let own = PciAddress::parse(&found.place.parent);
    let at_its_location = || cards.iter().find(|(location, _)| Some(*location) == found.location);
    let card = own.or_else(|| at_its_location().map(|(_, card)| *card));
    Gpu {
        index: found.index,
        names: found.uuid.iter().cloned().chain(card.map(|card| card.to_string())).collect(),
        card,
        render: found.render,
        nodes: card_node(&found.place, devices)
            .into_iter()
            .chain([gpu::Node::at(found.render.path())])
            .collect(),
        ..Gpu::default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Three GPUs in KFD's order: a processor's node is first; the second card is NVIDIA's. The nodes, which only root can
    /// make, are links to none here, so that each place is looked for by the numbers of nodes of this machine.
    #[test]
    fn a_policy_without_gpus_means_those_of_kfds_topology_that_are_amdgpus() {
        let machine = tempfile::tempdir().unwrap();
        let (sys, dev) = (machine.path().join("sys"), machine.path().join("dev"));
        let chars = sys.join("dev/char");
        fs::create_dir_all(dev.join("dri")).unwrap();
        fs::create_dir_all(&chars).unwrap();
        for (minor, name, device, driver) in [
            (3, "renderD129", "devices/pci0000:00/0000:64:00.0", "amdgpu"),
            (5, "renderD128", "devices/pci0000:00/0000:65:00.0", "nvidia"),
            (7, "renderD130", "devices/platform/amdgpu_xcp.1", "amdgpu"),
        ] {
            let folder = chars.join(device);
            let card = name.replace("renderD1", "card");
            fs::create_dir_all(folder.join("drm").join(name)).unwrap();
            fs::create_dir_all(folder.join("drm").join(card)).unwrap();
            symlink(format!("../../drivers/{driver}"), folder.join("driver")).unwrap();
            symlink(format!("{device}/drm/{name}"), chars.join(format!("1:{minor}"))).unwrap();
            let node = dev.join("dri").join(name);
            let made =
                std::process::Command::new("mknod").arg(&node).args(["c", "1", &minor.to_string()]).status();
            assert!(made.unwrap().success(), "this test needs root");
        }
        for (number, minor, id) in
            [("0", 0, 0), ("1", 129, 0xab), ("2", 128, 0), ("10", 130, 0xab), ("3", 999, 0)]
        {
            // Bus 0x64; the partition in the lowest bits, as older kernels have it.
            let location = 0x6400 + u32::from(number == "10");
            let folder = sys.join("class/kfd/kfd/topology/nodes").join(number);
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("properties"),
                format!("location_id {location}\ndomain 0\nunique_id {id}\ndrm_render_minor {minor}\n"),
            )
            .unwrap();
        }
        // Two KFD nodes of one render node are one GPU.
        fs::create_dir_all(sys.join("class/kfd/kfd/topology/nodes/11")).unwrap();
        let node_of = |number: &str| sys.join("class/kfd/kfd/topology/nodes").join(number).join("properties");
        fs::copy(node_of("10"), node_of("11")).unwrap();
        let devices = Devices::at(&sys, &dev);
        let policy = Policy::parse(r#"{"schema_version":1,"requests":"all"}"#).unwrap();
        let found: Vec<String> = gpus(&policy, &devices)
            .iter()
            .map(|gpu| {
                let nodes: Vec<&str> = gpu.nodes.iter().map(|node| node.path.as_str()).collect();
                format!("{gpu} {} {}", gpu.names.join(","), nodes.join(","))
            })
            .collect();
        assert_eq!(
            found,
            [
                "0 (0000:64:00.0, renderD129) GPU-00000000000000ab,0000:64:00.0 /dev/dri/card29,/dev/dri/renderD129",
                "3 (0000:64:00.0, renderD130) GPU-00000000000000ab,0000:64:00.0 /dev/dri/card30,/dev/dri/renderD130",
            ]
        );
        fs::remove_file(node_of("2")).unwrap();
        let before: Vec<u32> = gpus(&policy, &devices).iter().map(|gpu| gpu.index).collect();
        assert_eq!(before, [0], "no index is known of a GPU behind a node that cannot be read");
        let listed = r#"{"schema_version":1,"gpus":[{"index":0,"pci":"0000:64:00.0","render":"renderD129"},
            {"index":1,"pci":"0000:66:00.0","render":"renderD140"}]}"#;
        let listed = gpus(&Policy::parse(listed).unwrap(), &devices);
        let nodes: Vec<usize> = listed.iter().map(|gpu| gpu.nodes.len()).collect();
        assert_eq!(nodes, [2, 1], "{listed:?}");
        assert_eq!(listed[0].nodes[0].path, "/dev/dri/card29");
    }
}
