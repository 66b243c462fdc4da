//! How many containers use a GPU now, by the records that their creates left.

use allocation::record::RecordedGpu;
use allocation::selection::Gpu;

use crate::lock::Lock;
use crate::paths::Paths;
use crate::reap;
use crate::store::{Key, Store};

/// GPUs in use, one entry for each container that has one.
#[derive(Debug, Default)]
pub struct Uses(Vec<RecordedGpu>);

impl Uses {
    /// Counts, but for the container `besides`, and removes the records of containers that are gone.
    /// Records that cannot be read are passed over: under `shared` a wrong count costs speed, nothing else.
    pub fn count(store: &Store<'_>, lock: &Lock, besides: Key<'_>, paths: &Paths) -> Self {
        let living = reap::all(store, lock, paths, |record| besides.is_of(record)).unwrap_or_default();
        Self(living.into_iter().flat_map(|record| record.gpus).collect())
    }

    pub fn of(&self, gpu: &Gpu) -> usize {
        self.0.iter().filter(|used| used.is(gpu)).count()
    }
}
