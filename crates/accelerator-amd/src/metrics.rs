//! The readings of GPUs, in the hypervisor's units.

use std::collections::{BTreeMap, BTreeSet};

use inventory::readings::{CardReadings, Clock, Fault, PcieTraffic};
use inventory::{PciAddress, snapshot};
use root::Root;

use crate::device::memory_bytes;
use crate::offered::{Offered, offered};

/// The most further metrics of a GPU that the hypervisor takes; with more it ends.
pub(crate) const MOST_EXTRA: usize = 64;

/// The readings of one GPU. A partition's power and traffic are not known: they are its card's.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) watts: Option<f64>,
    pub(crate) celsius: Option<f64>,
    pub(crate) received_kilobytes: Option<u64>,
    pub(crate) sent_kilobytes: Option<u64>,
    pub(crate) busy_percent: Option<f64>,
    pub(crate) memory_used_bytes: Option<u64>,
    /// Further metrics, by names that are none of the hypervisor's own. The values are finite: the hypervisor's encoder drops a
    /// whole batch of metrics at one that is not.
    extra: BTreeMap<String, f64>,
}

impl Metrics {
    /// The further metrics, with the number of the six fixed readings that are unknown and so read 0.
    pub(crate) fn extra(&self) -> impl Iterator<Item = (&str, f64)> {
        let fixed = [
            self.watts.is_some(),
            self.celsius.is_some(),
            self.received_kilobytes.is_some(),
            self.sent_kilobytes.is_some(),
            self.busy_percent.is_some(),
            self.memory_used_bytes.is_some(),
        ];
        let unknown = fixed.iter().filter(|is_known| !**is_known).count();
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), *value));
        std::iter::once(("unknown_readings", unknown as f64)).chain(extra).take(MOST_EXTRA)
    }

    /// Adds what a card's thread has measured of its traffic, per second.
    pub(crate) fn add_traffic(&mut self, traffic: PcieTraffic) {
        self.received_kilobytes = Some(kilobytes(traffic.received_bytes_per_second));
        self.sent_kilobytes = Some(kilobytes(traffic.sent_bytes_per_second));
    }

    fn add(&mut self, name: impl Into<String>, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.extra.insert(name.into(), value);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a traffic is positive and far from 2⁶⁴"
)]
fn kilobytes(bytes: f64) -> u64 {
    (bytes / 1000.0).round() as u64
}

/// Reads the GPUs of these uuids, in any case, each with the card whose traffic is its own. An entry is `None` where no such
/// GPU is there.
#[expect(clippy::type_complexity, reason = "an answer for each uuid")]
pub(crate) fn metrics(
    root: &Root,
    uuids: &[String],
    node: Option<&str>,
) -> (Vec<Option<(Metrics, Option<PciAddress>)>>, Vec<String>) {
    let inventory = amdgpu::read(root);
    let cards = inventory.cards();
    // How a card is divided stands in nine more files, and no reading here needs it.
    let gpus = offered(&cards, &[], node);
    let asked: Vec<Option<&Offered<'_>>> =
        uuids.iter().map(|uuid| gpus.iter().find(|it| it.uuid.eq_ignore_ascii_case(uuid))).collect();
    let needed: BTreeSet<usize> = asked.iter().flatten().map(|it| it.card).collect();
    let read: BTreeMap<usize, snapshot::Card> = needed
        .into_iter()
        .filter_map(|place| Some((place, amdgpu::snapshot::card(root, cards.get(place)?))))
        .collect();
    let mut faults = Vec::new();
    let used = used_by_processes(root, &asked, &mut faults);
    let of = |it: &Offered<'_>| {
        let card = read.get(&it.card)?;
        let metrics = if it.part.is_some() { of_partition(root, it, card, &used) } else { of_card(it, card) };
        Some((metrics, card.pci.filter(|_| it.part.is_none())))
    };
    let found = asked.iter().map(|it| it.and_then(of)).collect();
    faults.extend(read.values().flat_map(|card| card.readings.faults.clone()));
    (found, faults.iter().map(|fault| fault.reason.to_string()).collect())
}

