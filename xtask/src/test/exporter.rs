//! Prometheus' node_exporter: a reader of DRM and hwmon folders from another project.
//!
//! Debian's package starts a service that listens on every address, on port 9100. A test needs the program
//! and nothing else, so the package is unpacked beside the build instead of being installed.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

/// Debian's package, and the name of the program in it.
pub(crate) const PACKAGE: &str = "prometheus-node-exporter";

fn unpacked() -> PathBuf {
    repository::target().join("xtask/tools")
}

/// The folder for the tests' PATH.
pub(crate) fn folder() -> PathBuf {
    unpacked().join("usr/bin")
}

/// Whether the machine has it, or an earlier run unpacked it.
pub(crate) fn is_there() -> bool {
    which::which(PACKAGE).is_ok() || folder().join(PACKAGE).is_file()
}

/// Downloads the package with apt, which checks its signature, and unpacks it. Needs no root.
pub(crate) fn unpack() -> Result<()> {
    let into = unpacked();
    if into.exists() {
        std::fs::remove_dir_all(&into).with_context(|| format!("removing {}", into.display()))?;
    }
    std::fs::create_dir_all(&into).with_context(|| format!("making {}", into.display()))?;
    Command::new(["apt-get", "download", PACKAGE]).inside(&into).run()?;
    let archive = std::fs::read_dir(&into)
        .with_context(|| format!("listing {}", into.display()))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get download left no .deb in {}", into.display()))?;
    Command::new(["dpkg-deb", "--extract"]).arguments([&archive, &into]).run()
}
