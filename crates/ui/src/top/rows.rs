//! The lines of the table of GPUs: a card, and its partitions while they are unfolded.

use std::collections::BTreeSet;

use inventory::snapshot::{Card, Gpu, Process, Snapshot};

/// Identifies a card from reading to reading: its address, or else the index of its first GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CardKey(String);

impl CardKey {
    pub(super) fn of(card: &Card) -> Self {
        let index = || card.gpus.first().and_then(|gpu| gpu.index).unwrap_or_default();
        Self(card.pci.map_or_else(|| format!("gpu {}", index()), |pci| pci.to_string()))
    }
}

/// Which line is meant: a card's, or that of its partition with this number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) card: CardKey,
    pub(super) partition: Option<u32>,
}

/// A line of the table of GPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'o> {
    pub(super) card: &'o Card,
    /// The partition of this line; `None`: the card's own line.
    pub(super) partition: Option<&'o Gpu>,
}

impl Row<'_> {
    pub(super) fn key(&self) -> Key {
        Key { card: CardKey::of(self.card), partition: self.partition.and_then(Gpu::partition) }
    }

    /// The GPUs of this line: one partition, or what containers get of the card.
    pub(super) fn gpus(&self) -> impl Iterator<Item = &Gpu> {
        let own =
            |gpu: &&Gpu| self.partition.is_none_or(|partition| partition.partition() == gpu.partition());
        self.card.gpus.iter().filter(own)
    }

    /// Whether a process is on this line's GPUs.
    pub(super) fn has(&self, process: &Process) -> bool {
        self.gpus().any(|gpu| process.gpu.is(self.card.id_of(gpu)))
    }
}

/// All lines, in the order of the indexes. `folded`: the cards whose partitions are not shown.
pub(super) fn rows<'o>(snapshot: &'o Snapshot, folded: &BTreeSet<CardKey>) -> Vec<Row<'o>> {
    let mut rows = Vec::new();
    for card in &snapshot.cards {
        rows.push(Row { card, partition: None });
        if card.is_partitioned() && !folded.contains(&CardKey::of(card)) {
            rows.extend(card.gpus.iter().map(|gpu| Row { card, partition: Some(gpu) }));
        }
    }
    rows
}
