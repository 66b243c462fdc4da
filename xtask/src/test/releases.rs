//! Releases of Debian as root file systems of their own.
//!
//! mmdebstrap makes them of Debian's packages, whose signatures its apt checks. They stay beside the build, and tests run
//! on copies of them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

use super::packages;
use super::privilege::Privilege;

/// One that tests run on.
pub(crate) struct Release {
    /// Its folder beneath the target folder.
    folder: &'static str,
    suite: &'static str,
    /// The variable by which the tests learn where it is.
    variable: &'static str,
    /// What the smallest system with apt lacks.
    packages: &'static str,
}

/// For tests of apt and dpkg; what is added mounts, and counts a program's calls.
pub(crate) const APT: Release =
    Release { folder: "apt", suite: "trixie", variable: "ROCWORKER_APT_TRIXIE", packages: "mount,strace" };

/// Incus 6.0: its daemon wants the libraries, groups and programs of its release around it. What is added beside it sets
/// a stage around it.
pub(crate) const INCUS: Release =
    Release { folder: "incus", suite: "trixie", variable: "ROCWORKER_INCUS_TRIXIE", packages: "incus,mount" };

impl Release {
    /// The variable that the tests read.
    pub(crate) fn variable(&self) -> (&'static str, PathBuf) {
        (self.variable, self.parent().join(self.suite))
    }

    fn parent(&self) -> PathBuf {
        repository::target().join(self.folder)
    }

    /// Makes it if it is not there yet; takes root, since its files are root's.
    ///
    /// # Errors
    /// Names the command that failed. A later release in the archive is fetched once the folder is removed.
    pub(crate) fn make(&self, privilege: Privilege) -> Result<()> {
        let (_, place) = self.variable();
        if place.is_dir() {
            return Ok(());
        }
        let parent = self.parent();
        fs::create_dir_all(&parent).with_context(|| format!("making {}", parent.display()))?;
        // Complete or not there. What an interrupted run left is root's.
        let unfinished = parent.join(format!("{}.unfinished", self.suite));
        let unfinished = unfinished.to_str().context("the checkout's path is no text")?;
        Command::new(privilege.as_root(&["rm", "-rf", "--one-file-system", unfinished])).run()?;
        let keyring = format!("--keyring={}", packages::KEYRING);
        let include = format!("--include={}", self.packages);
        let languages = "--aptopt=Acquire::Languages \"none\"";
        let mirror = packages::mirror();
        let argv = [
            "mmdebstrap",
            "--mode=root",
            "--variant=apt",
            &include,
            languages,
            &keyring,
            self.suite,
            unfinished,
            &mirror,
        ];
        Command::new(privilege.as_root(&argv)).run()?;
        fs::rename(unfinished, &place)
            .with_context(|| format!("renaming {unfinished} to {}", place.display()))
    }
}
