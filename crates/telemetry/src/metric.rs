//! Every metric that the exporter may emit: one table, from which the exposition and docs/metrics.md are made.

/// What Prometheus is told of a metric (`# TYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    /// Its name ends in `_total`, as promtool and OpenMetrics want it.
    Counter,
    /// A name that the source of this product chose against promtool's conventions.
    Untyped,
    /// A gauge that is always 1 and whose labels are the answer; its name ends in `_info`.
    Info,
}

/// A metric: what it is called, what it means and where the kernel says it.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// Prometheus' base unit: `bytes`, `celsius`, `ratio`; empty where it counts.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// The labels beside those of its GPU.
    pub labels: &'static [&'static str],
    /// The files, relative to the card's device folder unless they begin with `/`.
    pub source: &'static str,
    /// The field of NVIDIA's DCGM that says the same, or nothing.
    pub dcgm: &'static str,
    /// The metric of AMD's Device Metrics Exporter that says the same, or nothing.
    pub dme: &'static str,
}
