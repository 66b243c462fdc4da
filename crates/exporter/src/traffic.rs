//! PCIe traffic by `pcie_bw`, which the driver measures for a second at each read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amdgpu::readings::pcie_traffic;
use inventory::readings::PcieTraffic;
use inventory::{PciAddress, Snapshot, Vendor};
use root::Root;
use telemetry::patient::Patient;

/// The time from one round over all cards to the next.
const ROUND: Duration = Duration::from_secs(10);
/// The age up to which a value counts.
const FRESH: Duration = Duration::from_secs(60);
/// Three times as long as the driver takes for a read.
const PATIENCE: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(5);

/// The last values of a thread that reads one card after the other.
#[derive(Default)]
pub(crate) struct Traffic {
    values: Mutex<BTreeMap<PciAddress, (Instant, PcieTraffic)>>,
    stuck: AtomicUsize,
}

impl Traffic {
    pub(crate) fn start(root: PathBuf) -> io::Result<Arc<Self>> {
        let traffic = Arc::new(Self::default());
        let measured = Arc::clone(&traffic);
        thread::Builder::new().name("pcie_bw".to_owned()).spawn(move || {
            let mut listing = Patient::new(root.clone(), PATIENCE, DEADLINE);
            let mut reading = Patient::new(root, PATIENCE, DEADLINE);
            loop {
                for address in listing.run(cards).unwrap_or_default() {
                    if let Ok(Ok(value)) = reading.run(move |root| pcie_traffic(root, address)) {
                        measured.put(address, Instant::now(), value);
                    }
                    measured.stuck.store(listing.stuck() + reading.stuck(), Ordering::Relaxed);
                }
                thread::sleep(ROUND);
            }
        })?;
        Ok(traffic)
    }

    /// The reads that have not come back.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    fn put(&self, address: PciAddress, read: Instant, value: PcieTraffic) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(address, (read, value));
    }

    /// Puts into a snapshot what is fresh.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot) {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        for card in &mut snapshot.cards {
            let value = card.pci.and_then(|pci| values.get(&pci));
            card.traffic = value.filter(|(read, _)| read.elapsed() < FRESH).map(|(_, value)| *value);
        }
    }
}

/// The cards that amdgpu drives.
fn cards(root: &Root) -> BTreeSet<PciAddress> {
    let gpus = amdgpu::read(root).gpus;
    let driven = gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd && gpu.is_driven_by_amdgpu());
    driven.filter_map(|gpu| gpu.pci).collect()
}

#[cfg(test)]
mod tests {
    use inventory::snapshot::Card;

    use super::*;

    #[test]
    fn a_value_lasts_a_minute() {
        let traffic = Traffic::default();
        let addresses: [PciAddress; 3] =
            ["0000:03:00.0", "0000:83:00.0", "0000:a3:00.0"].map(|address| address.parse().unwrap());
        let value = PcieTraffic { received_bytes_per_second: 1.0, sent_bytes_per_second: 2.0 };
        for (address, seconds) in addresses.into_iter().zip([50, 61]) {
            traffic.put(address, Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap(), value);
        }
        let cards = addresses.map(|pci| Card { pci: Some(pci), ..Card::default() });
        let mut snapshot = Snapshot { cards: cards.into(), ..Snapshot::default() };
        traffic.add_to(&mut snapshot);
        let found: Vec<_> = snapshot.cards.iter().map(|card| card.traffic).collect();
        assert_eq!(found, [Some(value), None, None]);
    }
}