/// The VRAM of all processes on each partition, by KFD's node: no file of the driver has a partition's use.
fn used_by_processes(
    root: &Root,
    asked: &[Option<&Offered<'_>>],
    faults: &mut Vec<Fault>,
) -> BTreeMap<u32, u64> {
    let parts = || asked.iter().flatten().filter(|it| it.part.is_some());
    let mut used = BTreeMap::new();
    if parts().next().is_none() {
        return used;
    }
    let Some(uses) = amdgpu::processes::uses_without_units(root, faults) else { return used };
    for node in parts().filter_map(|it| it.gpu.kfd_node) {
        let Some(id) = amdgpu::processes::gpu_id(root, node, faults) else { continue };
        let on_it = uses.iter().filter(|it| it.gpu_id == id);
        let bytes: Option<u64> = on_it.map(|it| it.vram_bytes).sum();
        if let Some(bytes) = bytes {
            used.insert(node, bytes);
        }
    }
    used
}

fn of_card(offered: &Offered<'_>, card: &snapshot::Card) -> Metrics {
    let readings = &card.readings;
    let memory = readings.own_memory();
    let mut metrics = Metrics {
        watts: card.watts(),
        celsius: card.limiting_celsius(),
        busy_percent: readings.busy_percent,
        memory_used_bytes: memory.and_then(|memory| memory.used_bytes),
        ..Metrics::default()
    };
    add_clocks(&mut metrics, &readings.clocks);
    metrics.add("memory_total_bytes", memory_bytes(offered, card).map(|bytes| bytes as f64));
    metrics.add("memory_busy_percent", readings.memory_busy_percent);
    metrics.add("power_cap_watts", card.watts_limit());
    metrics.add("energy_joules", readings.energy_joules);
    add_of_card(&mut metrics, card);
    metrics
}

fn of_partition(
    root: &Root,
    offered: &Offered<'_>,
    card: &snapshot::Card,
    used: &BTreeMap<u32, u64>,
) -> Metrics {
    let gpu = offered.gpu;
    let readings = amdgpu::snapshot::partition(root, &card.readings, gpu);
    let mut metrics = Metrics {
        celsius: card.limiting_celsius(),
        busy_percent: readings.busy_percent,
        memory_used_bytes: gpu.kfd_node.and_then(|node| used.get(&node).copied()),
        ..Metrics::default()
    };
    add_clocks(&mut metrics, &readings.clocks);
    metrics.add("memory_total_bytes", memory_bytes(offered, card).map(|bytes| bytes as f64));
    metrics.add("card_power_watts", card.watts());
    add_of_card(&mut metrics, card);
    metrics
}

/// The highest clock of each domain: a card has one for each XCD.
fn add_clocks(metrics: &mut Metrics, clocks: &[Clock]) {
    for (domain, name) in [
        ("sclk", "graphics_clock_mhz"),
        ("mclk", "memory_clock_mhz"),
        ("vclk", "video_clock_mhz"),
        ("fclk", "fabric_clock_mhz"),
    ] {
        let of_domain = clocks.iter().filter(|clock| clock.domain == domain).map(|clock| clock.hertz);
        metrics.add(name, of_domain.reduce(f64::max).map(|hertz| hertz / 1e6));
    }
}

/// Adds readings of a card that hold for each of its partitions.
fn add_of_card(metrics: &mut Metrics, card: &snapshot::Card) {
    let readings = &card.readings;
    for (sensor, celsius) in
        card.temperatures().filter(|(sensor, _)| matches!(*sensor, "edge" | "junction" | "mem"))
    {
        metrics.add(format!("temperature_{sensor}_celsius"), Some(celsius));
    }
    for (cause, is_active) in &readings.throttle.status {
        metrics.add(format!("throttled_{cause}"), Some(f64::from(u8::from(*is_active))));
    }
    metrics.add("ras_correctable_errors", errors(readings, |block| block.correctable));
    metrics.add("ras_uncorrectable_errors", errors(readings, |block| block.uncorrectable));
    metrics.add("retired_pages", readings.retired_pages.map(|pages| pages.retired as f64));
    let is_suspended = card.is_suspended();
    metrics.add("suspended", is_suspended.map(|is_suspended| f64::from(u8::from(is_suspended))));
}

/// The sum over the blocks that count; `None` where none does.
fn errors(
    readings: &CardReadings,
    of: impl Fn(&inventory::readings::RasBlock) -> Option<u64>,
) -> Option<f64> {
    let counts = readings.ras.iter().filter_map(of);
    counts.map(|count| count as f64).reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_in_kilobytes_and_what_is_unknown_is_counted() {
        let mut metrics = Metrics { watts: Some(1.0), ..Metrics::default() };
        assert_eq!(metrics.extra().next(), Some(("unknown_readings", 5.0)));
        let traffic =
            PcieTraffic { received_bytes_per_second: 1_280_000_400.0, sent_bytes_per_second: 1_499.0 };
        metrics.add_traffic(traffic);
        assert_eq!((metrics.received_kilobytes, metrics.sent_kilobytes), (Some(1_280_000), Some(1)));
        assert_eq!(metrics.extra().next(), Some(("unknown_readings", 3.0)));
    }

    #[test]
    fn a_reading_that_is_no_finite_number_is_left_out_and_there_are_at_most_64() {
        let mut metrics = Metrics::default();
        metrics.add("nan", Some(f64::NAN));
        metrics.add("infinite", Some(f64::INFINITY));
        metrics.add("unknown", None);
        assert_eq!(metrics.extra().count(), 1);
        (0..100).for_each(|number| metrics.add(number.to_string(), Some(1.0)));
        assert_eq!(metrics.extra().count(), MOST_EXTRA);
    }
}
