//! Captured machines, laid out as a kernel would.
//!
//! The files beneath a captured `cardN`, `cardN/device` and `kfd` are copied byte for byte, padded
//! ones too. **Synthetic** is all that no archive has (see tests/captures/README.md): the PCI and
//! platform folders around them, render minors where KFD names none (128 first), `/dev`,
//! `/proc/modules`, and the parent bridge at 0000:00:01.1 (its real place is not recorded).
//! Symbolic links in an archive are left out: they are relative to a folder that it does not have.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use layout::{Entry, Gpu, Kfd, Machine, Module, Tree, XcpNames};

/// An archive's name, and its machine.
type Captured = (&'static str, fn() -> Machine);

/// Every captured machine with its archive's name; each function lays one out alone.
pub const ALL: [Captured; 9] = [
    ("phoenix", phoenix),
    ("vangogh", vangogh),
    ("rx7800xt", rx7800xt),
    ("rx6900xt", rx6900xt),
    ("rx9070", rx9070),
    ("vega-drm-card0", vega),
    ("rtx4080", || rtx4080(1, 128)),
    ("a380-i915", a380),
    ("mi300x-cpx-kfd", || mi300x(XcpNames::Dot)),
];

/// The bridge above every card: invented, since the captures do not have what is above a card.
const BRIDGE: &str = "0000:00:01.1";

/// Radeon 780M, an APU with a whole KFD tree: card1, renderD128.
pub fn phoenix() -> Machine {
    with_kfd("phoenix", radeon("phoenix", "card1", 1, 128))
}

/// A Steam Deck's APU: card0, KFD's node 1 without node 0.
pub fn vangogh() -> Machine {
    with_kfd("vangogh", radeon("vangogh", "card0", 0, 128))
}

/// Radeon RX 7800 XT: card1, no KFD captured.
pub fn rx7800xt() -> Machine {
    radeon("rx7800xt", "card1", 1, 128)
}

/// Radeon RX 6900 XT: card0, no KFD captured, every file padded with NUL to 4096 bytes.
pub fn rx6900xt() -> Machine {
    radeon("rx6900xt", "card0", 0, 128)
}

/// Radeon RX 9070: card1, no KFD captured.
pub fn rx9070() -> Machine {
    radeon("rx9070", "card1", 1, 128)
}

/// A Vega 10: card0, no KFD captured.
pub fn vega() -> Machine {
    let archive = unpack("vega-drm-card0");
    card(&archive, "card0", 0, 128).module(Module::new("amdgpu"))
}

/// GeForce RTX 4080, four files, as `card` and `render`: the captured machine's card1 would
/// collide with phoenix'.
pub fn rtx4080(card_minor: u32, render: u32) -> Machine {
    let archive = unpack("rtx4080").beneath("rtx4080");
    card(&archive, "card1", card_minor, render).module(Module::new("nvidia"))
}

/// Intel Arc A380: card1 with its whole DRM folder.
pub fn a380() -> Machine {
    let archive = unpack("a380-i915").beneath("a380-i915");
    card(&archive, "card1", 1, 128).module(Module::new("i915"))
}

/// The machine of the verification report: phoenix (card1, renderD128) beside an NVIDIA card
/// (card0, renderD129).
pub fn phoenix_beside_rtx4080() -> Machine {
    phoenix().beside(rtx4080(0, 129))
}

/// The places of the eight MI300X of mi300x-cpx-kfd, worked out by hand from the first node of each
/// (`nodes/N/properties`; `domain` is 0 throughout): KFD node, `location_id`, that number in hexadecimal as
/// bus and device, `drm_render_minor`, and how many nodes with that bus follow one another. The last card's
/// eighth partition is missing from the capture.
const MI300X: [(u32, u32, &str, u32, u32); 8] = [
    // node  location_id  address       render  partitions
    (2, 1280, "0000:05:00.0", 128, 8),   // 0x0500
    (10, 9984, "0000:27:00.0", 136, 8),  // 0x2700
    (18, 18176, "0000:47:00.0", 144, 8), // 0x4700
    (26, 25856, "0000:65:00.0", 152, 8), // 0x6500
    (34, 34048, "0000:85:00.0", 160, 8), // 0x8500
    (42, 42752, "0000:a7:00.0", 168, 8), // 0xa700
    (50, 50944, "0000:c7:00.0", 176, 8), // 0xc700
    (58, 58624, "0000:e5:00.0", 184, 7), // 0xe500
];

/// Eight MI300X in CPX: the captured KFD topology, with synthetic PCI functions where it says that
/// they are, their further partitions on synthetic platform devices. The card minors (from 0) and
/// KFD's major are synthetic. There is no partition file, no memory size and no uuid in sysfs, as
/// none was captured.
pub fn mi300x(names: XcpNames) -> Machine {
    let mut machine =
        Machine::new().module(Module::new("amdgpu")).xcp_names(names).kfd(Kfd::new(511)).remove(TOPOLOGY);
    for (_, _, address, render, partitions) in MI300X {
        let gpu = Gpu::amd(address, 0x74a1).class(0x12_0000).card(render - 128).render(render);
        machine = machine
            .gpu((1..partitions).fold(gpu, |gpu, nth| gpu.partition(render - 128 + nth, render + nth)));
    }
    machine.overlay(TOPOLOGY, unpack("mi300x-cpx-kfd").beneath("topology"))
}

const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

fn radeon(name: &str, folder: &str, minor: u32, render: u32) -> Machine {
    card(&unpack(name).beneath(name), folder, minor, render).module(Module::new("amdgpu"))
}

fn with_kfd(name: &str, machine: Machine) -> Machine {
    let captured = unpack(name).beneath(name).beneath("kfd");
    let major = text(&captured, "dev").split(':').next().unwrap().parse().unwrap();
    machine.kfd(Kfd::new(major)).remove(TOPOLOGY).overlay("/sys/class/kfd/kfd", captured)
}

/// A card whose identity is what its captured `device/uevent` says.
fn card(archive: &Tree, folder: &str, minor: u32, render: u32) -> Machine {
    let device = archive.beneath(folder).beneath("device");
    let mut drm = archive.beneath(folder);
    drm.remove("device");
    let uevent = text(&device, "uevent");
    let field = |key: &str| {
        let value = uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("{key} is not in the captured uevent: {uevent}"))
    };
    let ids = |key: &str| {
        let (vendor, device) = field(key).split_once(':').unwrap();
        (u16::from_str_radix(vendor, 16).unwrap(), u16::from_str_radix(device, 16).unwrap())
    };
    let ((vendor, id), (subsystem_vendor, subsystem)) = (ids("PCI_ID"), ids("PCI_SUBSYS_ID"));
    let gpu = Gpu::new(field("PCI_SLOT_NAME"), vendor, id)
        .behind(BRIDGE)
        .subsystem(subsystem_vendor, subsystem)
        .class(u32::from_str_radix(field("PCI_CLASS"), 16).unwrap())
        .driver(field("DRIVER"))
        .card(minor)
        .render(render);
    let card = format!("/sys/class/drm/card{minor}");
    Machine::new().gpu(gpu).overlay(&format!("{card}/device"), device).overlay(&card, drm)
}

