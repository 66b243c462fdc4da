//! Which engines are configured, and where their files are.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Error, Managed, Off, Source, path};

/// containerd's main file, unless the configuration names another.
pub const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
pub const CRIO_CONFIG: &str = "/etc/crio/crio.conf";
pub const DOCKER_CONFIG: &str = "/etc/docker/daemon.json";

/// Whether an engine is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Configure {
    /// Configures the engine where it is installed.
    Auto,
    Never,
}

/// The system's containerd, docker, or CRI-O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Whether rocworker configures the engine where it is installed.
    pub managed: Managed,
    /// The engine's main configuration file.
    pub config: PathBuf,
    /// The runtime name under which the engine knows the wrapper.
    pub runtime: String,
}

/// The Concourse worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concourse {
    /// Whether rocworker configures a worker that is here. AMD's GPUs may be off: the configured tags are set without a
    /// GPU, too.
    pub managed: Managed,
    pub existing: Existing,
    /// Whether the worker gets tags of its GPUs. `None`: the configuration does not say, and a worker without tags gets
    /// none: with tags it would take no untagged step.
    pub tags: Option<bool>,
}

/// What becomes of a worker that another tool has set up for AMD already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    #[default]
    Leave,
    /// rocworker's settings come after the other tool's and win; the tool's files stay as they are.
    Adopt,
}

/// What an [`Engine`] says before its defaults are known, which differ.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineDocument {
    configure: Option<Configure>,
    config: Option<PathBuf>,
    runtime: Option<String>,
}

impl EngineDocument {
    pub(super) fn check(
        self,
        name: &'static str,
        default: &str,
        gpus: Managed,
        source: &Source,
    ) -> Result<Engine, Error> {
        let config = self.config.unwrap_or_else(|| PathBuf::from(default));
        source.check(&format!("{name}.config"), &config.to_string_lossy(), path::file(&config))?;
        let runtime = self.runtime.unwrap_or_else(|| "amd".to_owned());
        // The runtime's name becomes a key of TOML and of JSON, and a word on command lines.
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if runtime.is_empty() || !runtime.chars().all(fit) || runtime == "runc" {
            let problem = format!(
                "{runtime:?} is no name for rocworker's runtime: letters, digits, - and _, and not runc"
            );
            source.check(&format!("{name}.runtime"), &runtime, Err(problem))?;
        }
        Ok(Engine { managed: managed(self.configure, name).needing(&gpus), config, runtime })
    }
}

/// The configuration's section `concourse`, as the file has it; [`Concourse`] is its checked form.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConcourseDocument {
    configure: Option<Configure>,
    existing: Option<Existing>,
    tags: Option<bool>,
}

impl ConcourseDocument {
    /// A section that says whether the worker gets tags of its GPUs.
    #[must_use]
    pub fn tagged(tags: bool) -> Self {
        Self { tags: Some(tags), ..Self::default() }
    }

    pub(super) fn resolve(self) -> Concourse {
        Concourse {
            managed: managed(self.configure, "concourse"),
            existing: self.existing.unwrap_or_default(),
            tags: self.tags,
        }
    }
}

fn managed(configure: Option<Configure>, name: &'static str) -> Managed {
    Managed::of((configure != Some(Configure::Never)).then_some(()), Off::Never(name))
}
