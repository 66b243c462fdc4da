//! Keeps what a caller reads through a Root, so that a report can pack it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Root};

/// What a caller has read of a path.
#[derive(Debug, Clone)]
pub enum Kept {
    /// The metadata: the path was listed or examined, or its link was read.
    Looked,
    /// The content of a file, or the error.
    Read(Result<Vec<u8>, Error>),
}

/// Reads by path beneath the Root.
pub(crate) type Reads = Mutex<BTreeMap<PathBuf, Kept>>;

impl Root {
    /// Keeps what is read through this Root from now on.
    #[must_use]
    pub fn keeping_reads(mut self) -> Self {
        self.reads = Some(Reads::default());
        self
    }

    /// All reads since [`Root::keeping_reads`], also of missing files; of several reads of a file the last.
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
