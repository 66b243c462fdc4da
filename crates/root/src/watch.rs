//! A look at reads while they happen: a file of a driver that hangs never answers, and no call takes a time limit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Root};

/// Observes each read of a Root: of a file, a folder, a link, or metadata. Reads through a [`crate::Reader`]
/// are not observed: they have a time limit of their own.
pub trait Watch: Send + Sync {
    /// Called before the read of a path beneath the Root.
    ///
    /// # Errors
    /// How long an earlier read of this path has waited. The read then fails at once with [`Error::NoAnswer`], and
    /// [`Watch::end`] is not called.
    fn begin(&self, path: &Path) -> Result<(), Duration>;

    /// Called after the read, in the thread that has read.
    fn end(&self);
}

/// A read that has begun.
pub(crate) struct PendingRead<'r>(Option<&'r dyn Watch>);

impl Drop for PendingRead<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.0 {
            watch.end();
        }
    }
}

impl Root {
    /// Reports each read to `watch` from now on. Reads of several threads are reported as they come.
    #[must_use]
    pub fn watched_by(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Begins every read but those of a [`crate::Reader`]. The read lasts until the returned value is
    /// dropped.
    pub(crate) fn reading(&self, path: &Path) -> Result<PendingRead<'_>, Error> {
        self.keep_look(path);
        let Some(watch) = &self.watch else { return Ok(PendingRead(None)) };
        watch.begin(path).map_err(|waited| Error::NoAnswer { path: self.shown(path), waited })?;
        Ok(PendingRead(Some(watch.as_ref())))
    }
}
