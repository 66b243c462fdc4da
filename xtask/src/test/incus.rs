//! Incus as a root file system of its own: its daemon wants the libraries, groups and programs of its release around it.
//!
//! mmdebstrap makes it of Debian's packages, whose signatures its apt checks. It stays beside the build, and each test
//! runs on a copy of it that goes again.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

use super::engines;
use super::privilege::Privilege;

const SUITE: &str = "trixie";
/// The variable by which the tests learn where it is.
const VARIABLE: &str = "ROCWORKER_INCUS_TRIXIE";
/// Incus 6.0, and what the smallest system with apt lacks to set a stage around it.
const PACKAGES: &str = "incus,mount";

/// What the tests are told.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    (VARIABLE, folder().join(SUITE))
}

fn folder() -> PathBuf {
    repository::target().join("incus")
}

/// Makes it if it is not there yet; takes root, since its files are root's.
///
/// # Errors
/// Names the command that failed. A later release in the archive is fetched once the folder is removed.
pub(crate) fn make(privilege: Privilege) -> Result<()> {
    let (_, place) = variable();
    if place.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder()).with_context(|| format!("making {}", folder().display()))?;
    // Complete or not there. What an interrupted run left is root's.
    let unfinished = folder().join(format!("{SUITE}.unfinished"));
    let unfinished = unfinished.to_str().context("the checkout's path is no text")?;
    Command::new(privilege.as_root(&["rm", "-rf", "--one-file-system", unfinished])).run()?;
    let keyring = format!("--keyring={}", engines::KEYRING);
    let include = format!("--include={PACKAGES}");
    let languages = "--aptopt=Acquire::Languages \"none\"";
    let mirror = engines::mirror();
    let argv = [
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        &include,
        languages,
        &keyring,
        SUITE,
        unfinished,
        &mirror,
    ];
    Command::new(privilege.as_root(&argv)).run()?;
    fs::rename(unfinished, &place).with_context(|| format!("renaming {unfinished} to {}", place.display()))
}
