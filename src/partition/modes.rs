//! The write of a mode into a card's file.

use std::path::Path;

use config::Component;
use inventory::PciAddress;
use inventory::partitioning::{Compute, Memory, Switch};
use reconcile::{Action, Kind, Stage, Value};

/// What errors of a compute mode's file mean (amdgpu_gfx.c, `amdgpu_gfx_set_compute_partition`).
const COMPUTE: &[(i32, &str)] = &[
    (
        nix::libc::EBUSY,
        "KFD still has a process, of this card or of another: `rocworker partition show` names it",
    ),
    (
        nix::libc::EINVAL,
        "the driver does not take this mode under the card's memory mode: `rocworker partition show` lists those that it \
         takes",
    ),
    (nix::libc::EPERM, "the card is being reset: wait for the end, and see `rocworker health`"),
    (
        nix::libc::EIO,
        "KFD did not come back after the switch: see journalctl -k, then load the driver again or restart the machine",
    ),
];

/// What the error of a memory mode's file means (amdgpu_gmc.c, `current_memory_partition_store`). What the firmware refuses
/// shows only once the driver is loaded again.
const MEMORY: &[(i32, &str)] =
    &[(nix::libc::EINVAL, "the driver does not have this memory mode for the card")];

/// Writes a compute mode. `before`: the mode to which an undo returns.
pub(super) fn compute(switch: &Switch<Compute>, before: Option<Compute>) -> Action {
    let before = before.unwrap_or(switch.from).to_string();
    let value = Value { text: switch.to.to_string(), before, is_requested: false, meanings: COMPUTE };
    action(switch.pci, amdgpu::COMPUTE, value)
}

/// Requests a memory mode.
pub(super) fn memory(switch: &Switch<Memory>, before: Option<Memory>) -> Action {
    let before = before.unwrap_or(switch.from).to_string();
    let value = Value { text: switch.to.to_string(), before, is_requested: true, meanings: MEMORY };
    action(switch.pci, amdgpu::MEMORY, value)
}

fn action(pci: PciAddress, file: &str, value: Value) -> Action {
    let path = Path::new("/sys/bus/pci/devices").join(pci.to_string()).join(file);
    let reason = "the modes of a partition profile";
    let action = Action::new(Stage::Shape, path, Kind::Value(value), reason);
    Action { component: Component::Partitions.as_ref().to_owned(), ..action }
}
