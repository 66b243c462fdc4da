//! Which engines are configured, and where their files are.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Error, Source, path};

/// Where engines look for their main file when they are not told.
pub const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
pub const CRIO_CONFIG: &str = "/etc/crio/crio.conf";
pub const DOCKER_CONFIG: &str = "/etc/docker/daemon.json";

/// Whether an engine is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Configure {
    /// Where it is installed.
    #[default]
    Auto,
    Never,
}

/// The system's containerd, docker, or CRI-O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    pub configure: Configure,
    /// Its main configuration file.
    pub config: PathBuf,
    /// The name under which it knows the wrapper.
    pub runtime: String,
}

/// The Concourse worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Concourse {
    pub configure: Configure,
    pub existing: Existing,
}

/// What is done with a worker that somebody else has set up for AMD already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    #[default]
    Leave,
    /// Our settings come after theirs and win; their files stay as they are.
    Adopt,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineDocument {
    configure: Option<Configure>,
    config: Option<PathBuf>,
    runtime: Option<String>,
}

impl EngineDocument {
    pub(super) fn check(self, name: &str, default: &str, source: &Source) -> Result<Engine, Error> {
        let config = self.config.unwrap_or_else(|| PathBuf::from(default));
        path::plain(&config).map_err(|problem| {
            source.wrong(&format!("{name}.config"), None, format!("{name}.config {problem}"))
        })?;
        let runtime = self.runtime.unwrap_or_else(|| "amd".to_owned());
        // It becomes a key of TOML and of JSON, and a word on command lines.
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if runtime.is_empty() || !runtime.chars().all(fit) || runtime == "runc" {
            let problem = format!(
                "{name}.runtime {runtime:?} is no name for a runtime of ours: letters, digits, - and _, and not runc"
            );
            return Err(source.wrong(&format!("{name}.runtime"), Some(&runtime), problem));
        }
        Ok(Engine { configure: self.configure.unwrap_or_default(), config, runtime })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConcourseDocument {
    configure: Option<Configure>,
    existing: Option<Existing>,
}

impl ConcourseDocument {
    pub(super) fn check(self) -> Concourse {
        Concourse {
            configure: self.configure.unwrap_or_default(),
            existing: self.existing.unwrap_or_default(),
        }
    }
}
