//! Describes a metric. [`crate::metrics`] is the table of all, from which the exposition and docs/metrics.md
//! are made.

use inventory::readings::CardReadings;
use inventory::series::{Series, Value};

/// The metric's type in the exposition (`# TYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    /// A counter; its name ends in `_total`, as promtool and OpenMetrics require.
    Counter,
    /// A name that the source of this product chose against promtool's conventions.
    Untyped,
    /// A gauge that is always 1 and whose labels are the answer; its name ends in `_info`.
    Info,
}

impl Kind {
    /// The word of this product's documents and JSON, and of the formats where they have one.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Untyped => "untyped",
            Self::Info => "info",
        }
    }
}

/// The subject of a metric's series, which decides their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A card as a whole, partitioned or not: [`GPU_LABELS`] without `partition`.
    Card,
    /// A card, or one partition of a card: [`GPU_LABELS`].
    Gpu,
    /// The machine: no label of a GPU.
    Machine,
}

/// The labels by which a series names its GPU, in the order in which they are written.
pub const GPU_LABELS: [&str; 6] = ["gpu", "uuid", "pci", "model", "gfx", "partition"];

/// A metric: what it is called, what it means and where the kernel says it.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    /// Prometheus' base unit: `bytes`, `celsius`, `ratio`; empty where it counts.
    pub unit: &'static str,
    /// One sentence for `# HELP`.
    pub help: &'static str,
    /// The labels beside those of its GPU.
    pub labels: &'static [&'static str],
    /// The files, relative to the card's device folder unless they begin with `/`.
    pub source: &'static str,
    /// The equivalent fields of NVIDIA's DCGM, or nothing.
    pub dcgm: &'static str,
    /// The equivalent metrics of AMD's Device Metrics Exporter, or nothing.
    pub dme: &'static str,
    /// For a reading: takes its values from a card that is awake. Other metrics have `None` and come from the
    /// rest of the snapshot.
    pub values: Option<fn(&CardReadings) -> Vec<Value>>,
}

impl Metric {
    /// A metric of a reading, without what documents it.
    pub(crate) const fn of(series: &Series) -> Self {
        let (name, labels, values) = (series.name, series.labels, Some(series.values));
        Self { name, labels, values, ..Self::OF_NO_READING }
    }

    /// A metric without its name and what documents it.
    pub(crate) const OF_NO_READING: Self = Self {
        name: "",
        scope: Scope::Machine,
        kind: Kind::Gauge,
        unit: "",
        help: "",
        labels: &[],
        source: "",
        dcgm: "",
        dme: "",
        values: None,
    };
}
