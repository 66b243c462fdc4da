//! What is around this machine, and what follows from it for everything below.

use check::{About, Check};
use inventory::Around;

use super::machine::Subject;
use super::passthrough;

const NAME: &str = "virtualization";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let around = match &subject.facts.inventory.virtualization {
        None => "nothing says that this is a container or a virtual machine".to_owned(),
        Some(Around::Container(name)) => format!(
            "inside {name}: the host loads the driver and runs udev, sysfs shows the host's cards, and /dev \
             has only the nodes that were passed in"
        ),
        Some(Around::VirtualMachine(name)) if name == "wsl" => {
            "inside wsl: Windows keeps the card and its driver".to_owned()
        }
        Some(Around::VirtualMachine(name)) => format!(
            "inside {name}: a GPU is here when the hypervisor passes a card or a virtual function through"
        ),
    };
    let mut checks = vec![About::all(NAME).ok(around)];
    checks.extend(passthrough::check(NAME, subject));
    Ok(checks)
}
