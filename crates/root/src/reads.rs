//! What a caller reads through a Root, kept: a report packs it, and so is what that caller read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Root};

/// What a caller asked of a path.
#[derive(Debug, Clone)]
pub enum Kept {
    /// What is there: it was listed, examined, or its link was read.
    Looked,
    /// A file's bytes, with what came back.
    Read(Result<Vec<u8>, Error>),
}

/// By path beneath the Root.
pub(crate) type Reads = Mutex<BTreeMap<PathBuf, Kept>>;

impl Root {
    /// Keeps what is read through this Root from now on.
    #[must_use]
    pub fn keeping_reads(mut self) -> Self {
        self.reads = Some(Reads::default());
        self
    }

    /// What was read since [`Root::keeping_reads`], whether it was there or not; of several reads of a file the last.
    #[must_use]
    pub fn reads(&self) -> BTreeMap<PathBuf, Kept> {
        let reads = self.reads.as_ref().map(|reads| reads.lock().unwrap_or_else(PoisonError::into_inner));
        reads.map(|reads| reads.clone()).unwrap_or_default()
    }

    pub(crate) fn keep_look(&self, path: &Path) {
        if let Some(reads) = &self.reads {
            let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
            reads.entry(path.to_owned()).or_insert(Kept::Looked);
        }
    }

    pub(crate) fn keep_read(&self, path: &Path, read: &Result<Vec<u8>, Error>) {
        if let Some(reads) = &self.reads {
            let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
            reads.insert(path.to_owned(), Kept::Read(read.clone()));
        }
    }
}
