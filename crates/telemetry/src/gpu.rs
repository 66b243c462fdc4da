//! The AMD cards of a machine, each with what containers can get of it.

use inventory::{Gpu, Inventory};

/// A card, as the whole GPU that it is or with its partitions.
#[derive(Debug)]
pub(crate) struct Card<'m> {
    /// The card's GPUs in the order of their indexes.
    pub(crate) entries: Vec<&'m Gpu>,
}

impl<'m> Card<'m> {
    /// AMD's cards, in the order of their first indexes. An entry whose card sysfs does not tell stands alone.
    pub(crate) fn all(inventory: &'m Inventory) -> Vec<Self> {
        let mut cards: Vec<Self> = Vec::new();
        for gpu in inventory.amd() {
            let is_its = |card: &&mut Self| {
                gpu.pci.is_some() && card.entries.first().is_some_and(|first| first.pci == gpu.pci)
            };
            match cards.iter_mut().find(is_its) {
                Some(card) => card.entries.push(gpu),
                None => cards.push(Self { entries: vec![gpu] }),
            }
        }
        cards
    }

    /// A card in SPX, or without partition modes, is one GPU. A container may see one partition of several.
    pub(crate) fn is_partitioned(&self) -> bool {
        let mode = |gpu: &&Gpu| gpu.partition.as_ref().and_then(|partition| partition.compute.clone().ok());
        self.entries.len() > 1 || self.entries.iter().filter_map(mode).any(|mode| mode != "SPX")
    }
}
