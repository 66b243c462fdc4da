//! The groups that own GPU nodes, by the names that this machine gives them.

use amdgpu::DeviceNode;
use root::{Meta, Root};

use super::check::{About, Check};
use super::machine::Subject;

const NAME: &str = "groups";
const FILE: &str = "/etc/group";

/// What the kernel shows for a gid that a user namespace does not map (`overflowgid`, proc_sys_kernel(5)).
const OVERFLOW_GID: u32 = 65534;

/// The groups of /etc/group; those that only a name service knows are not in it.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Name and gid, or why the file could not be read.
    known: Result<Vec<(String, u32)>, String>,
}

impl Groups {
    pub(crate) fn read(root: &Root) -> Self {
        let text = root.read_text(FILE, 4 << 20).map_err(|error| error.to_string());
        Self { known: text.map(|text| parse(&text)) }
    }

    pub(crate) fn gid(&self, name: &str) -> Option<u32> {
        let known = self.known.as_ref().ok()?;
        known.iter().find(|(known, _)| known == name).map(|(_, gid)| *gid)
    }

    pub(crate) fn name(&self, gid: u32) -> Option<&str> {
        let known = self.known.as_ref().ok()?;
        known.iter().find(|(_, known)| *known == gid).map(|(name, _)| name.as_str())
    }

    /// `render (992)`, or `gid 992` when it has no name.
    pub(crate) fn described(&self, gid: u32) -> String {
        self.name(gid).map_or_else(|| format!("gid {gid}"), |name| format!("{name} ({gid})"))
    }

    /// `root:render 0660`.
    pub(crate) fn owner(&self, meta: &Meta) -> String {
        let user = if meta.uid == 0 { "root".to_owned() } else { format!("uid {}", meta.uid) };
        let group = self.name(meta.gid).map_or_else(|| format!("gid {}", meta.gid), str::to_owned);
        format!("{user}:{group} {:04o}", meta.mode)
    }
}

/// The fields of group(5); a line that is not of that form belongs to nobody here.
fn parse(text: &str) -> Vec<(String, u32)> {
    let group = |line: &str| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?);
        Some((name.to_owned(), gid.parse().ok()?))
    };
    text.lines().filter_map(group).collect()
}

/// Whether a node's group is one of the host's that this container does not map.
pub(crate) fn is_unmapped(subject: &Subject<'_>, gid: u32) -> bool {
    subject.in_container() && gid == OVERFLOW_GID
}

pub(crate) fn check(subject: &Subject<'_>) -> Vec<Check> {
    let groups = &subject.groups;
    if !subject.has_amd() {
        return vec![About::all(NAME).skipped("there is no AMD GPU whose nodes they would own")];
    }
    if let Err(reason) = &groups.known {
        return vec![About::all(NAME).warning(
            format!("the names of groups are not known: {reason}"),
            "install base-passwd, or whatever made this machine's /etc/group",
        )];
    }
    let expected = ["render", "video"].map(|name| {
        let about = About::one(NAME, name);
        match groups.gid(name) {
            Some(gid) => about.ok(format!("gid {gid}")),
            None => about.warning(
                "not in /etc/group: nobody can be given GPU nodes by this name",
                format!("groupadd --system {name}, and udevadm trigger where udev runs"),
            ),
        }
    });
    let nameless = subject.nodes().into_iter().filter_map(|(_, node)| nameless(subject, node));
    expected.into_iter().chain(nameless).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_groups_are_passed_over() {
        let text = "root:x:0:\nrender:x:992:ann,bob\n\n# a comment\nbroken\nvideo:x:forty:\nhuge:x:99999999999:\n:x:7\n";
        assert_eq!(parse(text), [("root".to_owned(), 0), ("render".to_owned(), 992), (String::new(), 7)]);
    }
}
