//! PCIe traffic by `pcie_bw`, which the driver measures for a second at each read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amdgpu::readings::{PcieTraffic, pcie_traffic};
use amdgpu::{Address, Machine, Vendor};
use root::Root;
use telemetry::metrics;
use telemetry::patient::Patient;
use telemetry::sample::{Label, Sample};

/// From one round over all cards to the next.
const ROUND: Duration = Duration::from_secs(10);
/// An older value says nothing of now.
const FRESH: Duration = Duration::from_secs(60);
/// Three times what the driver takes.
const PATIENCE: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(5);

/// The last values of a thread that reads one card after the other.
#[derive(Default)]
pub(crate) struct Traffic {
    values: Mutex<BTreeMap<Address, (Instant, PcieTraffic)>>,
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

    fn put(&self, address: Address, read: Instant, value: PcieTraffic) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(address, (read, value));
    }

    /// With the labels that the cards have in a scrape; a card without a fresh value has no sample.
    pub(crate) fn samples(&self, scrape: &[Sample]) -> Vec<Sample> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = values.iter().filter(|(_, (read, _))| read.elapsed() < FRESH);
        fresh
            .filter_map(|(address, (_, value))| Some((labels(scrape, *address)?, value)))
            .flat_map(samples)
            .collect()
    }
}

fn samples((labels, traffic): (Vec<Label>, &PcieTraffic)) -> [Sample; 2] {
    let sample = |metric, value| Sample { metric, labels: labels.clone(), value };
    [
        sample(&metrics::PCIE_TX, traffic.sent_bytes_per_second),
        sample(&metrics::PCIE_RX, traffic.received_bytes_per_second),
    ]
}

/// Which labels name the card: those of its identity without what is an identity's own.
fn labels(scrape: &[Sample], address: Address) -> Option<Vec<Label>> {
    let pci = address.to_string();
    let of_card = |sample: &&Sample| {
        std::ptr::eq(sample.metric, &metrics::GPU_INFO) && sample.labels.contains(&("pci", pci.clone()))
    };
    let labels = scrape.iter().find(of_card)?.labels.iter();
    Some(labels.filter(|(name, _)| !metrics::GPU_INFO.labels.contains(name)).cloned().collect())
}

/// Those of the driver.
fn cards(root: &Root) -> BTreeSet<Address> {
    let gpus = Machine::read(root).gpus;
    let driven =
        gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd && gpu.driver.as_deref() == Some("amdgpu"));
    driven.filter_map(|gpu| gpu.pci).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lasts_a_minute_and_has_its_cards_labels() {
        let traffic = Traffic::default();
        let (fresh, old) = ("0000:03:00.0".parse().unwrap(), "0000:83:00.0".parse().unwrap());
        let value = PcieTraffic { received_bytes_per_second: 1.0, sent_bytes_per_second: 2.0 };
        traffic.put(fresh, Instant::now().checked_sub(Duration::from_secs(50)).unwrap(), value);
        traffic.put(old, Instant::now().checked_sub(Duration::from_secs(61)).unwrap(), value);
        let info = |pci: &str| {
            let labels = [("gpu", "0"), ("pci", pci), ("vbios", "x")];
            let labels = labels.map(|(name, value)| (name, value.to_owned())).to_vec();
            Sample { metric: &metrics::GPU_INFO, labels, value: 1.0 }
        };
        let samples = traffic.samples(&[info("0000:03:00.0"), info("0000:83:00.0")]);
        let samples: Vec<_> = samples.iter().map(|sample| (sample.metric.name, sample.value)).collect();
        assert_eq!(samples, [("rocm_pcie_tx", 2.0), ("rocm_pcie_rx", 1.0)]);
        let labels = &traffic.samples(&[info("0000:03:00.0")])[0].labels;
        assert_eq!(*labels, [("gpu", "0".to_owned()), ("pci", "0000:03:00.0".to_owned())]);
        assert!(traffic.samples(&[]).is_empty(), "a card that is gone");
    }
}
