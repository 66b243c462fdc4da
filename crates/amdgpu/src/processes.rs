//! The compute processes of a machine: /sys/class/kfd/kfd/proc (drivers/gpu/drm/amd/amdkfd/kfd_process.c).
//!
//! Each process that has /dev/kfd open has a folder there, named by its number in the kernel's first pid namespace:
//! `vram_GPUID` (`kfd_procfs_show`: bytes), `stats_GPUID/cu_occupancy` (`kfd_get_cu_occupancy`; only where the GPU's
//! generation can say it) and `queues/N/gpuid` (`kfd_procfs_queue_show`). Each further context of a process has a folder
//! `context_N` of the same shape (`kfd_create_process_sysfs`, since the end of 2025). `sdma_GPUID` is not read: the kernel
//! borrows the process's memory for its answer (`kfd_sdma_activity_worker`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use inventory::processes::Use;
use inventory::readings::Fault;
use inventory::{Reading, Unknown};
use root::Root;

use crate::attribute;
use crate::kfd::{CLASS, node_folder};

/// Lists the compute processes in the order of their pids; `None` where the kernel has no KFD. If a process
/// ends meanwhile, what was not read of it is missing. Other reads that fail are added to `faults` and leave
/// out their entry.
#[must_use]
pub fn uses(root: &Root, faults: &mut Vec<Fault>) -> Option<Vec<Use>> {
    each(root, faults, &|context, id| {
        attribute::number(root, &context.join(format!("stats_{id}/cu_occupancy"))).ok()
    })
}

/// [`uses`] without [`Use::compute_units`]: it asks no GPU, and so waits for none.
#[must_use]
pub fn uses_without_units(root: &Root, faults: &mut Vec<Fault>) -> Option<Vec<Use>> {
    each(root, faults, &|_, _| None)
}

fn each(root: &Root, faults: &mut Vec<Fault>, units: Units<'_>) -> Option<Vec<Use>> {
    let folder = Path::new(CLASS).join("proc");
    let names = known(&folder, attribute::names(root, &folder), faults)?;
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Some(
        pids.into_iter()
            .flat_map(|pid| of_process(root, pid, &folder.join(pid.to_string()), faults, units))
            .collect(),
    )
}

/// KFD's `gpu_id` of the GPU that is this node of its topology ([`inventory::Gpu::kfd_node`]).
#[must_use]
pub fn gpu_id(root: &Root, kfd_node: u32, faults: &mut Vec<Fault>) -> Option<u32> {
    let file = node_folder(kfd_node).join("gpu_id");
    known(&file, attribute::number(root, &file), faults).filter(|id| *id != 0)
}

/// The value. One that is not there is no fault.
fn known<T>(file: &Path, reading: Reading<T>, faults: &mut Vec<Fault>) -> Option<T> {
    match reading {
        Ok(value) => Some(value),
        Err(reason) => {
            if !reason.is_absent() {
                faults.push(Fault { file: file.to_owned(), reason });
            }
            None
        }
    }
}

/// Reads the number of compute units in use from a context's folder, for a GPU with this KFD id.
type Units<'a> = &'a dyn Fn(&Path, u32) -> Option<u64>;

fn of_process(root: &Root, pid: u32, folder: &Path, faults: &mut Vec<Fault>, units: Units<'_>) -> Vec<Use> {
    let mut uses = BTreeMap::<u32, Use>::new();
    let names = names(root, folder, faults);
    let contexts = names.iter().filter(|name| name.starts_with("context_")).map(|name| folder.join(name));
    for context in contexts.chain([folder.to_owned()]) {
        add(root, pid, &context, &mut uses, faults, units);
    }
    uses.into_values().collect()
}

/// Adds what a context of the process has.
fn add(
    root: &Root,
    pid: u32,
    context: &Path,
    uses: &mut BTreeMap<u32, Use>,
    faults: &mut Vec<Fault>,
    units: Units<'_>,
) {
    let queues = queues(root, &context.join("queues"), faults);
    for name in names(root, context, faults) {
        let Some(gpu_id) = name.strip_prefix("vram_").and_then(|id| id.parse::<u32>().ok()) else { continue };
        let file = context.join(&name);
        let vram_bytes = known(&file, attribute::number(root, &file), faults);
        let queues = queues.as_ref().map(|on| on.get(&gpu_id).copied().unwrap_or(0));
        let nothing = Use { pid, gpu_id, vram_bytes: None, compute_units: None, queues: None };
        let here = Use { vram_bytes, queues, ..nothing.clone() };
        let compute_units = here.holds().then(|| units(context, gpu_id)).flatten();
        let all = uses.entry(gpu_id).or_insert(nothing);
        all.vram_bytes = sum(all.vram_bytes, vram_bytes);
        all.compute_units = sum(all.compute_units, compute_units);
        all.queues = sum(all.queues, queues);
    }
}

