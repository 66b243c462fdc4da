//! What to do about a group that a GPU node needs and this machine does not have.

use host::UNMAPPED_ID;
use host::groups::Groups;

use super::machine::{Role, Subject};

/// Whether a node's group is one of the host's that this container does not map.
pub(super) fn is_unmapped(subject: &Subject<'_>, gid: u32) -> bool {
    subject.in_container() && gid == UNMAPPED_ID
}

/// Which group owns a node.
pub(super) fn name_of(role: Role) -> &'static str {
    if role == Role::Card { "video" } else { "render" }
}

/// What gives the machine a missing group: with the number that its nodes have already, where no other group has that.
pub(super) fn made(subject: &Subject<'_>, name: &str) -> String {
    let nodes = subject.nodes().into_iter().filter(|(role, _)| name_of(*role) == name);
    let mut gids = nodes.filter_map(|(_, node)| Some(node.state.as_ref().ok()?.gid));
    let free = |gid: &u32| *gid != 0 && subject.groups.name(*gid).is_none() && !is_unmapped(subject, *gid);
    Groups::made(name, gids.find(free))
}
