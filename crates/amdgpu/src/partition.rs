//! A card's partition modes (amdgpu_gfx.c, amdgpu_gmc.c: current_compute_partition, current_memory_partition).

use root::Root;

use crate::address::Address;
use crate::attribute::{self, Reading, Unknown};
use crate::pci;

/// The modes that a card is in.
#[derive(Debug, Clone)]
pub(crate) struct Modes {
    pub(crate) compute: Reading<String>,
    pub(crate) memory: Reading<String>,
}

impl Modes {
    pub(crate) fn read(root: &Root, address: Address) -> Self {
        let folder = pci::folder(address);
        // Reading a suspended card's modes wakes it on older kernels and is refused on newer ones.
        if attribute::text(root, &folder.join("power/runtime_status"))
            .is_ok_and(|status| status == "suspended")
        {
            let asleep =
                || Unknown::because(format!("card {address} is suspended, and is not woken to be asked"));
            return Self { compute: Err(asleep()), memory: Err(asleep()) };
        }
        let mode = |name| attribute::text(root, &folder.join(name));
        Self { compute: mode("current_compute_partition"), memory: mode("current_memory_partition") }
    }

    /// Whether the card says of itself that it is partitioned or can be.
    pub(crate) fn known(&self) -> bool {
        self.compute.is_ok() || self.memory.is_ok()
    }
}
