//! What stands around this machine, and what follows from it for everything below.

use super::check::{About, Check};
use super::machine::{Subject, gpus};
use super::passthrough;
use crate::host::Around;

const NAME: &str = "virtualization";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Check> {
    let around = match &subject.facts.virtualization {
        None => "nothing says that this is a container or a virtual machine".to_owned(),
        Some(Around::Container(name)) => format!(
            "inside {name}: the host loads the driver and runs udev, sysfs shows the host's cards, and /dev \
             has only the nodes that were passed in"
        ),
        Some(Around::VirtualMachine(name)) => format!(
            "inside {name}: a GPU is here when the hypervisor passes a card or a virtual function through"
        ),
    };
    let mut checks = vec![About::all(NAME).ok(around)];
    checks.extend(passed_in(subject));
    checks
}

/// Tells a missing passthrough from a missing driver: with the driver in sysfs, only the node can be missing.
fn passed_in(subject: &Subject<'_>) -> Option<Check> {
    if !subject.in_container() {
        return None;
    }
    let driven: Vec<_> = subject.facts.amd().filter(|gpu| gpu.driver.as_deref() == Some("amdgpu")).collect();
    let outside = driven.iter().filter(|gpu| subject.is_left_outside(gpu)).count();
    let about = About::one(NAME, "passthrough");
    let first = *driven.first()?;
    let (all, inside) = (gpus(driven.len()), driven.len() - outside);
    if inside > 0 {
        return Some(about.ok(format!("sysfs shows {all} of amdgpu, and {inside} of them here in /dev")));
    }
    Some(about.failed(
        format!("sysfs shows {all} of amdgpu, and none of them in /dev: the driver is there, the passthrough is not"),
        passthrough::of_gpu(subject, first),
    ))
}
