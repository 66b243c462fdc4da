use std::path::PathBuf;

use crate::{Around, Gpu, Kfd, Reading, Vendor};

/// The GPUs of a machine and what they need.
#[derive(Debug)]
pub struct Inventory {
    /// AMD's first, in KFD node order, then those that KFD does not know, then other vendors', in PCI order.
    pub gpus: Vec<Gpu>,
    pub kfd: Kfd,
    pub amdgpu: Module,
    /// The container or virtual machine that this is.
    pub virtualization: Option<Around>,
    /// What is wrong with the machine and belongs to no one GPU.
    pub problems: Vec<String>,
    /// Those of the problems that leave open which GPUs there are, which nodes and which index each has: a file has not
    /// answered or cannot be read, though it is there.
    pub unanswered: Vec<String>,
    /// The file of each PCI function of which it is not known whether it is a GPU.
    pub unread_functions: Vec<PathBuf>,
}

/// The amdgpu kernel module as the running kernel knows it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Live, built in (which has no `initstate`), or bound to a card. Unknown where its state cannot be read.
    pub loaded: Reading<bool>,
    /// Only a DKMS build names one.
    pub version: Reading<String>,
    pub srcversion: Reading<String>,
}

impl Inventory {
    /// Whether what cannot be read leaves open which GPUs there are.
    #[must_use]
    pub fn may_lack_gpus(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// AMD's GPUs, in the order of their indexes.
    pub fn amd(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd)
    }
}
