//! The device nodes: whether the right ones stand in /dev, and who may open them.

use check::{APPLY, About, Check, Remedy};
use config::Permissions;
use host::UNMAPPED_ID;
use inventory::Device;
use inventory::{DeviceNode, NodeFault};

use super::machine::{Role, Subject, lacks_kfd, name_of};
use super::missing_group::{is_unmapped, made};
use super::passthrough;
use crate::desired::host::GROUP;

const NAME: &str = "nodes";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    subject.needs_amd(About::all(NAME), "there is no AMD GPU to have any")?;
    subject.needs_kfd(About::all(NAME))?;
    let mut checks: Vec<Check> =
        subject.nodes().into_iter().map(|(role, node)| examine(subject, role, node)).collect();
    let outside = subject.facts.amd().filter(|gpu| subject.is_left_outside(gpu));
    checks.extend(
        outside.map(|gpu| {
            About::one(NAME, name_of(gpu)).skipped("its nodes were not passed into this container")
        }),
    );
    let refused = subject.facts.amd().filter(|gpu| !subject.is_left_outside(gpu) && lacks_kfd(gpu));
    checks.extend(
        refused
            .map(|gpu| About::one(NAME, name_of(gpu)).skipped("KFD leaves it out: the check kfd says why")),
    );
    Ok(checks)
}

fn examine(subject: &Subject<'_>, role: Role, node: &DeviceNode) -> Check {
    let about = About::one(NAME, node.path.display().to_string());
    match &node.state {
        Ok(device) => rights(about, subject, role, node, device),
        Err(fault) => role.unusable(about, in_words(fault), absent(subject, role, node, fault)),
    }
}

fn in_words(fault: &NodeFault) -> String {
    match fault {
        NodeFault::Missing(_) => "is not there".to_owned(),
        other => other.to_string(),
    }
}

fn absent(subject: &Subject<'_>, role: Role, node: &DeviceNode, fault: &NodeFault) -> Remedy {
    match fault {
        NodeFault::NumberUnknown { .. } => {
            "see to the driver first: without sysfs rocworker cannot identify the node".into()
        }
        NodeFault::Unreadable(_) => "run rocworker as root".into(),
        _ if subject.in_container() => passthrough::of_node(subject, &node.path),
        fault => {
            let (path, device) = (node.path.display(), role.in_sysfs(node));
            let first =
                if matches!(fault, NodeFault::Missing(_)) { String::new() } else { format!("rm {path}, ") };
            // devtmpfs makes a node once, when the driver comes; udev gives it its group and mode.
            let number = subject.root.read_text(device.join("dev"), 64).unwrap_or_default();
            match number.trim().split_once(':') {
                Some((major, minor)) => format!(
                    "{first}mknod {path} c {major} {minor}, then udevadm trigger --action=add {}",
                    device.display()
                )
                .into(),
                None => format!("{first}reboot: the driver makes the node when it is loaded").into(),
            }
        }
    }
}

fn rights(about: About, subject: &Subject<'_>, role: Role, node: &DeviceNode, device: &Device) -> Check {
    let owner = subject.groups.owner((device.uid, device.gid), device.mode);
    let problem = if device.mode & 0o006 != 0 {
        let place = if subject.in_container() { "container" } else { "host" };
        format!("open to every user of this {place}")
    } else if is_unmapped(subject, device.gid) {
        "its group is one that this container does not map".to_owned()
    } else if device.gid == 0 {
        "only root can open it".to_owned()
    } else if device.mode & 0o060 != 0o060 {
        "its group may not open it".to_owned()
    } else {
        return about.ok(owner);
    };
    about.warning(format!("{owner}: {problem}"), repair(subject, role, node, device))
}

/// How the node gets its group and mode: apply sets those of the nodes for computing.
pub(super) fn repair(subject: &Subject<'_>, role: Role, node: &DeviceNode, device: &Device) -> String {
    let sysfs = role.in_sysfs(node);
    let sysfs = sysfs.display();
    let is_foreign = device.uid == UNMAPPED_ID || device.gid == UNMAPPED_ID;
    match (role, subject.in_container()) {
        (Role::Card, false) => format!(
            "put the line SUBSYSTEM==\"drm\", KERNEL==\"card[0-9]*\", DRIVERS==\"amdgpu\", GROUP=\"video\", MODE=\"0660\" \
             into /etc/udev/rules.d/71-amdgpu-cards.rules, then udevadm control --reload and udevadm trigger --action=add \
             {sysfs}"
        ),
        (Role::Card, true) => passthrough::of_rights(subject),
        (_, true) if is_foreign => passthrough::of_rights(subject),
        _ if subject.groups.gid(GROUP).is_none() => format!("{}, then {APPLY}", made(subject, GROUP)),
        _ if subject.config.permissions == Permissions::Open && device.mode & 0o006 != 0 => {
            format!("write permissions: render into the configuration, then {APPLY}")
        }
        (_, true) => APPLY.to_owned(),
        (_, false) => format!("{APPLY}; where that changes nothing, udevadm trigger --action=add {sysfs}"),
    }
}
