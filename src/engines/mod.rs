//! The container engines of a machine, each in a module of its own that answers `Engine`: which are there, how they
//! are configured now, what should be so of them, and whether it is.

pub mod concourse;
pub mod containerd;
pub mod crio;
pub mod docker;
pub mod env_file;
mod examined;
mod in_force;
mod options;
mod podman;
mod reported;
pub mod undo_constraints;
pub mod unit;

use std::path::{Path, PathBuf};

use edit::Format as Syntax;
use reconcile::{Desired, Use};
use root::Root;

use crate::canary::{self, Canary, CanaryContext, CanaryResult, Interrupted};
use crate::check::Check;
use crate::config::{Config, Configure};
use crate::render::Templates;
use crate::selection::Selection;
pub use crate::version::{Known, Told, Version, Versions};
pub use concourse::Concourse;
pub use containerd::Containerd;
pub use crio::Crio;
pub use docker::Docker;
pub(crate) use examined::{CHECKS, Examined};
pub use in_force::InForce;
pub(crate) use reported::{Command, Format, Keys, Reported};

/// Every engine, in the order in which they are asked.
pub(crate) const ALL: [&dyn Engine; 5] = [
    &podman::PodmanEngine,
    &containerd::ContainerdEngine,
    &docker::DockerEngine,
    &concourse::ConcourseEngine,
    &crio::CrioEngine,
];

/// What is so of an engine on every machine.
pub(crate) struct About {
    /// In receipts, notes and checks, and its key of the configuration.
    pub(crate) name: &'static str,
    /// The unit of systemd that starts it. The daemon watches it, and a report has it.
    pub(crate) unit: Option<&'static str>,
    /// The program that tells a report its version.
    pub(crate) program: Option<&'static str>,
    /// Where a runtime's program may be named for it, in any case: files, and folders of files. `None`: nowhere, nor by
    /// its unit.
    pub(crate) names_programs_in: Option<(&'static [&'static str], &'static [&'static str])>,
    /// Where it keeps the bundles of containers that run: their shims call the wrapper by its path.
    pub(crate) bundles: Option<&'static str>,
    /// What a report takes of its configuration, beside its unit.
    pub(crate) reported: &'static [Reported],
    /// What a report may tell of the command line that starts it.
    pub(crate) command: Option<Command>,
}

/// What the rest of rocworker asks of an engine.
pub(crate) trait Engine: Sync {
    fn about(&self) -> &'static About;

    /// Its configuration, where it knows the wrapper by a runtime's name.
    fn settings<'c>(&self, _config: &'c Config) -> Option<&'c crate::config::Engine> {
        None
    }

    /// Whether it is to be configured.
    fn configure(&self, config: &Config) -> Configure {
        self.settings(config).map_or(Configure::Auto, |settings| settings.configure)
    }

    /// What should be so of it.
    fn desired(&self, _wish: &Wish<'_>) -> Desired {
        Desired::default()
    }

    /// The runc that has to stand behind the wrapper, where that is not the one on PATH.
    fn real_runc(&self, _wish: &Wish<'_>) -> Option<PathBuf> {
        None
    }

    /// The files that it reads now, wherever the configuration has them, and in which it may name a default runtime.
    fn in_force(&self, _root: &Root, _containerd: Option<&Containerd>, _docker: &Docker) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What the daemon watches beside its unit: what it reads, and its programs.
    fn watched(&self, _root: &Root, _config: &Config) -> Vec<Watched> {
        Vec::new()
    }

    /// Whether it is in effect as it was meant. It is to be configured.
    fn doctor(&self, _examined: &Examined<'_>, _versions: &mut Versions<'_>) -> Vec<Check> {
        Vec::new()
    }

    /// Starts a container through it, unless it is not to be configured.
    fn canary(&self, context: &CanaryContext<'_>) -> CanaryResult;
}

/// What decides what should be so of an engine.
pub(crate) struct Wish<'a> {
    pub(crate) config: &'a Config,
    pub(crate) engines: &'a Engines,
    pub(crate) templates: &'a Templates,
    pub(crate) selection: &'a Selection<'a>,
    /// The wrapper's program; without one no container can be given a GPU.
    pub(crate) wrapper: Option<&'a Path>,
}

/// The engines as they are found.
#[derive(Debug)]
pub struct Engines {
    /// `None`: it is not installed. One that is not to be configured is not asked for its version.
    pub containerd: Option<Containerd>,
    pub docker: Docker,
    pub concourse: Concourse,
    /// As containerd.
    pub crio: Option<Crio>,
    /// What of their configuration counts now.
    pub in_force: InForce,
}

impl Engines {
    /// Looks for them beneath `root`.
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Self {
        let containerd =
            Containerd::read(root, config, versions).or_else(|| Containerd::unasked(root, config));
        let docker = Docker::read(root, &config.docker.config, versions);
        let in_force = InForce::read(root, containerd.as_ref(), &docker);
        let concourse = Concourse::read(root, versions);
        Self { containerd, docker, concourse, crio: Crio::read(root, config, versions), in_force }
    }
}

/// Why an engine is not looked at that the configuration leaves alone.
pub(crate) fn left_alone(engine: &str) -> String {
    format!("the configuration leaves it alone ({engine}.configure: never)")
}

/// Starts a container through each of them.
///
/// # Errors
/// When it was interrupted.
pub fn canary(canary: &Canary<'_>) -> Result<Vec<Check>, Interrupted> {
    let of_engine = |engine: &'static dyn Engine| {
        let try_it = move |context: &CanaryContext<'_>| match engine.configure(context.config) {
            Configure::Never => CanaryResult::Skipped(left_alone(engine.about().name)),
            Configure::Auto => engine.canary(context),
        };
        (engine.about().name, try_it)
    };
    canary::examine(canary, ALL.into_iter().map(of_engine))
}

/// A file, or all that is in a folder.
pub(crate) enum Watched {
    File(PathBuf),
    Folder(PathBuf),
}

/// Where packages put programs, in the order of a service's PATH.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

fn on_path(root: &Root, name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| root.exists(path))
}

/// What a default names that would name nothing if our runtime went: an engine with such a default does not start.
/// `key`: where a file says it.
fn default_runtime(file: &Path, format: Syntax, key: &[&str], runtime: &str) -> Use {
    let key = key.iter().map(|part| (*part).to_owned()).collect();
    Use { file: file.to_owned(), format, key, value: runtime.to_owned() }
}
