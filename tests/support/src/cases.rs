//! Machines and log lines rebuilt from users' public reports: the archives of tests/cases.
//!
//! They are **synthetic**: inputs that show a situation, no proof of what a kernel writes.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::real;

/// A case's machine, beneath a directory that goes with the value.
#[derive(Debug)]
pub struct Case {
    folder: TempDir,
    name: &'static str,
}

impl Case {
    /// The directory for `--root`.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }
}

/// Unpacks the machine tests/cases/NAME.tar.gz with its device nodes and owners, which takes root: `None` where the
/// calling test must return.
///
/// # Panics
/// As [`real::require`], and where tar fails.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn machine(name: &'static str) -> Option<Case> {
    real::may_make_nodes().then(|| Case { folder: unpacked(name), name })
}

/// The kernel's lines of tests/cases/NAME.tar.gz, as a user gives them to `rocworker explain -`.
///
/// # Panics
/// Where tar fails, or the archive has no lines.
pub fn lines(name: &str) -> Vec<u8> {
    std::fs::read(unpacked(name).path().join(name).join("lines")).unwrap()
}

fn unpacked(name: &str) -> TempDir {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../cases/{name}.tar.gz"));
    let folder = tempfile::tempdir().unwrap();
    let tar = Command::new("tar").arg("-xzpf").arg(&archive).arg("-C").arg(folder.path()).output().unwrap();
    assert!(tar.status.success(), "{}: {}", archive.display(), String::from_utf8_lossy(&tar.stderr));
    folder
}
