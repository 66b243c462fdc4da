use std::collections::{BTreeMap, BTreeSet};

use allocation::cdi::{self, DeviceNode};
use printable::printable;
use root::{Kind, Root};

use super::spec::{KIND, Spec, Wanted};

/// What is wrong with the text of a spec, in sentences: by CDI's grammar, and by the machine as it is now. `wanted`: what
/// rocworker would write into the spec now.
#[must_use]
pub fn check(root: &Root, text: &str, wanted: &Wanted) -> Vec<String> {
    let spec = match cdi::Spec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return vec![error.to_string()],
    };
    let mut findings: Vec<String> = spec.faults().iter().map(ToString::to_string).collect();
    if spec.kind != KIND {
        findings.push(format!("its kind is {:?}, and AMD's GPUs are {KIND}", &*spec.kind));
    }
    findings.extend(untrue_nodes(root, &spec));
    findings.extend(match wanted {
        Wanted::Spec(wanted) => differences(wanted, &spec),
        Wanted::Off(why) => vec![format!("it offers GPUs, and {why}: remove it")],
        Wanted::NoGpu => {
            vec!["it offers GPUs, and none of this machine's can be given to a container: see rocworker detect".to_owned()]
        }
    });
    findings.iter().map(|finding| printable(finding)).collect()
}

/// Nodes that are not there, are no devices, or have other numbers, another group or another mode.
fn untrue_nodes(root: &Root, spec: &cdi::Spec) -> Vec<String> {
    let all = spec.devices.iter().map(|device| &device.edits).chain([&spec.edits]);
    // Several names may have one node.
    let findings =
        all.flat_map(|edits| &edits.device_nodes).filter_map(|node| untrue(root, node.host(), node));
    findings.collect::<BTreeSet<String>>().into_iter().collect()
}

fn untrue(root: &Root, path: &str, node: &DeviceNode) -> Option<String> {
    let shown = root.shown(path);
    let shown = shown.display();
    let meta = match root.stat(path) {
        Ok(meta) => meta,
        Err(error) if error.is_not_found() => {
            return Some(format!("it names {shown}, which is not there: stale"));
        }
        Err(error) => return Some(error.to_string()),
    };
    let Kind::Character { major, minor } = meta.kind else {
        return Some(format!("it names {shown}, which is {}, not a device", meta.kind.described()));
    };
    for (what, given, is) in [("major", node.major, major), ("minor", node.minor, minor)] {
        if let Some(given) = given.filter(|given| u64::try_from(*given) != Ok(is)) {
            return Some(format!("it says that {shown} has {what} {given}, and it has {is}: stale"));
        }
    }
    if let Some(gid) = node.gid.filter(|gid| *gid != meta.gid) {
        return Some(format!("it gives {shown} the group {gid}, and it has {}: stale", meta.gid));
    }
    match node.file_mode {
        Some(mode) if mode & 0o777 != meta.mode & 0o777 => Some(format!(
            "it gives {shown} the mode {:04o}, and it has {:04o}",
            mode & 0o777,
            meta.mode & 0o777
        )),
        _ => None,
    }
}

/// Names that mean other nodes than they should, and GPUs that no name leads to. A spec of amd-ctk's, which has
/// /dev/kfd in every device and fewer names, is as true as rocworker's.
fn differences(wanted: &Spec, found: &cdi::Spec) -> Vec<String> {
    let common: BTreeSet<&str> = wanted.common.iter().map(|node| node.path.as_str()).collect();
    let should: BTreeMap<&str, BTreeSet<&str>> = wanted
        .devices
        .iter()
        .map(|device| {
            let own = device.nodes.iter().map(|node| node.path.as_str());
            (device.name.as_str(), own.chain(common.iter().copied()).collect())
        })
        .collect();
    let everywhere: Vec<&str> = found.edits.device_nodes.iter().map(DeviceNode::host).collect();
    let mut differences = Vec::new();
    let mut offered = BTreeSet::new();
    for device in &found.devices {
        let own = device.edits.device_nodes.iter().map(DeviceNode::host);
        let is: BTreeSet<&str> = own.chain(everywhere.iter().copied()).collect();
        match should.get(&*device.name) {
            None => differences
                .push(format!("it names the device {}, which is none of this machine's: stale", device.name)),
            Some(should) if *should != is => {
                differences
                    .push(format!("its device {} has other nodes than that GPU has now: stale", device.name));
            }
            Some(_) => {}
        }
        offered.extend(is);
    }
    let all: BTreeSet<&str> = should.values().flatten().copied().collect();
    let missing: Vec<&str> = all.difference(&offered).copied().collect();
    if !missing.is_empty() {
        differences.push(format!("none of its devices has {}: stale", missing.join(", ")));
    }
    differences
}
