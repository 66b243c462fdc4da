//! Whether root of a container in a user namespace could open the nodes.
//!
//! There the runtime bind-mounts the host's node, so its own group and mode decide, and container root
//! gets no special access: only `others` or an additional gid lets it in (seen with runc 1.1.5 and the mapping
//! 0 → 65534, 1.. identity, which is Concourse's: a node of group 0 is out of reach).

use check::{About, Check};
use inventory::Device;
use inventory::DeviceNode;

use super::machine::{Role, Subject};
use super::missing_group::is_unmapped;
use super::nodes;

const NAME: &str = "user_namespace";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    subject.needs_kfd(About::all(NAME))?;
    // A node that is not there is reported among the nodes.
    let there =
        subject.nodes().into_iter().filter_map(|(role, node)| Some((role, node, node.state.as_ref().ok()?)));
    let checks: Vec<Check> = there
        .map(|(role, node, device)| {
            let about = About::one(NAME, node.path.display().to_string());
            examine(about, subject, role, node, device)
        })
        .collect();
    if checks.is_empty() {
        return Err(About::all(NAME).skipped("there is no node that a container could open"));
    }
    Ok(checks)
}

fn examine(about: About, subject: &Subject<'_>, role: Role, node: &DeviceNode, device: &Device) -> Check {
    match way_in(subject, device) {
        Ok(way) => about.ok(way),
        Err(why_not) => {
            let evidence = format!("root of a container in a user namespace cannot open it: {why_not}");
            role.unusable(about, evidence, nodes::repair(subject, role, node, device))
        }
    }
}

/// The right by which a container opens the node, or which right is missing.
fn way_in(subject: &Subject<'_>, device: &Device) -> Result<String, &'static str> {
    if device.mode & 0o006 == 0o006 {
        return Ok("anybody may open it".to_owned());
    }
    if device.gid == 0 {
        return Err("its group is root (0), which no additional gid of a container reaches");
    }
    if is_unmapped(subject, device.gid) {
        return Err("its group is not mapped into this container, so no container inside can be given it");
    }
    if device.mode & 0o060 != 0o060 {
        return Err("its group may not read and write it");
    }
    Ok(format!("opens with {} as an additional group", subject.groups.described(device.gid)))
}
