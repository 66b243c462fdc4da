//! The configuration in force.

use std::path::{Path, PathBuf};

use root::Root;

use super::Stored;
use crate::config::{self, ClusterBloom, Config};
use crate::memory::{self, AppliedConfig, Memory};

#[derive(Debug, Default)]
pub struct ConfigFile {
    /// `--config`, and the machine that its path is meant on.
    pub named: Option<(Root, PathBuf)>,
    pub environment: ClusterBloom,
}

#[derive(Debug)]
pub enum ActiveConfig {
    /// The file's: `--config`'s, or the machine's own.
    File(Config),
    /// The last applied one's: `--config` named its file then, and names none now.
    LastApplied(Config),
    /// An empty one, ignored for this reason: the last apply went by one that was not empty.
    IgnoredEmpty(Config, String),
    /// None that can be read.
    Unreadable(Unreadable),
}

/// Why no configuration is in force.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Memory(#[from] memory::Error),
}

impl ConfigFile {
    /// The file, as it is shown.
    pub fn path(&self, root: &Root) -> PathBuf {
        self.named.as_ref().map_or_else(|| root.shown(config::PATH), |(_, path)| path.clone())
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

impl ActiveConfig {
    /// What the file says now, whatever was applied before.
    pub fn of_file(file: &ConfigFile, root: &Root) -> Self {
        Self::read(file, root, None).unwrap_or_else(Self::Unreadable)
    }

    /// The same where no `--config` names a file: then that of the last apply, which may withhold what the machine's own gives.
    pub fn of_last_apply(file: &ConfigFile, root: &Root) -> Self {
        let last = || Ok(Memory::read(root)?.config.and_then(|applied| applied.other));
        last().and_then(|last| Self::read(file, root, last.as_deref())).unwrap_or_else(Self::Unreadable)
    }

    fn read(file: &ConfigFile, root: &Root, last: Option<&Path>) -> Result<Self, Unreadable> {
        let config = file.read(root, last)?;
        Ok(match why_ignored(root, &config) {
            Some(why) => Self::IgnoredEmpty(config, why),
            None if last.is_some() && file.named.is_none() => Self::LastApplied(config),
            None => Self::File(config),
        })
    }

    /// For boot, status, an upgrade and the daemon.
    pub fn in_force(self) -> Result<Config, Unreadable> {
        match self {
            Self::File(config) | Self::LastApplied(config) => Ok(config),
            Self::IgnoredEmpty(_, why) => Err(Unreadable::Wrong(why)),
            Self::Unreadable(why) => Err(why),
        }
    }

    /// For a command that a person runs now: an empty one counts.
    pub fn asked_for(self) -> Result<Config, Unreadable> {
        match self {
            Self::IgnoredEmpty(config, _) => Ok(config),
            other => other.in_force(),
        }
    }
}

/// In the place of a configuration that cannot be read, and may forbid restarts.
pub fn without_restarts(root: &Root) -> Result<Config, config::Error> {
    Config::parse(&root.shown(config::PATH), "restart: never\n")
}

/// Why an empty configuration is ignored: an editor may be about to write it, and what it withheld must not be given
/// meanwhile.
fn why_ignored(root: &Root, config: &Config) -> Option<String> {
    if !config.says_nothing() {
        return None;
    }
    // The run reports a state that cannot be read.
    let state = Stored::read(root).ok()?;
    let now = AppliedConfig::of(root, config);
    let last = state.memory.config.as_ref().filter(|last| now.as_ref() != Some(last))?;
    let other = now.and_then(|now| now.other);
    let is_of_same_place = last.other == other;
    let option = other.map_or_else(String::new, |path| format!("--config {} ", path.display()));
    (is_of_same_place && state.is_applied()).then(|| {
        format!(
            "{} is empty or not there, and was not when this machine was set up by it: it counts once it says something, \
             or after rocworker {option}apply",
            config.path().display()
        )
    })
}

/// Where the last apply's configuration was and where this one is, when their places differ and their texts too.
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
