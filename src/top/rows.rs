//! The lines of the table of GPUs: a card, and its partitions while they are unfolded.

use std::collections::BTreeSet;

use telemetry::overview::{Card, Gpu, Overview};

/// What stays the same of a card from reading to reading: its address, or else the index of its first GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CardKey(String);

impl CardKey {
    pub(super) fn of(card: &Card) -> Self {
        let index = || card.gpus.first().and_then(|gpu| gpu.index).unwrap_or_default();
        Self(card.pci.clone().unwrap_or_else(|| format!("gpu {}", index())))
    }
}

/// Which line is meant: a card's, or that of the partition with this index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) card: CardKey,
    pub(super) partition: Option<u32>,
}

/// A line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'o> {
    pub(super) card: &'o Card,
    /// `None`: the card's own line.
    pub(super) partition: Option<&'o Gpu>,
}

impl Row<'_> {
    pub(super) fn key(&self) -> Key {
        Key { card: CardKey::of(self.card), partition: self.partition.and_then(|gpu| gpu.index) }
    }

    /// Whether a process on the GPU with this index is on this line's.
    pub(super) fn has(&self, index: Option<u32>) -> bool {
        match self.partition {
            Some(gpu) => gpu.index == index,
            None => self.card.gpus.iter().any(|gpu| gpu.index == index),
        }
    }
}

/// All lines, in the order of the indexes. `folded`: the cards whose partitions are not shown.
pub(super) fn rows<'o>(overview: &'o Overview, folded: &BTreeSet<CardKey>) -> Vec<Row<'o>> {
    let mut rows = Vec::new();
    for card in &overview.cards {
        rows.push(Row { card, partition: None });
        if card.is_partitioned() && !folded.contains(&CardKey::of(card)) {
            rows.extend(card.gpus.iter().map(|gpu| Row { card, partition: Some(gpu) }));
        }
    }
    rows
}
