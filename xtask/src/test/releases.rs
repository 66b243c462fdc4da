//! Another release of Debian as a root file system, for tests of apt and dpkg.
//!
//! mmdebstrap makes it of Debian's packages, whose signatures its apt checks. It stays beside the build, and tests run
//! on copies of it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

use super::engines;
use super::privilege::Privilege;

const SUITE: &str = "trixie";
/// The variable by which the tests learn where it is.
const VARIABLE: &str = "ROCWORKER_APT_TRIXIE";
/// What the smallest system with apt lacks: what mounts, and what counts a program's calls.
const PACKAGES: &str = "mount,strace";

/// What the tests are told.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    (VARIABLE, folder().join(SUITE))
}

fn folder() -> PathBuf {
    repository::target().join("apt")
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
