//! A value of a metric.

pub use inventory::series::{Label, count, truth};

use crate::metric::Metric;

/// A line of the exposition.
#[derive(Debug, Clone)]
pub struct Sample {
    pub metric: &'static Metric,
    /// Name and value, in the order in which they are written.
    pub labels: Vec<Label>,
    pub value: f64,
}

/// Collects samples that all begin with equal labels: a GPU's labels, or none.
#[derive(Debug)]
pub struct Labelled<'a> {
    labels: &'a [Label],
    into: &'a mut Vec<Sample>,
}

impl<'a> Labelled<'a> {
    pub fn new(labels: &'a [Label], into: &'a mut Vec<Sample>) -> Self {
        Self { labels, into }
    }

    /// A value without further labels; one that is unknown is no sample.
    pub fn add(&mut self, metric: &'static Metric, value: impl Into<Option<f64>>) {
        self.add_with(metric, [], value);
    }

    /// A value with these labels beside those of all.
    pub fn add_with<const N: usize>(
        &mut self,
        metric: &'static Metric,
        labels: [Label; N],
        value: impl Into<Option<f64>>,
    ) {
        self.add_with_all(metric, labels.to_vec(), value);
    }

    /// Adds a sample as [`Self::add_with`] does, where the number of labels depends on what is known.
    pub fn add_with_all(
        &mut self,
        metric: &'static Metric,
        labels: Vec<Label>,
        value: impl Into<Option<f64>>,
    ) {
        if let Some(value) = value.into() {
            let labels = self.labels.iter().cloned().chain(labels).collect();
            self.into.push(Sample { metric, labels, value });
        }
    }
}
