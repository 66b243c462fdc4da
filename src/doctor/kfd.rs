//! KFD, the driver that computing goes through: its topology, its hidden nodes, its major.

use amdgpu::{Gpu, Problem};

use super::machine::{Subject, gpus, name_of};
use crate::check::{About, Check};

const NAME: &str = "kfd";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    subject.needs_amd(About::all(NAME), "there is no AMD GPU that needs it")?;
    let mut checks = vec![topology(subject)];
    checks.extend(hidden(subject));
    checks.extend(major(subject));
    checks.extend(subject.facts.amd().filter(|gpu| !subject.is_left_outside(gpu)).filter_map(of_gpu));
    Ok(checks)
}

fn topology(subject: &Subject<'_>) -> Check {
    let about = About::one(NAME, "topology");
    match &subject.facts.machine.kfd.topology {
        Ok(()) => {
            let known = subject.facts.amd().filter(|gpu| gpu.kfd_node.is_some()).count();
            about.ok(format!("it knows {}", gpus(known)))
        }
        Err(reason) => {
            let remedy = match subject.facts.machine.amdgpu.loaded {
                Ok(false) => "it comes with amdgpu: see to the driver first",
                _ => "boot a kernel that is built with CONFIG_HSA_AMD, as the distributions' are",
            };
            about.failed(format!("there is none: {reason}"), remedy)
        }
    }
}

fn hidden(subject: &Subject<'_>) -> Option<Check> {
    let hidden = subject.facts.machine.kfd.hidden_nodes;
    let about = About::one(NAME, "device cgroup");
    let evidence =
        format!("KFD hides {hidden} nodes here: the device cgroup does not let their GPUs through");
    match (hidden, subject.in_container()) {
        (0, _) => None,
        // A container that was given two GPUs of eight is in order.
        (_, true) => Some(about.ok(evidence)),
        (_, false) => Some(about.warning(
            evidence,
            "look from outside of the service or container that this runs in (DeviceAllow= in its unit)",
        )),
    }
}

/// /dev/kfd has no fixed major: a node of an earlier boot leads to whatever has the number now.
fn major(subject: &Subject<'_>) -> Option<Check> {
    let (major, minor) = subject.facts.machine.kfd.node.number()?;
    let about = About::one(NAME, "/dev/kfd");
    Some(match amdgpu::registered_major(subject.root) {
        Ok(Some(registered)) if registered == major => {
            about.ok(format!("is {major}:{minor}, as sysfs and /proc/devices say"))
        }
        Ok(found) => {
            let found = found.map_or_else(|| "no kfd".to_owned(), |found| format!("kfd as {found}"));
            about.failed(
                format!("is {major}:{minor}, and /proc/devices has {found}"),
                "rm /dev/kfd and reboot: the driver makes the node when it is loaded; in a container, pass it in again",
            )
        }
        Err(error) => {
            about.ok(format!("is {major}:{minor}, as sysfs says (/proc/devices says nothing: {error})"))
        }
    })
}

/// What KFD has against one GPU; what the nodes or the driver have is said there.
fn of_gpu(gpu: &Gpu) -> Option<Check> {
    let (problem, remedy) = gpu.problems.iter().find_map(|problem| Some((problem, remedy(problem)?)))?;
    Some(About::one(NAME, name_of(gpu)).failed(problem.to_string(), remedy))
}

fn remedy(problem: &Problem) -> Option<&'static str> {
    match problem {
        Problem::UnknownToKfd(_) => Some("read dmesg for kfd; a newer kernel or firmware may know this GPU"),
        Problem::UnreadInKfd(_) => Some(
            "look as root; a node that root cannot read is a driver's fault: read dmesg for kfd, and reboot",
        ),
        Problem::HiddenByKfd => {
            Some("let it through where this container is configured, or look from outside of it")
        }
        Problem::SharedMinor { .. } => {
            Some("reload amdgpu, and send a report to its developers: this is a driver's fault")
        }
        Problem::CardUnknown => Some("send a report: rocworker does not know this way of naming partitions"),
        Problem::NotAmd
        | Problem::NeverComputes(_)
        | Problem::LeftToRadeon(_)
        | Problem::Unbound
        | Problem::OtherDriver(_)
        | Problem::NoRenderNode
        | Problem::Node(_)
        | Problem::Kfd(_)
        | Problem::NoKfd(_) => None,
    }
}
