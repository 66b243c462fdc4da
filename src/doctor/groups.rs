//! The groups that own GPU nodes, by the names that this machine gives them.

use amdgpu::DeviceNode;

use super::machine::Subject;
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
    if let Some(reason) = groups.unknown() {
        return Err(About::all(NAME).warning(
            format!("the names of groups are not known: {reason}"),
            "install base-passwd, or whatever made this machine's /etc/group",
        ));
    }
    let expected = ["render", "video"].map(|name| {
        let about = About::one(NAME, name);
        match groups.gid(name) {
            Some(gid) => about.ok(format!("gid {gid}")),
            None => about.warning(
                "not in /etc/group: no user can get GPU nodes by this name",
                format!("groupadd --system {name}, and udevadm trigger where udev runs"),
            ),
        }
    });
    let nameless = subject.nodes().into_iter().filter_map(|(_, node)| nameless(subject, node));
    Ok(expected.into_iter().chain(nameless).collect())
}

fn nameless(subject: &Subject<'_>, node: &DeviceNode) -> Option<Check> {
    let gid = node.state.as_ref().ok()?.gid;
    if subject.groups.name(gid).is_some() || is_unmapped(subject, gid) {
        return None;
    }
    let remedy = match (subject.in_container(), subject.groups.gid("render")) {
        (true, Some(render)) => {
            format!(
                "pass the node in with gid={render}, which is render here, or name the group: groupadd --gid {gid} …"
            )
        }
        _ => {
            format!("groupadd --system --gid {gid} render, or let udev give the node a group that has a name")
        }
    };
    let about = About::one(NAME, node.path.display().to_string());
    Some(about.warning(format!("its group {gid} has no name in /etc/group"), remedy))
}
