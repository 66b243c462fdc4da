//! The configuration in force.

use std::path::{Path, PathBuf};

use config::{self, ClusterBloom, Config};
use root::Root;

use super::State;
use crate::memory::{self, AppliedConfig, Memory};

/// Where the configuration is: the file that `--config` names, or the machine's own.
#[derive(Debug, Default)]
pub struct ConfigFile {
    /// `--config`, and the machine that its path is meant on.
    pub named: Option<(Root, PathBuf)>,
    pub environment: ClusterBloom,
}

/// Why no configuration is in force.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("{0}")]
    Emptied(String),
    #[error(transparent)]
    Memory(#[from] memory::Error),
}

impl ConfigFile {
    /// The configuration's path as users see it.
    pub fn path(&self, root: &Root) -> PathBuf {
        self.named.as_ref().map_or_else(|| root.shown(config::PATH), |(_, path)| path.clone())
    }

    /// The configuration for a command that a person runs now: what the file says, whatever was applied before.
    pub fn asked_for(&self, root: &Root) -> Result<Config, Unreadable> {
        self.read(root, None)
    }

    /// The configuration for the daemon, which looks at the file alone: an empty file does not count where the last
    /// apply went by one that was not empty.
    pub fn unless_emptied(&self, root: &Root) -> Result<Config, Unreadable> {
        not_emptied(root, self.read(root, None)?)
    }

    /// The configuration for boot, status and an upgrade: where no `--config` names a file, the file of the last apply,
    /// which may withhold what the machine's own gives.
    pub fn in_force(&self, root: &Root) -> Result<Config, Unreadable> {
        let last = Memory::read(root)?.config.and_then(|applied| applied.other);
        // A report has no path of its owner's.
        let last = last.filter(|path| !path.as_os_str().is_empty());
        not_emptied(root, self.read(root, last.as_deref())?)
    }

    fn read(&self, root: &Root, other: Option<&Path>) -> Result<Config, Unreadable> {
        let environment = &self.environment;
        Ok(match (&self.named, other) {
            (Some((caller, path)), _) => Config::read_file(caller, path, environment)?,
            (None, Some(path)) => {
                let here = Root::open(Path::new("/")).map_err(config::Error::from)?;
                Config::read_file(&here, path, environment)?
            }
            (None, None) => Config::read_beside(root, environment)?,
        })
    }
}

/// Replaces a configuration that cannot be read and may forbid restarts.
pub fn without_restarts(root: &Root) -> Result<Config, config::Error> {
    Config::parse(&root.shown(config::PATH), "restart: never\n")
}

/// Refuses an empty configuration that an editor may be about to write: what it withheld must not be given meanwhile.
fn not_emptied(root: &Root, config: Config) -> Result<Config, Unreadable> {
    // The run reports a state that cannot be read.
    let Some(state) = config.says_nothing().then(|| State::read(root).ok()).flatten() else {
        return Ok(config);
    };
    let now = AppliedConfig::of(root, &config);
    let last = state.memory.config.as_ref().filter(|last| now.as_ref() != Some(last));
    let other = now.as_ref().and_then(|now| now.other.as_ref());
    if !state.is_applied() || last.is_none_or(|last| last.other.as_ref() != other) {
        return Ok(config);
    }
    let option = other.map_or_else(String::new, |path| format!("--config {} ", path.display()));
    Err(Unreadable::Emptied(format!(
        "{} is empty or not there, and was not when this machine was set up by it: it counts once it says something, \
         or after rocworker {option}apply",
        config.path().display()
    )))
}

/// The paths of the last apply's configuration and of this one, if both path and text differ.
pub fn applied_elsewhere(root: &Root, config: &Config, memory: &Memory) -> Option<(PathBuf, PathBuf)> {
    let (last, now) = (memory.config.as_ref(), AppliedConfig::of(root, config));
    let place = |of: Option<&AppliedConfig>| of.and_then(|it| it.other.clone());
    let sum = |of: Option<&AppliedConfig>| of.map(|it| it.sha256.clone());
    if place(last) == place(now.as_ref()) || sum(last) == sum(now.as_ref()) {
        return None;
    }
    Some((place(last).unwrap_or_else(|| root.shown(config::PATH)), config.path().to_owned()))
}

/// Why the daemon leaves this configuration alone: another version of this program did the last apply and makes
/// something else of it, or the last apply went by another file, which may withhold what this one gives.
pub(super) fn why_not_the_daemons(root: &Root, config: &Config, memory: &Memory) -> Option<String> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    if let Some(last) = memory.rocworker.as_deref().filter(|last| *last != OWN) {
        return Some(format!(
            "the last apply was by rocworker {last}, and this is {OWN}: nothing is changed until both are one version, \
             or until an apply by this one"
        ));
    }
    let (last, here) = applied_elsewhere(root, config, memory)?;
    Some(format!(
        "the last apply was by {0}, and not by {1}: nothing is changed until they say the same, or until an apply by \
         {1}",
        last.display(),
        here.display()
    ))
}
