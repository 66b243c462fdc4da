//! Reads what a snapshot says of a card.

use inventory::snapshot::{Card, Gpu};
use root::Root;

use crate::{pci, readings};

/// Reads a card as it is now. Identity, partitions' readings, processes and health are the caller's to add: they need what
/// earlier snapshots said, or other programs' files.
#[must_use]
pub fn card(root: &Root, card: &inventory::Card<'_>) -> Card {
    let first = card.first;
    let gpu = |gpu: &&inventory::Gpu| Gpu { index: gpu.index, kfd_node: gpu.kfd_node, ..Gpu::default() };
    let mut read = Card {
        pci: first.pci,
        driver: first.driver.clone(),
        bridges: first.pci.map(|address| pci::bridges(root, address)).unwrap_or_default(),
        gpus: card.gpus.iter().map(gpu).collect(),
        ..Card::default()
    };
    if let Some(address) = first.pci.filter(|_| read.is_driven_by_amdgpu()) {
        read.readings = readings::of_card(root, address);
    }
    read
}
