//! A machine's cards as samples, without who uses them: what health is judged by.

use amdgpu::readings::{CardReadings, Fault};
use amdgpu::{Address, Machine};
use root::Root;

use crate::card;
use crate::gpu::Card;
use crate::sample::{Labelled, Sample};

/// One card that amdgpu drives.
#[derive(Debug, Clone)]
pub struct CardSamples {
    pub pci: Address,
    /// Nothing else is read of a card that is.
    pub is_suspended: bool,
    /// Without the labels of the GPU.
    pub samples: Vec<Sample>,
    pub faults: Vec<Fault>,
}

/// Reads each card once, in the order of their indexes.
#[must_use]
pub fn read(root: &Root, machine: &Machine) -> Vec<CardSamples> {
    let cards = Card::all(machine);
    let driven = cards.iter().filter_map(|card| card.entries.first());
    let addresses = driven.filter(|gpu| gpu.driver.as_deref() == Some("amdgpu")).filter_map(|gpu| gpu.pci);
    let read = |pci| {
        let readings = CardReadings::read(root, pci);
        let is_suspended = readings.is_suspended();
        let mut samples = Vec::new();
        if !is_suspended {
            card::card(&readings, readings.is_apu, &mut Labelled::new(&[], &mut samples));
        }
        CardSamples { pci, is_suspended, samples, faults: readings.faults }
    };
    addresses.map(read).collect()
}
