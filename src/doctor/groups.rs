//! The groups that own GPU nodes, by the names that this machine gives them.

use check::{About, Check};
use host::groups::ALTFILES;
use inventory::DeviceNode;

use super::machine::{Role, Subject};
use super::missing_group::{is_unmapped, made, name_of};
use super::nodes;

const NAME: &str = "groups";

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
            Some(gid) => about.ok(match groups.source_elsewhere(name) {
                None => format!("gid {gid}"),
                Some(ALTFILES) => {
                    format!(
                        "gid {gid}, by {ALTFILES}: copy its line to /etc/group before you add a user to it"
                    )
                }
                Some(source) => format!("gid {gid}, by {source}"),
            }),
            None => about.warning(
                "not in /etc/group: no user can get GPU nodes by this name",
                format!("{}, then {then}", made(subject, name)),
            ),
        }
    });
    let nameless = subject.nodes().into_iter().filter_map(|(role, node)| nameless(subject, role, node));
    Ok(expected.into_iter().chain(nameless).collect())
}

fn nameless(subject: &Subject<'_>, role: Role, node: &DeviceNode) -> Option<Check> {
    let device = node.state.as_ref().ok()?;
    let gid = device.gid;
    if subject.groups.name(gid).is_some() || is_unmapped(subject, gid) {
        return None;
    }
    let name = name_of(role);
    let is_passed_in = subject.in_container() && role == Role::Card;
    let remedy = match subject.groups.gid(name) {
        // apply sets the nodes for computing alone.
        Some(own) if is_passed_in => format!("pass the node in with gid={own}, which is {name} here"),
        Some(_) => nodes::repair(subject, role, node, device),
        None => made(subject, name),
    };
    let about = About::one(NAME, node.path.display().to_string());
    Some(about.warning(format!("its group {gid} has no name in /etc/group"), remedy))
}
