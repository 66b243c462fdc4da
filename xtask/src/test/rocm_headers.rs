//! ROCm's headers of Debian sid: they say which status codes HIP, HSA and AMD SMI have.

use std::path::PathBuf;

use anyhow::Result;

use crate::repository;

use super::packages::{self, Needed};

/// HIP and HSA 6.4.3, AMD SMI 10.1 (November 2026), half a megabyte.
const PACKAGES: &[&str] = &["libamdhip64-dev", "libhsa-runtime-dev", "libamd-smi-dev"];

/// The variable by which the tests learn where they are.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    ("ROCWORKER_ROCM_HEADERS", place().join("tree/usr/include"))
}

fn place() -> PathBuf {
    repository::target().join("rocm-headers")
}

/// Downloads what is not there. Needs no root.
pub(crate) fn fetch() -> Result<()> {
    if variable().1.is_dir() {
        return Ok(());
    }
    packages::unpack(&place(), "sid", PACKAGES, Needed::Not)
}
