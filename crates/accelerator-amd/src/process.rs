//! The compute processes, by KFD's list.

use root::Root;

use crate::device::{compute_units, memory_bytes};
use crate::offered::offered;

/// A process that has memory or a queue on a GPU; what is unknown is 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    /// The process's number in the kernel's first pid namespace.
    pub(crate) pid: u32,
    pub(crate) uuid: String,
    pub(crate) active_units: u64,
    pub(crate) all_units: u64,
    pub(crate) memory_used: u64,
    pub(crate) memory_all: u64,
}

/// Reads the processes in the order of their numbers.
pub(crate) fn processes(root: &Root, node: Option<&str>) -> (Vec<Process>, Vec<String>) {
    let inventory = amdgpu::read(root);
    let cards = inventory.cards();
    let mut faults = Vec::new();
    let uses = amdgpu::processes::uses(root, &mut faults).unwrap_or_default();
    let mut gpus = Vec::new();
    for it in offered(&cards, &amdgpu::partitioning(root, &inventory), node) {
        let id = it.gpu.kfd_node.and_then(|node| amdgpu::processes::gpu_id(root, node, &mut faults));
        let Some(id) = id.filter(|id| uses.iter().any(|it| it.gpu_id == *id)) else { continue };
        let memory =
            cards.get(it.card).and_then(|card| memory_bytes(&it, &amdgpu::snapshot::card(root, card)));
        gpus.push((id, it, memory.unwrap_or_default()));
    }
    let process = |it: &inventory::processes::Use| {
        let (_, gpu, memory_all) = gpus.iter().find(|(id, ..)| *id == it.gpu_id)?;
        Some(Process {
            pid: it.pid,
            uuid: gpu.uuid.clone(),
            active_units: it.compute_units.unwrap_or_default(),
            all_units: compute_units(gpu).unwrap_or_default().into(),
            memory_used: it.vram_bytes.unwrap_or_default(),
            memory_all: *memory_all,
        })
    };
    let processes = uses.iter().filter(|it| it.holds()).filter_map(process).collect();
    (processes, faults.iter().map(|fault| fault.reason.to_string()).collect())
}

impl Process {
    pub(crate) fn busy_percent(&self) -> f64 {
        percent(self.active_units, self.all_units)
    }

    pub(crate) fn memory_percent(&self) -> f64 {
        percent(self.memory_used, self.memory_all)
    }
}

/// A share in per cent; 0 where the whole is not known. Where partitions share a domain of memory, a process can hold more
/// than its partition's part, and TensorFusion's own test of a provider wants no share above 100.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).min(100.0) }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test lays out files and fails by panicking"
)]
mod tests {
    use std::fs;

    use layout::{Machine, Nodes};

    use super::*;

    /// Two cards with two partitions each, and KFD's files of processes as kfd_process.c of Linux 6.12 writes them.
    #[test]
    fn each_process_is_on_its_gpu_with_its_share() {
        let machine = tempfile::tempdir().unwrap();
        Machine::instinct(2, 2).lay_out(machine.path(), Nodes::Recorded).unwrap();
        let root = Root::open(machine.path()).unwrap();
        let (devices, _) = crate::device::devices(&root, None);
        let kfd = machine.path().join("sys/class/kfd/kfd");
        let ids: Vec<String> = (0..)
            .map(|node| kfd.join(format!("topology/nodes/{node}/gpu_id")))
            .map_while(|file| fs::read_to_string(file).ok())
            .map(|id| id.trim().to_owned())
            .filter(|id| id != "0")
            .collect();
        assert_eq!((devices.len(), ids.len()), (4, 4));
        let quarter = devices[2].memory_bytes / 4;
        for (file, text) in [
            (format!("4242/vram_{}", ids[2]), quarter.to_string()),
            (format!("4242/stats_{}/cu_occupancy", ids[2]), "19".to_owned()),
            (format!("4242/vram_{}", ids[0]), "0".to_owned()),
            (format!("77/vram_{}", ids[3]), (devices[3].memory_bytes * 2).to_string()),
            ("99/vram_1".to_owned(), "4096".to_owned()),
        ] {
            let path = kfd.join("proc").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        let (found, sentences) = processes(&root, None);
        let row = |it: &Process| (it.pid, it.uuid.clone(), it.busy_percent(), it.memory_percent());
        let busy = 100.0 * 19.0 / devices[2].compute_units as f64;
        let expected =
            [(77, devices[3].uuid.clone(), 0.0, 100.0), (4242, devices[2].uuid.clone(), busy, 25.0)];
        assert_eq!(found.iter().map(row).collect::<Vec<_>>(), expected, "{sentences:?}");
    }
}
