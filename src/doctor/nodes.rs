//! The device nodes: whether the right ones stand in /dev, and who may open them.

use amdgpu::{DeviceNode, NodeFault};
use root::Meta;

use super::groups::is_unmapped;
use super::machine::{Role, Subject, name_of};
use super::passthrough;
use crate::check::{About, Check, Remedy};

const NAME: &str = "nodes";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    subject.needs_amd(About::all(NAME), "there is no AMD GPU to have any")?;
    let mut checks: Vec<Check> =
        subject.nodes().into_iter().map(|(role, node)| examine(subject, role, node)).collect();
    let outside = subject.facts.amd().filter(|gpu| subject.is_left_outside(gpu));
    checks.extend(
        outside.map(|gpu| {
            About::one(NAME, name_of(gpu)).skipped("its nodes were not passed into this container")
        }),
    );
    Ok(checks)
}

fn examine(subject: &Subject<'_>, role: Role, node: &DeviceNode) -> Check {
    let about = About::one(NAME, node.path.display().to_string());
    match &node.state {
        Ok(meta) => rights(about, subject, role, meta),
        Err(fault) => role.unusable(about, said(fault), absent(subject, role, node, fault)),
    }
}

fn said(fault: &NodeFault) -> String {
    match fault {
        NodeFault::Missing(_) => "is not there".to_owned(),
        other => other.to_string(),
    }
}

fn absent(subject: &Subject<'_>, role: Role, node: &DeviceNode, fault: &NodeFault) -> Remedy {
    match fault {
        NodeFault::Missing(_) if subject.in_container() => passthrough::of_node(subject, &node.path),
        NodeFault::NumberUnknown { .. } => {
            "see to the driver first: without sysfs rocworker cannot identify the node".into()
        }
        NodeFault::Unreadable(_) => "run rocworker as root".into(),
        fault => {
            let first =
                if matches!(fault, NodeFault::Missing(_)) { "" } else { "remove what is there, then " };
            let subsystem = if role == Role::Kfd { "kfd" } else { "drm" };
            format!("{first}udevadm trigger --action=add --subsystem-match={subsystem}").into()
        }
    }
}

fn rights(about: About, subject: &Subject<'_>, role: Role, meta: &Meta) -> Check {
    let owner = subject.groups.owner(meta);
    let problem = if meta.mode & 0o006 != 0 {
        let place = if subject.in_container() { "container" } else { "host" };
        format!("open to every user of this {place}")
    } else if is_unmapped(subject, meta.gid) {
        "its group is one that this container does not map".to_owned()
    } else if meta.gid == 0 {
        "only root can open it".to_owned()
    } else if meta.mode & 0o060 != 0o060 {
        "its group may not open it".to_owned()
    } else {
        return about.ok(owner);
    };
    about.warning(format!("{owner}: {problem}"), repair(subject, role))
}

/// How the node gets its group and mode 0660.
pub(super) fn repair(subject: &Subject<'_>, role: Role) -> String {
    if subject.in_container() {
        return passthrough::of_rights(subject);
    }
    let (matches, group) = role.udev();
    format!(
        "put the line {matches}, GROUP=\"{group}\", MODE=\"0660\" into /etc/udev/rules.d/70-amdgpu.rules, then \
         udevadm control --reload and udevadm trigger"
    )
}
