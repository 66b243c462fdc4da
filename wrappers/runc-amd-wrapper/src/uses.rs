//! How many containers use a GPU now, by the records that their creates left.

use std::path::Path;

use allocation::record::{Record, RecordedGpu};
use allocation::selection::Gpu;

use crate::container::is_in_use;
use crate::paths::Paths;
use crate::store::{Key, Lock, Store};

/// GPUs in use, one entry for each container that has one.
#[derive(Debug, Default)]
pub struct Uses(Vec<RecordedGpu>);

impl Uses {
    /// Counts, but for the container `besides`, and removes the records of containers that are gone.
    /// Records that cannot be read are passed over: under `shared` a wrong count costs speed, nothing else.
    pub fn count(store: &Store, lock: &Lock, besides: Key<'_>, paths: &Paths) -> Self {
        let mut gpus = Vec::new();
        for (path, text) in store.all(lock).unwrap_or_default() {
            let Ok(record) = Record::parse(&text) else { continue };
            if record.id == besides.id && Path::new(&record.root) == besides.root {
                continue;
            }
            if is_in_use(&record, paths) {
                gpus.extend(record.gpus);
            } else {
                // It was only in the way; a record that stays is looked at again next time.
                let _ = std::fs::remove_file(path);
            }
        }
        Self(gpus)
    }

    pub fn of(&self, gpu: &Gpu) -> usize {
        self.0.iter().filter(|used| used.is(gpu)).count()
    }
}
