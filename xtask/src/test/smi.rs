//! AMD's own tools, rocm-smi and amd-smi of Debian sid with the Python that runs them: readers of a card's files from
//! other projects.

use std::path::PathBuf;

use anyhow::Result;

use crate::repository;

use super::packages::{self, Needed};

/// rocm-smi 6.4 and amd-smi 10.1 (November 2026), 20 MB.
const PACKAGES: &[&str] = &["rocm-smi", "amd-smi"];

/// The variable by which the tests learn where they are: a root file system with both, as far as they need one.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    ("ROCWORKER_SMI_SID", place().join("tree"))
}

fn place() -> PathBuf {
    repository::target().join("smi/sid")
}

/// Downloads what is not there. Needs no root.
pub(crate) fn fetch() -> Result<()> {
    if variable().1.is_dir() {
        return Ok(());
    }
    packages::unpack(&place(), "sid", PACKAGES, Needed::Too)
}
