//! An archive that is unpacked into a folder of its own: looked through before anything of it is written, unpacked
//! beside its place, and put there in one step.

mod archive;
mod making;
mod manifest;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Digest;

pub(crate) use making::{RESERVE, remove, sweep_of};
pub(crate) use manifest::{FOLDER, Manifest, name};

/// An archive (`.tar.gz`), and what it must hold. The path of its action is the folder that it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// `http:`, `https:` or `file:`.
    pub url: String,
    pub sha256: Digest,
    /// What must be there afterwards, named from the folder: `bin`, `lib`, `include`.
    pub holds: Vec<PathBuf>,
}

/// Where a folder stands until it is whole, and while it is taken away: beside its place, on the same file system.
pub(crate) fn staging(path: &Path) -> PathBuf {
    let mut name = OsString::from(".rocworker-");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}
