//! The charm's folder with its programs, as `charmcraft pack` takes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::files::{Files, read};
use crate::programs::Programs;
use crate::repository;

/// The files that charm/charmcraft.yaml packs, and that file itself.
const TEXTS: [&str; 3] = ["charmcraft.yaml", "icon.svg", "README.md"];

/// The programs have no libraries: one charm serves each release of Ubuntu.
pub(super) fn write(programs: &Programs, out: &Path) -> Result<PathBuf> {
    let folder = out.join("charm");
    let from = repository::top().join("charm");
    let mut files = Files::default();
    for name in TEXTS {
        files.put(name, read(&from.join(name))?);
    }
    files.put_program("dispatch", read(&from.join("dispatch"))?);
    files.put_program("bin/rocworker", read(&programs.rocworker)?);
    files.put_program("bin/rocworker-exporter", read(&programs.exporter)?);
    files.put_program("bin/runc-amd-wrapper", read(&programs.wrapper)?);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    files.lay_out(&folder)?;
    Ok(folder)
}
