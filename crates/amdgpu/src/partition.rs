//! A card's partition modes (amdgpu_gfx.c, amdgpu_gmc.c: current_compute_partition, current_memory_partition).

use inventory::{Partition, PciAddress};
use root::Root;

use crate::{attribute, pci};

/// Reads the modes that a card is in, as its first partition has them.
pub(crate) fn first_of(root: &Root, address: PciAddress) -> Partition {
    let folder = pci::folder(address);
    let mode = |name| attribute::text(root, &folder.join(name));
    Partition { compute: mode("current_compute_partition"), memory: mode("current_memory_partition"), id: 0 }
}
