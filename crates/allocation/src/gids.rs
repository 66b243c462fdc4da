//! Finds the group that a container's process needs to open a device node.

use crate::{Error, Quoted, error::refuse};

/// A line of a user namespace's mapping (OCI runtime-spec, `linux.gidMappings`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdMapping {
    pub container_id: u32,
    pub host_id: u32,
    pub size: u32,
}

/// The host's id in the container's numbering; None if no line maps it. The first line that holds it counts.
#[must_use]
pub fn translate(host_id: u32, mappings: &[IdMapping]) -> Option<u32> {
    mappings.iter().find_map(|line| {
        let offset = host_id.checked_sub(line.host_id)?;
        if offset < line.size { line.container_id.checked_add(offset) } else { None }
    })
}

/// The user namespace that a bundle asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserNamespace {
    /// No user namespace: ids inside are the host's.
    Host,
    /// A namespace with these mappings, which may be empty.
    Mapped { uids: Vec<IdMapping>, gids: Vec<IdMapping> },
    /// An existing namespace, joined by its path; the bundle does not have its mappings.
    Joined { path: String },
}

impl UserNamespace {
    /// The uid that a node's owner has inside, where that is known.
    #[must_use]
    pub fn uid(&self, host_uid: u32) -> Option<u32> {
        match self {
            Self::Host => Some(host_uid),
            Self::Mapped { uids, .. } => translate(host_uid, uids),
            Self::Joined { .. } => None,
        }
    }

    /// The gid that a node's group has inside, where that is known.
    #[must_use]
    pub fn gid(&self, host_gid: u32) -> Option<u32> {
        match self {
            Self::Host => Some(host_gid),
            Self::Mapped { gids, .. } => translate(host_gid, gids),
            Self::Joined { .. } => None,
        }
    }
}

/// Whether a process needs the node's group to read and write it: the group may, and others may not. `mode`
/// as stat returns it; the type bits do not matter.
#[must_use]
pub fn needs_gid(mode: u32) -> bool {
    mode & 0o060 == 0o060 && mode & 0o006 != 0o006
}

/// The group that a process in this container needs for a node of this mode and host group, as it is called inside: it
/// belongs into `process.user.additionalGids`. None: no group makes a difference, or it is the host's group 0, which is
/// never handed out, since root opens the node as its owner.
///
/// # Errors
/// The group is needed, and has no name inside, or none that is known. runc would fail at setgroups, so the caller makes
/// an explicit request fail before that. For the default it leaves the group out, with a warning.
pub fn supplement(mode: u32, host_gid: u32, namespace: &UserNamespace) -> Result<Option<u32>, Error> {
    if !needs_gid(mode) {
        return Ok(None);
    }
    match (namespace, namespace.gid(host_gid)) {
        (_, Some(gid)) => Ok((host_gid != 0).then_some(gid)),
        (UserNamespace::Joined { path }, None) => refuse(format!(
            "the host's group {host_gid}, which may open it, cannot be translated: the container joins the user \
             namespace {} and its bundle has no gidMappings",
            Quoted(path)
        )),
        (_, None) => refuse(format!(
            "the host's group {host_gid}, which may open it, is not in the container's gidMappings: map it, or give \
             the node a group that is mapped"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Concourse's unprivileged containers: their root is the host's highest id, all other ids are the host's.
    fn concourse() -> Vec<IdMapping> {
        vec![
            IdMapping { container_id: 0, host_id: 65534, size: 1 },
            IdMapping { container_id: 1, host_id: 1, size: 65533 },
        ]
    }

    #[test]
    fn translates_by_the_line_that_holds_the_id() {
        let shifted = vec![IdMapping { container_id: 10, host_id: 100_000, size: 5 }];
        let edge = vec![IdMapping { container_id: u32::MAX, host_id: 7, size: 2 }];
        let table = [
            (992, concourse(), Some(992)),
            (65534, concourse(), Some(0)),
            (0, concourse(), None),
            (65535, concourse(), None),
            (100_004, shifted.clone(), Some(14)),
            (100_005, shifted.clone(), None),
            (99_999, shifted, None),
            (7, edge.clone(), Some(u32::MAX)),
            (8, edge, None),
            (5, vec![], None),
        ];
        for (host, mappings, inside) in table {
            assert_eq!(translate(host, &mappings), inside, "{host} through {mappings:?}");
        }
    }

    #[test]
    fn a_group_matters_only_where_it_may_and_others_may_not() {
        for (mode, needed) in [
            (0o660, true),
            (0o020_660, true),
            (0o666, false),
            (0o600, false),
            (0o640, false),
            (0o664, true),
            (0, false),
        ] {
            assert_eq!(needs_gid(mode), needed, "{mode:o}");
        }
    }

    #[test]
    fn gives_the_group_under_its_name_inside_and_never_roots() {
        use UserNamespace::{Host, Joined, Mapped};
        let mapped = || Mapped { uids: concourse(), gids: concourse() };
        let identity =
            || Mapped { uids: vec![], gids: vec![IdMapping { container_id: 0, host_id: 0, size: 1000 }] };
        let joined = || Joined { path: "/proc/7/ns/user".into() };
        let unmapped =
            |gid: u32| Err(format!("the host's group {gid}, which may open it, is not in the container's"));
        let unknown = || {
            Err("the host's group 992, which may open it, cannot be translated: the container joins"
                .to_owned())
        };
        let table = [
            (0o660, 992, Host, Ok(Some(992))),
            (0o660, 0, Host, Ok(None)),
            (0o666, 0, mapped(), Ok(None)),
            (0o660, 992, mapped(), Ok(Some(992))),
            (0o660, 65534, mapped(), Ok(Some(0))),
            (0o660, 0, mapped(), unmapped(0)),
            (0o660, 0, identity(), Ok(None)),
            (0o660, 70_000, mapped(), unmapped(70_000)),
            (0o660, 992, joined(), unknown()),
            (0o666, 992, joined(), Ok(None)),
        ];
        for (mode, gid, namespace, expected) in table {
            match (supplement(mode, gid, &namespace), expected) {
                (Err(error), Err(expected)) => assert!(error.to_string().starts_with(&expected), "{error}"),
                (given, expected) => {
                    assert_eq!(given.map_err(String::from), expected, "{mode:o} {gid} {namespace:?}");
                }
            }
        }
    }
}
