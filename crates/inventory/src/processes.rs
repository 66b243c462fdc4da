//! The compute processes of a machine.

/// A process that has opened /dev/kfd, on one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub pid: u32,
    /// KFD's `gpu_id`; the file `gpu_id` of its node in the topology.
    pub gpu_id: u32,
    pub vram_bytes: Option<u64>,
    /// Read only of a process that holds the GPU: the kernel asks the GPU's registers for it.
    pub compute_units: Option<u64>,
    pub queues: Option<u64>,
}

impl Use {
    /// Whether the process has memory or a queue on the GPU. KFD names each GPU that a process could reach,
    /// and a process that only lists GPUs has neither.
    #[must_use]
    pub fn holds(&self) -> bool {
        [self.vram_bytes, self.queues].into_iter().flatten().any(|count| count > 0)
    }
}
