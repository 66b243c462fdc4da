//! Reads a card for a snapshot.

use inventory::readings::{CardReadings, PartitionReadings};
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

/// Reads one of a card's partitions. Of a partition whose card is not known nothing is read: the card may be suspended.
#[must_use]
pub fn partition(root: &Root, card: &CardReadings, gpu: &inventory::Gpu) -> PartitionReadings {
    let id = gpu.partition.as_ref().map(|partition| partition.id);
    let render = gpu.render.as_ref().and_then(|node| node.path.file_name()?.to_str());
    match (gpu.pci, id, render) {
        (Some(_), Some(id), Some(render)) => readings::of_partition(root, card, id, render),
        _ => PartitionReadings::default(),
    }
}
