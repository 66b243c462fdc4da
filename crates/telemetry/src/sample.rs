//! One value of one metric.

use crate::metric::Metric;

/// A line of the exposition.
#[derive(Debug, Clone)]
pub struct Sample {
    pub metric: &'static Metric,
    /// Name and value, in the order in which they are written.
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
}
