//! Which series there are, and the labels that they may have.

use std::collections::{BTreeMap, BTreeSet};

use telemetry::metrics::ALL;

use crate::expression::labels_of;
use crate::files::{self, DCGM};

pub(crate) type Labels = BTreeSet<String>;
/// Labels by the name of a metric.
pub(crate) type Series = BTreeMap<String, Labels>;

/// Of each target: Prometheus' own.
pub(crate) const TARGET: [&str; 2] = ["instance", "job"];
/// Of each GPU.
pub(crate) const GPU: [&str; 6] = ["gpu", "uuid", "pci", "model", "gfx", "partition"];
/// Metrics of the machine, without the labels of a GPU.
pub(crate) const OF_THE_MACHINE: [&str; 7] = [
    "rocm_drift_paths",
    "rocm_pending_restarts",
    "rocm_daemon_published_timestamp_seconds",
    "rocm_exporter_read_errors_total",
    "rocm_exporter_stuck_reads",
    "rocm_exporter_scrape_duration_seconds",
    "rocm_exporter_build_info",
];

pub(crate) fn set<'a>(labels: impl IntoIterator<Item = &'a str>) -> Labels {
    labels.into_iter().map(str::to_owned).collect()
}

/// What the exporter emits, and Prometheus' `up`.
pub(crate) fn by_the_exporter() -> Series {
    let mut series = Series::from([("up".to_owned(), set(TARGET))]);
    for metric in ALL {
        let mut labels = set(TARGET.into_iter().chain(metric.labels.iter().copied()));
        if !OF_THE_MACHINE.contains(&metric.name) {
            labels.extend(set(GPU));
        }
        series.insert(metric.name.to_owned(), labels);
    }
    series
}

/// What a dashboard may name: the recording rules' series, too.
pub(crate) fn with_recorded() -> Series {
    let mut series = by_the_exporter();
    for rule in files::rules(&files::text(DCGM)) {
        let labels = labels_of(rule.expression(), &series).unwrap();
        series.insert(rule.name().to_owned(), labels);
    }
    series
}

#[test]
fn each_metric_of_the_machine_is_in_the_table() {
    for name in OF_THE_MACHINE {
        assert!(ALL.iter().any(|metric| metric.name == name), "{name}");
    }
}
