//! CDI specs: what is wrong with them, and which version they need.

use std::collections::BTreeSet;

use allocation::cdi::{Device, Edits, Spec};

use crate::assert_fit_for_a_log;

/// The text of a spec.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut spec = match Spec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return assert_fit_for_a_log(&error.to_string()),
    };
    let faults = spec.faults();
    for fault in &faults {
        assert!(!fault.to_string().chars().any(char::is_control), "a control character in {fault}");
    }
    let minimum = spec.minimum_version();
    if faults.is_empty() {
        assert!(numbers(&spec.version) >= numbers(minimum), "{} is too low", spec.version);
        keeps_the_rules(&spec);
    }
    spec.version = minimum.to_owned();
    let others = faults.into_iter().filter(|fault| fault.at != "cdiVersion");
    assert!(others.eq(spec.faults()), "its own version is wrong for {text}");
}

/// A version by which it compares.
fn numbers(version: &str) -> Vec<u32> {
    version.trim_start_matches('v').split('.').map(|number| number.parse().expect("a number")).collect()
}

/// What a consumer relies on in a spec without a fault.
fn keeps_the_rules(spec: &Spec) {
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
        let mut permissions = device_nodes.iter().filter_map(|node| node.permissions.as_deref());
        assert!(permissions.all(|set| set == "none" || set.chars().all(|c| "rwm".contains(c))));
        assert!(mounts.iter().all(|mount| mount.container_path.starts_with('/')));
        assert!(hooks.iter().all(|hook| hook.path.starts_with('/')));
    }
    let (vendor, class) = spec.kind.split_once('/').expect("vendor/class");
    assert!(vendor.starts_with(|c: char| c.is_ascii_alphabetic()) && !class.contains('/'));
}
