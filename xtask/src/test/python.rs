//! PyPI's programs and libraries for tests, each in an environment of its own beside the build.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

/// Debian's Python, for which python3-apt has modules: another one cannot load them.
const PYTHON: &str = "/usr/bin/python3";
/// What is written last: which requirements are installed.
const MARK: &str = "installed.txt";

/// Grafana's types of a dashboard, for the test that reads deploy/grafana/rocworker.json.
pub(crate) const GRAFANA: Environment = Environment {
    variable: "ROCWORKER_GRAFANA_SDK",
    folder: "grafana-sdk",
    requirements: "crates/telemetry/tests/alerts/requirements.txt",
};

/// An environment.
#[derive(Debug)]
pub(crate) struct Environment {
    /// By which the tests learn where it is.
    pub(super) variable: &'static str,
    /// Beneath target.
    pub(super) folder: &'static str,
    /// Which releases.
    pub(super) requirements: &'static str,
}

impl Environment {
    fn place(&self) -> PathBuf {
        repository::target().join(self.folder)
    }

    /// The variable that the tests read.
    pub(crate) fn variable(&self) -> (&'static str, PathBuf) {
        (self.variable, self.place())
    }

    /// Makes the environment if these releases are not there yet, `finished` by what else it needs. Needs no root.
    ///
    /// # Errors
    /// Names the command that failed.
    pub(crate) fn make(&self, finished: impl FnOnce(&std::path::Path) -> Result<()>) -> Result<()> {
        let place = self.place();
        let list = repository::top().join(self.requirements);
        let wanted = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        let mark = place.join(MARK);
        if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        // What an interrupted run left: its scripts name their own place, so that it cannot be made elsewhere and
        // renamed.
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
        }
        Command::new([PYTHON, "-m", "venv"]).arguments([&place]).run()?;
        let pip = place.join("bin/pip");
        let quiet = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
        Command::new([&pip]).arguments(quiet).arguments([&list]).run()?;
        finished(&place)?;
        fs::write(&mark, wanted).with_context(|| format!("writing {}", mark.display()))
    }
}
