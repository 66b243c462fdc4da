//! Which engines are configured, and where their files are.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Error, Source, path};

/// Where engines look for their main file by default.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Concourse {
    #[serde(deserialize_with = "super::or_default")]
    pub configure: Configure,
    #[serde(deserialize_with = "super::or_default")]
    pub existing: Existing,
}

/// What becomes of a worker that another tool has set up for AMD already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    #[default]
    Leave,
    /// rocworker's settings come after that tool's and win; its files stay as they are.
    Adopt,
}

/// What an [`Engine`] says before its defaults are known, which differ.
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
        source.check(&format!("{name}.config"), &config.to_string_lossy(), path::file(&config))?;
        let runtime = self.runtime.unwrap_or_else(|| "amd".to_owned());
        // It becomes a key of TOML and of JSON, and a word on command lines.
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if runtime.is_empty() || !runtime.chars().all(fit) || runtime == "runc" {
            let problem = format!(
                "{runtime:?} is no name for rocworker's runtime: letters, digits, - and _, and not runc"
            );
            source.check(&format!("{name}.runtime"), &runtime, Err(problem))?;
        }
        Ok(Engine { configure: self.configure.unwrap_or_default(), config, runtime })
    }
}
