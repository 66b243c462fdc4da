//! The compute processes of a machine: /sys/class/kfd/kfd/proc (kfd_process.c).

use root::Root;

/// A process that has opened /dev/kfd, on one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub pid: u32,
    /// KFD's `gpu_id`; which GPU that is, [`crate::Gpu`] says by its KFD node.
    pub gpu_id: u32,
    pub vram_bytes: Option<u64>,
    pub compute_units: Option<u64>,
    pub queues: Option<u64>,
}

/// All of them, in the order of their pids.
#[must_use]
pub fn uses(_root: &Root) -> Vec<Use> {
    Vec::new()
}
