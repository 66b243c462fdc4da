//! AMD's cards as health is judged by them.

use allocation::PciAddress;
use allocation::health::Health;
use amdgpu::{Address, Machine};
use gpu_health::judge::Card;
use root::Root;
use telemetry::patient::{DEADLINE, PATIENCE, Patient};
use telemetry::readings::{self, CardSamples};

/// Of one card, so many files that gave no value are named.
const MOST_UNREAD: usize = 8;

/// Reads the cards in a thread of its own, which a file that hangs does not keep.
#[derive(Debug)]
pub(super) struct Cards {
    patient: Patient<Read>,
}

/// What a reading of all cards gives.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// In the order of their addresses.
    pub(super) cards: Vec<Card>,
    pub(super) memory: Vec<Memory>,
}

/// How much of a card's own memory is in use, whoever uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pub pci: Address,
    /// `None` for an APU, while it is suspended, and where it is unknown.
    pub vram_used_bytes: Option<u64>,
    /// Its nodes in KFD's topology: one for each partition.
    pub kfd_nodes: Vec<u32>,
}

impl Cards {
    pub(super) fn new(root: &Root) -> Self {
        Self { patient: Patient::new(root.shown("/"), PATIENCE, DEADLINE) }
    }

    /// Where reading fails: the last known cards without a reading, and why.
    pub(super) fn read(&mut self, last: Option<&Health>) -> (Read, Option<String>) {
        match self.patient.run(all) {
            Ok(read) => (read, None),
            Err(error) => {
                let known = last.map_or(&[][..], |health| &health.gpus);
                let cards = known.iter().map(|gpu| blank(address(gpu.pci))).collect();
                (Read { cards, ..Read::default() }, Some(format!("The GPUs cannot be read: {error}")))
            }
        }
    }
}

fn all(root: &Root) -> Read {
    let machine = Machine::read(root);
    let read = readings::read(root, &machine);
    let memory = read.iter().map(memory).collect();
    let mut cards: Vec<Card> = read.into_iter().map(|samples| driven(root, samples)).collect();
    for gpu in machine.gpus.iter().filter(|gpu| gpu.index.is_some()) {
        let Some(pci) = gpu.pci.filter(|pci| !cards.iter().any(|card| card.pci == *pci)) else { continue };
        let unread = match &gpu.driver {
            Some(driver) => format!("{driver} drives it: only amdgpu says how a GPU is"),
            None => "No driver is bound to it: only amdgpu says how a GPU is".to_owned(),
        };
        let bridges = bridges(root, pci);
        cards.push(Card { bridges, is_driven: false, unread: vec![unread], ..blank(pci) });
    }
    cards.sort_by_key(|card| card.pci);
    Read { cards, memory }
}

fn memory(read: &CardSamples) -> Memory {
    let CardSamples { pci, vram_used_bytes, kfd_nodes, .. } = read;
    Memory { pci: *pci, vram_used_bytes: *vram_used_bytes, kfd_nodes: kfd_nodes.clone() }
}

fn driven(root: &Root, read: CardSamples) -> Card {
    let CardSamples { pci, is_suspended, samples, faults, .. } = read;
    let mut unread: Vec<String> = faults.iter().map(|fault| fault.reason.to_string()).collect();
    if unread.len() > MOST_UNREAD {
        let more = unread.len() - MOST_UNREAD;
        unread.truncate(MOST_UNREAD);
        unread.push(format!("{more} more files gave no value: see rocworker metrics -v"));
    }
    if is_suspended {
        unread.push("It is suspended: no reading wakes it, and the kernel's log alone was judged".to_owned());
    }
    Card { pci, bridges: bridges(root, pci), is_driven: true, samples, unread }
}

fn blank(pci: Address) -> Card {
    Card { pci, bridges: Vec::new(), is_driven: true, samples: Vec::new(), unread: Vec::new() }
}

/// The bridges above a function: the folders on the way to its own, `../../../devices/pci0000:00/0000:00:01.1/0000:03:00.0`.
fn bridges(root: &Root, pci: Address) -> Vec<Address> {
    let Ok(target) = root.read_link(format!("/sys/bus/pci/devices/{pci}")) else { return Vec::new() };
    let names = target.iter().filter_map(|name| name.to_str()?.parse().ok());
    names.filter(|address| *address != pci).collect()
}

pub fn address(pci: PciAddress) -> Address {
    let PciAddress { domain, bus, device, function } = pci;
    Address { domain, bus, device, function }
}
