//! Everything that decides what should be on a machine, read once and never written.

use inventory::{Gpu, Inventory};
use root::Root;

use crate::module_load::ModuleLoad;
use crate::pinned_devices::PinnedDevices;
use crate::unserved::{Unserved, unserved};

/// What is true of a machine now.
#[derive(Debug)]
pub struct Facts {
    pub inventory: Inventory,
    /// Whether systemd is the first process.
    pub systemd: bool,
    /// Engines that are here and that rocworker does not configure.
    pub unserved: Vec<Unserved>,
    /// Whether a hypervisor of Microsoft's gives its GPU as /dev/dxg.
    pub has_dxg: bool,
    /// Whether an unmanaged file has amdgpu loaded at boot.
    pub module_load: ModuleLoad,
    /// What indexes and render names of `gpu-device-ids` meant when they were first applied.
    pub pinned: PinnedDevices,
}

impl Facts {
    /// Reads the machine beneath `root`.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        Self {
            inventory: amdgpu::read(root),
            systemd: crate::runs_systemd(root),
            unserved: unserved(root),
            has_dxg: root.is_there("/dev/dxg"),
            module_load: ModuleLoad::read(root),
            pinned: PinnedDevices::default(),
        }
    }

    /// Adds the GPUs that an earlier apply pinned.
    #[must_use]
    pub fn remembering(self, pinned: PinnedDevices) -> Self {
        Self { pinned, ..self }
    }

    /// AMD's GPUs, usable or not, in the order of their indexes.
    pub fn amd(&self) -> impl Iterator<Item = &Gpu> {
        self.inventory.amd()
    }

    /// Whether the machine has a GPU of AMD's that could ever compute: without one nothing is set up.
    #[must_use]
    pub fn has_amd(&self) -> bool {
        self.amd().any(|gpu| gpu.never_computes().is_none())
    }

    /// AMD's GPUs that a container can use.
    pub fn usable(&self) -> impl Iterator<Item = &Gpu> {
        self.amd().filter(|gpu| gpu.usable())
    }
}
