//! A machine's cards as samples, without who uses them: what health is judged by.

use inventory::readings::Fault;
use inventory::{Identity, Inventory, PciAddress, snapshot};
use root::Root;

use crate::card;
use crate::gpu::Card;
use crate::sample::{Labelled, Sample};

/// One card that amdgpu drives.
#[derive(Debug, Clone)]
pub struct CardSamples {
    pub pci: PciAddress,
    /// Nothing else is read of a card that is.
    pub is_suspended: bool,
    /// Without the labels of the GPU.
    pub samples: Vec<Sample>,
    pub faults: Vec<Fault>,
    /// Of its own VRAM; `None` for an APU, and where it is unknown.
    pub vram_used_bytes: Option<u64>,
    /// Its nodes in KFD's topology: one for each partition.
    pub kfd_nodes: Vec<u32>,
}

/// Reads each card once, in the order of their indexes.
#[must_use]
pub fn read(root: &Root, inventory: &Inventory) -> Vec<CardSamples> {
    let cards = Card::all(inventory);
    let read = |card: &Card<'_>| {
        let first = card.entries.first()?;
        let pci = first.pci.filter(|_| first.driver.as_deref() == Some("amdgpu"))?;
        let readings = amdgpu::readings::of_card(root, pci);
        let is_suspended = readings.is_suspended();
        let identity = Identity { is_apu: readings.is_apu, ..Identity::default() };
        let read = snapshot::Card { readings, identity, ..snapshot::Card::default() };
        let mut samples = Vec::new();
        if !is_suspended {
            card::card(&read, &mut Labelled::new(&[], &mut samples));
        }
        let vram = read.memory().filter(|memory| memory.pool == "vram");
        Some(CardSamples {
            pci,
            is_suspended,
            samples,
            vram_used_bytes: vram.and_then(|it| it.used_bytes),
            kfd_nodes: card.entries.iter().filter_map(|gpu| gpu.kfd_node).collect(),
            faults: read.readings.faults,
        })
    };
    cards.iter().filter_map(read).collect()
}
