//! Which metrics a rule may name: those that are read of a card.

use telemetry::metric::{Metric, Scope};
use telemetry::metrics::{self, ALL};

/// Of a card or of a partition, but not from what [`telemetry::readings`] reads: who uses it, what is asked only of a
/// suspended one, what takes a second to measure, and what the rules themselves say.
static NOT_READ: [&Metric; 15] = [
    &metrics::GPU_INFO,
    &metrics::GPU_SUSPENDED,
    &metrics::PCIE_TX,
    &metrics::PCIE_RX,
    &metrics::XGMI_LINKS,
    &metrics::GPU_HEALTH_SCORE,
    &metrics::GPU_HEALTH_STATE,
    &metrics::GPU_HANG,
    &metrics::GPU_QUARANTINED,
    &metrics::PROCESSES,
    &metrics::PROCESS_VRAM,
    &metrics::PROCESS_CU,
    &metrics::PROCESS_QUEUES,
    &metrics::CONTAINER_GPU_SECONDS,
    &metrics::CONTAINER_VRAM_PEAK,
];

/// The metric of this name.
///
/// # Errors
/// Says why no rule can name it.
pub(super) fn named(name: &str) -> Result<&'static Metric, String> {
    let Some(metric) = ALL.into_iter().find(|metric| metric.name == name) else {
        return Err(format!("{name:?} is no metric: take one of docs/metrics.md"));
    };
    let is_read = metric.scope != Scope::Machine
        && metric.name != metrics::LEASE.name
        && !NOT_READ.iter().any(|other| other.name == name);
    if is_read { Ok(metric) } else { Err(format!("{name} is no reading of a card: take another metric")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use layout::{Machine, Nodes};
    use root::Root;
    use support::captures;
    use telemetry::readings;

    use super::*;

    #[test]
    fn what_is_read_of_cards_can_be_named_and_what_is_not_cannot() {
        let read: BTreeSet<&str> = [Machine::instinct_in_trouble(2, 1), captures::rx7800xt()]
            .iter()
            .flat_map(|machine| {
                let folder = tempfile::tempdir().unwrap();
                machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
                let root = Root::open(folder.path()).unwrap();
                readings::read(&root, &amdgpu::read(&root))
            })
            .flat_map(|card| card.samples)
            .map(|sample| sample.metric.name)
            .collect();
        assert!(read.len() > 25, "{read:?}");
        for metric in ALL {
            let error = named(metric.name).err();
            assert_eq!(error.is_none(), read.contains(metric.name), "{}: {error:?}", metric.name);
        }
        assert_eq!(named("rocm_x").unwrap_err(), "\"rocm_x\" is no metric: take one of docs/metrics.md");
    }
}
