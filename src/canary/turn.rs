//! Canaries take turns: each removes what an earlier one left.

use std::path::Path;
use std::time::Duration;

use root::{Lock, Root};

use super::names::PREFIX;
use super::nest::{self, FOLDER, Nest};

const LOCK: &str = "/run/rocworker/canary.lock";

/// Another canary takes as long as its engines.
const PATIENCE: Duration = Duration::from_secs(1);

/// The turn of this canary, as long as this value lives.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    lock: Option<Lock>,
    root: &'a Root,
}

impl<'a> Turn<'a> {
    /// Takes it, and removes what killed canaries left.
    pub(super) fn take(root: &'a Root) -> Result<Self, String> {
        let lock = root.lock(LOCK, PATIENCE).map_err(|error| match error {
            root::Error::Locked { .. } => "another rocworker doctor --canary runs".to_owned(),
            error => error.to_string(),
        })?;
        let turn = Self { lock: Some(lock), root };
        for name in root.list(FOLDER).map_err(|error| error.to_string())? {
            if name.to_string_lossy().starts_with(PREFIX) {
                nest::remove(root, &Path::new(FOLDER).join(name))?;
            }
        }
        Ok(turn)
    }

    /// A folder for the container of one engine: what one engine makes in its root file system, no other finds there.
    pub(super) fn nest(&self) -> Result<Nest<'a>, String> {
        Nest::build(self.root)
    }

    /// Ends it.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), String> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        self.root.remove(LOCK).map_err(|error| error.to_string())?;
        drop(lock);
        // The wrapper's folders may be there.
        self.root.remove_empty_folder(FOLDER).map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // It was not told to end, so that somebody is told of another reason already.
        self.clear().ok();
    }
}
