//! The modes that cards had before rocworker's first switch of this boot, as the receipt has them.

use std::path::{Path, PathBuf};

use inventory::PciAddress;
use inventory::partitioning::{Card, Compute, Entry, Memory, Modes, Selector};
use reconcile::{Managed, Receipt, State};

/// An entry for each card that rocworker has switched in this boot: the modes that it had.
#[must_use]
pub fn before(receipt: &Receipt, boot: Option<&str>, cards: &[Card]) -> Vec<Entry> {
    let entry = |card: &Card| {
        let compute = of(receipt, boot, card.pci, amdgpu::COMPUTE).and_then(|text| Compute::parse(text).ok());
        let memory = of(receipt, boot, card.pci, amdgpu::MEMORY).and_then(|text| Memory::parse(text).ok());
        if compute.is_none() && memory.is_none() {
            return None;
        }
        // A memory mode alone that was switched: the driver picks the compute mode of the old one.
        let now = card.compute.clone().ok();
        let compute = compute.or(now)?;
        let modes = Some(Modes { compute, memory });
        Some(Entry { cards: Selector::Card(card.pci), modes, count: None })
    };
    cards.iter().filter_map(entry).collect()
}

/// A card's file of a mode.
pub(super) fn file_of(pci: PciAddress, file: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(pci.to_string()).join(file)
}

/// The value that a file of the card had.
fn of<'r>(receipt: &'r Receipt, boot: Option<&str>, pci: PciAddress, file: &str) -> Option<&'r str> {
    let path = file_of(pci, file);
    let entry = receipt.entries.iter().find(|entry| entry.path == path)?;
    match (&entry.managed, &entry.before) {
        (Managed::Value { boot: then, .. }, State::Value { text }) if then.as_deref() == boot => Some(text),
        _ => None,
    }
}
