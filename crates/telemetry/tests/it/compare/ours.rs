//! The exporter's samples of a machine.

use std::path::Path;

use root::Root;
use telemetry::exporter::Exporter;
use telemetry::metrics;
use telemetry::sample::Sample;
use telemetry::samples::samples;

/// The samples of one scrape.
pub(crate) struct Ours(Vec<Sample>);

impl Ours {
    pub(crate) fn of(root: &Path) -> Self {
        Self(samples(&Exporter::default().scrape(&Root::open(root).unwrap(), 1_790_000_000.0)))
    }

    /// The card's value with these labels: of a card that is cut, that of its first partition.
    #[track_caller]
    pub(crate) fn value(&self, pci: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.find(pci, name, labels).map(|sample| sample.value)
    }

    /// A label of the card's series.
    #[track_caller]
    pub(crate) fn label(&self, pci: &str, name: &str, labels: &[(&str, &str)], label: &str) -> Option<&str> {
        self.find(pci, name, labels).and_then(|sample| value_of(sample, label))
    }

    #[track_caller]
    fn find(&self, pci: &str, name: &str, labels: &[(&str, &str)]) -> Option<&Sample> {
        assert!(metrics::ALL.iter().any(|metric| metric.name == name), "there is no metric {name}");
        self.0.iter().find(|sample| {
            let has = |(label, value): &(&str, &str)| value_of(sample, label) == Some(value);
            sample.metric.name == name && has(&("pci", pci)) && labels.iter().all(has)
        })
    }
}

fn value_of<'a>(sample: &'a Sample, label: &str) -> Option<&'a str> {
    sample.labels.iter().find(|(name, _)| *name == label).map(|(_, value)| value.as_str())
}

/// Whether two numbers are equal but for rounding: each program scales in floating point in its own way.
pub(crate) fn agree(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * ours.abs().max(theirs.abs())
}
