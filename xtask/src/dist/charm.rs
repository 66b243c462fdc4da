//! The charm's folder with the Debian package, as `charmcraft pack` takes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::files::{Files, read};
use crate::repository;

/// The files that charm/charmcraft.yaml packs, and that file itself.
const TEXTS: [&str; 3] = ["charmcraft.yaml", "icon.svg", "README.md"];

/// The package needs no other: one serves each release of Ubuntu.
pub(super) fn write(package: &Path, out: &Path) -> Result<PathBuf> {
    let folder = out.join("charm");
    let from = repository::top().join("charm");
    let mut files = Files::default();
    for name in TEXTS {
        files.put(name, read(&from.join(name))?);
    }
    files.put_program("dispatch", read(&from.join("dispatch"))?);
    files.put("rocworker.deb", read(package)?);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    files.lay_out(&folder)?;
    Ok(folder)
}
