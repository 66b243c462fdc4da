//! A look at reads while they happen: a file of a driver that hangs never answers, and no call takes a time limit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Root};

/// Who is told of each read of a Root: of a file, a folder, a link, or what is at a path. What a [`crate::Reader`] reads is
/// not among them: it has a time limit of its own.
pub trait Watch: Send + Sync {
    /// Before the read of a path beneath the Root.
    ///
    /// # Errors
    /// How long an earlier read of this path has waited. The read then fails at once with [`Error::NoAnswer`], and
    /// [`Watch::end`] is not called.
    fn begin(&self, path: &Path) -> Result<(), Duration>;

    /// After the read, in the same thread.
    fn end(&self);
}

/// A read that has begun.
pub(crate) struct Reading<'r>(Option<&'r dyn Watch>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.0 {
            watch.end();
        }
    }
}

impl Root {
    /// Tells `watch` of each read from now on. Reads of one Root by several threads are told as they come.
    #[must_use]
    pub fn watched_by(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Each read begins here, but one of a [`crate::Reader`]. It lasts until what is returned is dropped.
    pub(crate) fn reading(&self, path: &Path) -> Result<Reading<'_>, Error> {
        self.keep_look(path);
        let Some(watch) = &self.watch else { return Ok(Reading(None)) };
        watch.begin(path).map_err(|waited| Error::NoAnswer { path: self.shown(path), waited })?;
        Ok(Reading(Some(watch.as_ref())))
    }
}
