//! CDI specs: read, judged, and given to a container.

use std::collections::BTreeSet;

use allocation::{
    Render,
    bundle::{Bundle, Injection, Node, ProcessEdits},
    cdi::{Device, DeviceNode, Edits, Grant, KIND, Outline, Spec},
    policy::Policy,
    request::Request,
    selection::Inventory,
};
use serde_json::Value;

use crate::{
    assert_fit_for_a_log,
    json::{as_go_decodes, is_shallow},
    oracle::cdi as oracle,
};

/// The text of a spec.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let spec = Spec::parse(text);
    let outline = Outline::parse(text);
    for error in [spec.as_ref().err(), outline.as_ref().err()].into_iter().flatten() {
        assert_fit_for_a_log(&error.to_string());
    }
    says_what_stands_there(spec.as_ref().ok(), outline.as_ref().ok(), text);
    let (Ok(spec), Ok(outline)) = (spec, outline) else { return };
    assert_eq!(outline.only(0..outline.devices().count()).ok().as_ref(), Some(&spec), "another spec");
    match outline.fault() {
        Some(fault) if fault.at == "kind" => assert_ne!(spec.kind, KIND, "the outline refuses AMD's kind"),
        Some(_) => assert!(!spec.faults().is_empty() || is_misspelt(&spec), "the outline finds what is none"),
        None => assert_eq!(spec.kind, KIND, "the outline takes another vendor's kind"),
    }
    for fault in spec.faults() {
        assert!(!fault.to_string().chars().any(char::is_control), "a control character in {fault}");
    }
    let minimum = numbers(spec.minimum_version());
    let sound = spec.faults().is_empty();
    if sound {
        assert!(numbers(&spec.version) >= minimum, "{} is too low", spec.version);
        keeps_the_rules(&spec);
    }
    for place in 0..spec.devices.len().min(8) {
        if let Ok(grant) = spec.grant([place]) {
            goes_into_a_bundle(&grant, sound);
        }
    }
    if let Ok(grant) = spec.grant(0..spec.devices.len()) {
        goes_into_a_bundle(&grant, sound);
    }
    assert!(spec.grant([spec.devices.len()]).is_err());
    assert_eq!(spec.grant([]), Ok(Grant::default()));
    can_be_chosen_from(&spec, &outline);
}

/// Whether a device has a render node by another path than the kernel's.
fn is_misspelt(spec: &Spec<'_>) -> bool {
    let mut paths = spec.devices.iter().flat_map(|device| &device.edits.device_nodes).map(DeviceNode::host);
    paths.any(|path| Render::parse(path).is_none() && path.contains("renderD"))
}

/// What is read is what serde_json reads, no more and no less; of an outline, device by device.
fn says_what_stands_there(spec: Option<&Spec<'_>>, outline: Option<&Outline<'_>>, text: &str) {
    let as_read = as_go_decodes(text);
    let top = oracle::top(&as_read);
    let expected = top.as_ref().and_then(|top| top.only(0..top.devices.len()));
    let expected_outline = top.as_ref().and_then(oracle::Top::outline);
    if is_shallow(text) {
        assert_eq!(
            (spec.is_some(), outline.is_some()),
            (expected.is_some(), expected_outline.is_some()),
            "{text}"
        );
    }
    if spec.is_some() {
        assert_eq!(spec, expected.as_ref(), "{text}");
    }
    let Some(outline) = outline else { return assert!(spec.is_none(), "no outline of a spec: {text}") };
    let expected_outline = expected_outline.expect("it was read");
    let top = top.expect("it was read");
    let renders =
        |hosts: Vec<String>| hosts.iter().filter_map(|host| Render::parse(host)).collect::<Vec<_>>();
    let expected = expected_outline.into_iter().map(|(name, hosts)| (name, renders(hosts)));
    let found = outline.devices().map(|(name, renders)| (name.to_owned(), renders.to_vec()));
    assert!(found.eq(expected), "{text}");
    assert_eq!(outline.only([]).ok(), top.only(0..0), "{text}");
    for place in 0..top.devices.len().min(8) {
        assert_eq!(outline.only([place]).ok(), top.only(place..place + 1), "devices[{place}] of {text}");
    }
}

