//! From a machine's files to samples.

use root::Root;

use crate::sample::Sample;

/// What is kept between two scrapes: counts of failed reads, what containers have used, the identity of GPUs that are
/// suspended now.
#[derive(Debug, Default)]
pub struct Exporter {}

impl Exporter {
    /// Reads the machine once. `now`: seconds since 1970.
    pub fn scrape(&mut self, _root: &Root, _now: f64) -> Vec<Sample> {
        Vec::new()
    }
}
