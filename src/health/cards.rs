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
    patient: Patient<Vec<Card>>,
}

impl Cards {
    pub(super) fn new(root: &Root) -> Self {
        Self { patient: Patient::new(root.shown("/"), PATIENCE, DEADLINE) }
    }

    /// In the order of their addresses. Where reading fails: the last known cards without a reading, and why.
    pub(super) fn read(&mut self, last: Option<&Health>) -> (Vec<Card>, Option<String>) {
        match self.patient.run(all) {
            Ok(cards) => (cards, None),
            Err(error) => {
                let known = last.map_or(&[][..], |health| &health.gpus);
                let cards = known.iter().map(|gpu| blank(address(gpu.pci))).collect();
                (cards, Some(format!("The GPUs cannot be read: {error}")))
            }
        }
    }
}

fn all(root: &Root) -> Vec<Card> {
    let machine = Machine::read(root);
    let mut cards: Vec<Card> =
        readings::read(root, &machine).into_iter().map(|samples| driven(root, samples)).collect();
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
    cards
}

fn driven(root: &Root, read: CardSamples) -> Card {
    let CardSamples { pci, is_suspended, samples, faults } = read;
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

fn address(pci: PciAddress) -> Address {
    let PciAddress { domain, bus, device, function } = pci;
    Address { domain, bus, device, function }
}
