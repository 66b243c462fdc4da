//! The groups that own GPU nodes, by the names that this machine gives them.

use amdgpu::DeviceNode;

use super::machine::{Role, Subject};
use super::nodes;
use crate::check::{About, Check};
use crate::host::UNMAPPED_ID;

const NAME: &str = "groups";

/// Whether a node's group is one of the host's that this container does not map.
pub(crate) fn is_unmapped(subject: &Subject<'_>, gid: u32) -> bool {
    subject.in_container() && gid == UNMAPPED_ID
}

pub(crate) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let groups = &subject.groups;
    subject.needs_amd(About::all(NAME), "there is no AMD GPU whose nodes they would own")?;
    subject.needs_kfd(About::all(NAME))?;
    if let Some(reason) = groups.unknown() {
        return Err(About::all(NAME).warning(
            format!("the names of groups are not known: {reason}"),
            "install base-passwd, or whatever made this machine's /etc/group",
        ));
    }
    let then = [("render", "rocworker apply"), ("video", "reboot: udev gives it the card nodes")];
    let expected = then.map(|(name, then)| {
        let about = About::one(NAME, name);
        match groups.gid(name) {
            Some(gid) => about.ok(format!("gid {gid}")),
            None => about.warning(
                "not in /etc/group: no user can get GPU nodes by this name",
                format!("groupadd --system {name}, then {then}"),
            ),
        }
    });
    let nameless = subject.nodes().into_iter().filter_map(|(role, node)| nameless(subject, role, node));
    Ok(expected.into_iter().chain(nameless).collect())
}

fn nameless(subject: &Subject<'_>, role: Role, node: &DeviceNode) -> Option<Check> {
    let meta = node.state.as_ref().ok()?;
    let gid = meta.gid;
    if subject.groups.name(gid).is_some() || is_unmapped(subject, gid) {
        return None;
    }
    let remedy = match (subject.in_container(), subject.groups.gid("render")) {
        (true, Some(render)) => {
            format!(
                "pass the node in with gid={render}, which is render here, or name the group: groupadd --gid {gid} …"
            )
        }
        (false, Some(_)) => nodes::repair(subject, role, node, meta),
        (_, None) => format!("groupadd --system --gid {gid} render"),
    };
    let about = About::one(NAME, node.path.display().to_string());
    Some(about.warning(format!("its group {gid} has no name in /etc/group"), remedy))
}
