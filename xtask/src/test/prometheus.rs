//! Prometheus, its promtool, and its node_exporter: programs of another project that read what rocworker writes.
//!
//! Debian's packages start services that listen on every address, on ports 9090 and 9100. A test needs the programs and
//! nothing else, so the packages are unpacked beside the build instead of being installed.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

/// Debian's packages, and a program of each.
const PACKAGES: [(&str, &str); 2] =
    [("prometheus-node-exporter", "prometheus-node-exporter"), ("prometheus", "promtool")];

/// What they are, for a person who is asked.
pub(crate) const WHAT: &str = "prometheus and prometheus-node-exporter";

fn unpacked() -> PathBuf {
    repository::target().join("xtask/tools")
}

/// The folder for the tests' PATH.
pub(crate) fn folder() -> PathBuf {
    unpacked().join("usr/bin")
}

/// Whether the machine has them, or an earlier run unpacked them.
pub(crate) fn are_there() -> bool {
    missing().next().is_none()
}

/// Where one of them is.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    which::which(name)
        .or_else(|_| which::which(folder().join(name)))
        .with_context(|| format!("finding {name}"))
}

fn missing() -> impl Iterator<Item = &'static str> {
    let is_missing = |program: &str| which::which(program).is_err() && !folder().join(program).is_file();
    PACKAGES.iter().filter(move |(_, program)| is_missing(program)).map(|(package, _)| *package)
}

/// Downloads each missing package with apt, which checks its signature, and unpacks it. Needs no root.
pub(crate) fn unpack() -> Result<()> {
    for package in missing() {
        let downloads = unpacked().join("packages").join(package);
        if downloads.exists() {
            std::fs::remove_dir_all(&downloads)
                .with_context(|| format!("removing {}", downloads.display()))?;
        }
        std::fs::create_dir_all(&downloads).with_context(|| format!("making {}", downloads.display()))?;
        Command::new(["apt-get", "download", package]).inside(&downloads).run()?;
        let archive = std::fs::read_dir(&downloads)
            .with_context(|| format!("listing {}", downloads.display()))?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .with_context(|| format!("apt-get download left no .deb in {}", downloads.display()))?;
        Command::new(["dpkg-deb", "--extract"]).arguments([&archive, &unpacked()]).run()?;
        std::fs::remove_dir_all(&downloads).with_context(|| format!("removing {}", downloads.display()))?;
    }
    Ok(())
}