/// How many queues there are on each GPU; `None` where that is not known of one of them: the device cgroup may hide it.
fn queues(root: &Root, folder: &Path, faults: &mut Vec<Fault>) -> Option<BTreeMap<u32, u64>> {
    let mut on = BTreeMap::new();
    for queue in known(folder, attribute::names(root, folder), faults)? {
        let path: PathBuf = folder.join(queue).join("gpuid");
        let gpu_id = attribute::number(root, &path);
        let is_hidden = gpu_id.as_ref().is_err_and(Unknown::is_hidden);
        // A queue whose file is missing has just ended.
        if let Some(gpu_id) = known(&path, gpu_id, faults) {
            *on.entry(gpu_id).or_insert(0) += 1;
        }
        if is_hidden {
            return None;
        }
    }
    Some(on)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn names(root: &Root, folder: &Path, faults: &mut Vec<Fault>) -> Vec<String> {
    let names = known(folder, attribute::names(root, folder), faults).unwrap_or_default();
    names.into_iter().filter_map(|name| name.into_string().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test lays out files")]
mod tests {
    use std::fs;

    use super::*;

    /// Synthetic: as kfd_process.c and kfd_topology.c of Linux 6.12 lay these files out and write their numbers.
    fn laid(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join("sys/class/kfd/kfd").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    /// A process, a GPU, and its memory, compute units and queues.
    type Row = (u32, u32, [Option<u64>; 3]);

    fn found(files: &[(&str, &str)]) -> Option<Vec<Row>> {
        let (_dir, root) = laid(files);
        let row = |it: Use| (it.pid, it.gpu_id, [it.vram_bytes, it.compute_units, it.queues]);
        uses(&root, &mut Vec::new()).map(|uses| uses.into_iter().map(row).collect())
    }

    #[test]
    fn each_process_is_listed_with_each_gpu_and_what_is_not_there_is_none() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("proc/7/pasid", "32769\n")]), Some(vec![]), "before it has a GPU");
        // Two GPUs, the second only within reach; no queues folder; a queue's file without a newline; no cu_occupancy.
        let files = [
            ("proc/120/vram_4711", "1073741824\n"),
            ("proc/120/sdma_4711", "12\n"),
            ("proc/120/stats_4711/evicted_ms", "0\n"),
            ("proc/120/stats_4711/cu_occupancy", "64\n"),
            ("proc/120/vram_815", "0\n"),
            ("proc/120/stats_815/cu_occupancy", "3\n"),
            ("proc/120/queues/0/gpuid", "4711"),
            ("proc/120/queues/0/size", "4096"),
            ("proc/120/queues/1/gpuid", "4711"),
            ("proc/99/vram_815", "4096\n"),
            ("proc/self/vram_815", "4096\n"),
        ];
        let expected = vec![
            (99, 815, [Some(4096), None, None]),
            (120, 815, [Some(0), None, Some(0)]),
            (120, 4711, [Some(1 << 30), Some(64), Some(2)]),
        ];
        assert_eq!(found(&files), Some(expected));
    }

    #[test]
    fn contexts_of_a_process_count_together() {
        let files = [
            ("proc/7/vram_815", "4096\n"),
            ("proc/7/queues/0/gpuid", "815"),
            ("proc/7/context_1/vram_815", "8192\n"),
            ("proc/7/context_1/queues/0/gpuid", "815"),
            ("proc/7/context_1/stats_815/cu_occupancy", "4\n"),
            ("proc/7/context_2/vram_4711", "1\n"),
        ];
        let expected = vec![(7, 815, [Some(12288), Some(4), Some(2)]), (7, 4711, [Some(1), None, None])];
        assert_eq!(found(&files), Some(expected));
    }

    #[test]
    fn numbers_that_are_none_cost_themselves_alone() {
        for wrong in ["", "-1\n", "18446744073709551616\n", "\u{0}", "lots\n"] {
            let files = [
                ("proc/7/vram_815", wrong),
                ("proc/7/queues/3/gpuid", "815"),
                ("proc/7/queues/4/gpuid", wrong),
            ];
            assert_eq!(found(&files), Some(vec![(7, 815, [None, None, Some(1)])]), "{wrong:?}");
        }
    }

    #[test]
    fn a_gpus_id_is_its_nodes() {
        let (_dir, root) =
            laid(&[("topology/nodes/0/gpu_id", "0\n"), ("topology/nodes/2/gpu_id", "35218\n")]);
        assert_eq!([0, 1, 2].map(|node| gpu_id(&root, node, &mut Vec::new())), [None, None, Some(35218)]);
    }
}