/// A version by which it compares.
fn numbers(version: &str) -> Vec<u32> {
    version.trim_start_matches('v').split('.').map(|number| number.parse().expect("a number")).collect()
}

/// What a consumer relies on in a spec without a fault.
fn keeps_the_rules(spec: &Spec<'_>) {
    let names: BTreeSet<&str> = spec.devices.iter().map(|device| &*device.name).collect();
    assert_eq!(names.len(), spec.devices.len(), "a name stands twice");
    assert!(!names.is_empty());
    for Device { name, edits, .. } in &spec.devices {
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)), "{name}");
        assert!(!edits.is_empty());
    }
    let all = spec.devices.iter().map(|device| &device.edits).chain([&spec.edits]);
    for Edits { device_nodes, env, mounts, hooks, .. } in all {
        assert!(env.iter().all(|entry| entry.contains('=') && !entry.starts_with('=')));
        assert!(device_nodes.iter().all(|node| node.path.starts_with('/') && node.host().starts_with('/')));
        assert!(device_nodes.iter().all(|node| node.access().chars().all(|c| "rwm".contains(c))));
        assert!(mounts.iter().all(|mount| mount.container_path.starts_with('/')));
        assert!(hooks.iter().all(|hook| hook.path.starts_with('/')));
    }
    let (vendor, class) = spec.kind.split_once('/').expect("vendor/class");
    assert!(vendor.starts_with(|c: char| c.is_ascii_alphabetic()) && !class.contains('/'));
}

/// What the devices of a sound spec are given as can be injected, and once is enough.
fn goes_into_a_bundle(grant: &Grant<'_>, sound: bool) {
    let paths: BTreeSet<&str> = grant.nodes.iter().map(|node| &*node.path).collect();
    assert_eq!(paths.len(), grant.nodes.len(), "a path stands twice");
    let hosts: Vec<&str> = grant.nodes.iter().map(|node| node.host()).collect();
    let minor = |host: &str| hosts.iter().position(|other| *other == host).unwrap_or_default();
    let node = |node: &'_ &allocation::cdi::DeviceNode<'_>| minor(node.host());
    let nodes = grant.nodes.iter().map(|given| Node {
        path: &given.path,
        major: 226,
        minor: u32::try_from(node(given)).expect("few"),
        file_mode: given.file_mode.unwrap_or(0o660),
        uid: given.uid,
        gid: given.gid,
        access: given.access(),
    });
    let injection = Injection {
        nodes: nodes.collect(),
        process: ProcessEdits {
            gids: grant.additional_gids.clone(),
            env: grant.env.clone(),
            ..ProcessEdits::default()
        },
        mounts: grant.mounts.clone(),
        hooks: grant.hooks.clone(),
        ..Injection::default()
    };
    let inject = |text: &str| Bundle::parse(text).expect("a bundle").inject(&injection);
    match inject(r#"{"process":{}}"#) {
        Ok(None) => {}
        Ok(Some(after)) => {
            serde_json::from_str::<Value>(&after).expect("JSON");
            assert_eq!(inject(&after), Ok(None), "a second injection into\n{after}");
        }
        // Two spellings of one path, or a hook that no container has: the first passes for sound, each path alone.
        Err(error) => {
            assert!(
                error.to_string().ends_with(" at once") || !sound,
                "a sound spec that cannot be given: {error}"
            );
        }
    }
}

fn can_be_chosen_from(spec: &Spec<'_>, outline: &Outline<'_>) {
    let policy = Policy::parse(r#"{"schema_version":1,"requests":"all"}"#).expect("a policy");
    let inventory = Inventory::new(&policy, outline);
    let (there, gone) = inventory.all_that_is_there();
    assert_eq!(gone.is_empty(), !there.is_empty(), "without a list nothing can be gone");
    for chosen in &there {
        assert_eq!(spec.devices[chosen.device].name, chosen.gpu.index.to_string());
        for name in [chosen.gpu.index.to_string(), chosen.gpu.render.to_string()] {
            let request = Request::from_visible_devices(&name).expect("a GPU's own name");
            let named = inventory.select(&request, |_| 0).expect("it is there");
            assert!(named.iter().any(|named| named.gpu == chosen.gpu), "{name}");
        }
    }
    let all = inventory.select(&Request::All, |_| 0);
    assert_eq!(all.map_or(0, |all| all.len()), there.len());
}