/// A captured text without the NUL bytes that pad it.
pub fn text(tree: &Tree, path: &str) -> String {
    match tree.get(path) {
        Some(Entry::File(bytes)) => {
            String::from_utf8(bytes.clone()).unwrap().trim_end_matches('\0').to_owned()
        }
        other => panic!("{path} was not captured as a file but as {other:?}"),
    }
}

/// The folder of archives, licences and their README.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../captures"))
}

/// The files of an archive by their path in it.
pub fn unpack(name: &str) -> Tree {
    let path = folder().join(format!("{name}.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut tree = Tree::new();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().unwrap() {
        let mut entry = entry.unwrap();
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        tree.put(&path, bytes);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::{Entry, MI300X, XcpNames, mi300x, phoenix_beside_rtx4080, rx6900xt, text, unpack};

    #[test]
    fn the_table_of_mi300x_agrees_with_the_captured_properties() {
        let topology = unpack("mi300x-cpx-kfd").beneath("topology");
        for (first, location_id, address, render, partitions) in MI300X {
            let bus = u32::from_str_radix(address.get(5..7).unwrap(), 16).unwrap();
            assert_eq!(bus << 8, location_id, "{address}");
            for nth in 0..partitions {
                let properties = text(&topology, &format!("nodes/{}/properties", first + nth));
                for line in [
                    format!("location_id {}", location_id + nth),
                    format!("drm_render_minor {}", render + nth),
                ] {
                    assert!(properties.lines().any(|have| have == line), "node {}: {line}", first + nth);
                }
            }
        }
        let nodes = topology.iter().filter(|(path, _)| path.split('/').count() == 3).count();
        assert_eq!(nodes, 2 + 63, "two CPU nodes and 63 GPU nodes");
    }

    #[test]
    fn captured_files_are_copied_byte_for_byte() {
        let captured = unpack("rx6900xt");
        let tree = rx6900xt().tree().unwrap();
        let folder = "sys/devices/pci0000:00/0000:00:01.1/0000:0c:00.0";
        for (path, entry) in captured.beneath("rx6900xt/card0/device").iter() {
            assert_eq!(tree.get(&format!("{folder}/{path}")), Some(entry), "{path}");
        }
        let Some(Entry::File(uevent)) = tree.get(&format!("{folder}/uevent")) else { panic!("no uevent") };
        assert_eq!(uevent.len(), 4096);
    }

    #[test]
    fn two_captured_machines_stand_side_by_side() {
        let tree = phoenix_beside_rtx4080().tree().unwrap();
        for path in [
            "sys/bus/pci/drivers/amdgpu/0000:64:00.0",
            "sys/bus/pci/drivers/nvidia/0000:09:00.0",
            "sys/class/drm/card0",
            "sys/class/drm/card1",
            "sys/devices/virtual/kfd/kfd/topology/nodes/1/caches/26/properties",
            "dev/kfd",
        ] {
            assert!(tree.get(path).is_some(), "{path} is missing");
        }
    }

    #[test]
    fn mi300x_has_63_render_nodes_in_either_spelling() {
        for names in [XcpNames::Dot, XcpNames::Underscore] {
            let tree = mi300x(names).tree().unwrap();
            assert_eq!(
                tree.beneath("dev/dri").iter().filter(|(name, _)| name.starts_with("renderD")).count(),
                63
            );
        }
    }
}
