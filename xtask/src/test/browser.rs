//! npm's libraries for the test of the exporter's page in Chromium, beside the build.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

/// Which releases: npm takes what package-lock.json names, by its digest.
const LISTS: &str = "crates/exporter/tests/browser";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// By which the tests learn where they are.
pub(super) fn variable() -> (&'static str, PathBuf) {
    ("ROCWORKER_BROWSER", place())
}

fn place() -> PathBuf {
    repository::target().join("browser")
}

/// Installs them if these releases are not there yet. Needs no root, and runs none of their scripts.
pub(super) fn make() -> Result<()> {
    let place = place();
    let mark = place.join("installed.json");
    let lists = FILES.map(|name| (name, repository::top().join(LISTS).join(name)));
    let read = |(name, path): &(&'static str, PathBuf)| {
        Ok((*name, fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?))
    };
    let wanted: Vec<(&str, String)> = lists.iter().map(read).collect::<Result<_>>()?;
    let locked = &wanted[1].1;
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == *locked) {
        return Ok(());
    }
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    for (name, text) in &wanted {
        let path = place.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let quiet = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    Command::new(["npm"]).arguments(quiet).arguments(["--prefix"]).arguments([&place]).run()?;
    fs::write(&mark, locked).with_context(|| format!("writing {}", mark.display()))
}
