//! Who has cards in use: KFD refuses another compute mode while a process is on a card.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use inventory::partitioning::Steps;
use inventory::{Inventory, PciAddress};
use root::Root;
use serde::Serialize;
use telemetry::container::{Owner, label, short};
use telemetry::processes::is_first_pid_namespace;

use super::kernel;

const LIMIT: usize = 64 << 10;

/// A compute process, and the cards that KFD has opened for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// By the kernel's first pid namespace.
    pub pid: u32,
    /// The program's name; `None` where /proc here does not show the process.
    pub name: Option<String>,
    pub container: Option<String>,
    /// The systemd unit, where no container has the process.
    pub unit: Option<String>,
    pub cards: BTreeSet<PciAddress>,
}

/// The compute processes of the machine, in the order of their pids.
///
/// # Errors
/// A sentence on what cannot be read, so that the list may lack a process.
pub fn holders(root: &Root, inventory: &Inventory) -> Result<Vec<Holder>, String> {
    let mut faults = Vec::new();
    let uses = amdgpu::processes::uses_without_units(root, &mut faults).unwrap_or_default();
    let id_of = |gpu: &inventory::Gpu, faults: &mut Vec<_>| {
        let id = amdgpu::processes::gpu_id(root, gpu.kfd_node?, faults)?;
        Some((id, gpu.pci?))
    };
    let cards: BTreeMap<u32, PciAddress> =
        inventory.amd().filter_map(|gpu| id_of(gpu, &mut faults)).collect();
    if let Some(fault) = faults.first() {
        return Err(format!("which processes use the GPUs is not known: {}", fault.reason));
    }
    let mut of = BTreeMap::<u32, BTreeSet<PciAddress>>::new();
    for it in uses {
        of.entry(it.pid).or_default().extend(cards.get(&it.gpu_id));
    }
    // In a container /proc numbers processes otherwise than KFD does.
    let is_shown = is_first_pid_namespace(root) == Some(true);
    Ok(of.into_iter().map(|(pid, cards)| holder(root, pid, cards, is_shown)).collect())
}

/// The processes that must leave before the steps: every one on a card that changes, and all before a reload. Earlier
/// kernels than Linux 7.3 switch no card while a process has any (kfd_device.c, `kgd2kfd_check_and_lock_kfd`).
pub(super) fn in_the_way(root: &Root, mut holders: Vec<Holder>, steps: &Steps) -> Vec<Holder> {
    let counts_all =
        steps.needs_reload() || !steps.compute.is_empty() && kernel::is_since(root, (7, 3)) != Some(true);
    let is_switched = |pci: &PciAddress| steps.compute.iter().any(|switch| switch.pci == *pci);
    holders.retain(|holder| counts_all || holder.cards.iter().any(is_switched));
    holders
}

fn holder(root: &Root, pid: u32, cards: BTreeSet<PciAddress>, is_shown: bool) -> Holder {
    let read = |file: &str| {
        let bytes = root.read(format!("/proc/{pid}/{file}"), LIMIT).ok().filter(|_| is_shown);
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let owner = read("cgroup").map(|text| Owner::of_cgroup(&text)).unwrap_or_default();
    let known = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    Holder {
        pid,
        name: read("comm").map(|name| label(name.trim_end_matches('\n'))),
        container: known(&owner.container).or(known(&owner.pod_uid)),
        unit: known(&owner.unit),
        cards,
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}", self.name.as_deref().unwrap_or("a process"), self.pid)?;
        match (&self.container, &self.unit) {
            (Some(container), _) => write!(f, ", container {})", short(container)),
            (None, Some(unit)) => write!(f, ", {unit})"),
            (None, None) => f.write_str(")"),
        }
    }
}
