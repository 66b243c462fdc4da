//! Reads a card for a snapshot.

use inventory::snapshot::{Card, Gpu};
use root::Root;

use crate::{pci, readings};

/// Reads a card's driver, bridges and readings, and the numbers of its GPUs. The caller adds the rest; until then an empty
/// [`Gpu::problems`] does not mean that a GPU is usable.
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
