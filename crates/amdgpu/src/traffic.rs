//! PCIe traffic by `pcie_bw`, which the driver measures for a second at each read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use inventory::readings::PcieTraffic;
use inventory::{PciAddress, Vendor};
use root::patient::Patient;
use root::{Place, Root};

use crate::machine;
use crate::readings::pcie_traffic;

/// The time from one round over all cards to the next.
const ROUND: Duration = Duration::from_secs(10);
/// The age up to which a value counts.
const FRESH: Duration = Duration::from_secs(60);
/// Three times as long as the driver takes for a read.
const PATIENCE: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(5);

/// The last values of a thread that reads one card after the other. The thread ends once this value is dropped and its
/// current read has come back.
#[derive(Debug)]
pub struct Traffic {
    measured: Arc<Measured>,
    /// Never sent to: the thread waits for the end of its channel between two reads.
    _ends: Sender<()>,
}

#[derive(Debug, Default)]
struct Measured {
    values: Mutex<BTreeMap<PciAddress, (Instant, PcieTraffic)>>,
    stuck: AtomicUsize,
}

impl Traffic {
    /// Starts the thread, which measures for the first time after `delay`.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub fn start(place: impl Into<Place>, delay: Duration) -> io::Result<Self> {
        let place = place.into();
        let measured = Arc::new(Measured::default());
        let (ends, ended) = mpsc::channel();
        let to = Arc::clone(&measured);
        thread::Builder::new().name("pcie_bw".to_owned()).spawn(move || {
            let goes_on = |wait| ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
            let mut listing = Patient::new(place.clone(), PATIENCE, DEADLINE);
            let mut reading = Patient::new(place, PATIENCE, DEADLINE);
            let mut wait = delay;
            while goes_on(wait) {
                for address in listing.run(cards).unwrap_or_default() {
                    if !goes_on(Duration::ZERO) {
                        return;
                    }
                    if let Ok(Ok(value)) = reading.run(move |root| pcie_traffic(root, address)) {
                        to.put(address, Instant::now(), value);
                    }
                    to.stuck.store(listing.stuck() + reading.stuck(), Ordering::Relaxed);
                }
                wait = ROUND;
            }
        })?;
        Ok(Self { measured, _ends: ends })
    }

    /// The reads that have not come back.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.measured.stuck.load(Ordering::Relaxed)
    }

    /// A card's traffic, where it was measured within the last minute.
    #[must_use]
    pub fn of(&self, card: PciAddress) -> Option<PcieTraffic> {
        self.measured.of(card)
    }
}

impl Measured {
    fn put(&self, address: PciAddress, read: Instant, value: PcieTraffic) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(address, (read, value));
    }

    fn of(&self, card: PciAddress) -> Option<PcieTraffic> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(&card).filter(|(read, _)| read.elapsed() < FRESH).map(|(_, value)| *value)
    }
}

/// The cards that amdgpu drives.
fn cards(root: &Root) -> BTreeSet<PciAddress> {
    let gpus = machine::read(root).gpus;
    let driven = gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd && gpu.is_driven_by_amdgpu());
    driven.filter_map(|gpu| gpu.pci).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lasts_a_minute() {
        let measured = Measured::default();
        let addresses: [PciAddress; 3] =
            ["0000:03:00.0", "0000:83:00.0", "0000:a3:00.0"].map(|address| address.parse().unwrap());
        let value = PcieTraffic { received_bytes_per_second: 1.0, sent_bytes_per_second: 2.0 };
        for (address, seconds) in addresses.into_iter().zip([50, 61]) {
            measured.put(address, Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap(), value);
        }
        assert_eq!(addresses.map(|address| measured.of(address)), [Some(value), None, None]);
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let traffic = Traffic::start(folder.path().to_owned(), Duration::from_secs(3600)).unwrap();
        let measured = Arc::downgrade(&traffic.measured);
        drop(traffic);
        let begun = Instant::now();
        while measured.strong_count() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "the thread goes on");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
