//! docker: dockerd, its daemon.json, and how its unit starts it.

mod canary;
mod command_line;
mod containers;
pub mod desired;
mod doctor;
mod report;
mod running;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use edit::Format;
use reconcile::Desired;
use root::{Kind, Root};

use super::unit::Unit;
use super::{About, Containerd, Engine, Examined, Watched, Wish, default_runtime};
use crate::canary::{CanaryContext, CanaryResult};
use crate::check::Check;
use crate::config::{self, Config, DOCKER_CONFIG};
use crate::version::{Version, Versions};
pub use command_line::CommandLine;
pub use running::DefaultRuntime;

/// In receipts, notes and checks.
const NAME: &str = "docker";

pub const UNIT: &str = "docker.service";

/// Debian's package puts it into sbin, docker's own into bin.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd", "/usr/local/sbin/dockerd"];

/// Debian's and Ubuntu's, docker's own, Microsoft's.
const PACKAGES: [&str; 3] = ["docker.io", "docker-ce", "moby-engine"];

/// What snapd puts there for the snap of docker.
const SNAP: &str = "/snap/docker/current";

/// A thousand times what people write.
const LIMIT: usize = 1 << 20;

/// docker, as [`Engine`] asks of it.
pub(super) struct DockerEngine;

const ABOUT: About = About {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    names_programs_in: Some((&[], &[])),
    // Those of the containerd that dockerd starts.
    bundles: Some("/run/docker/containerd/daemon/io.containerd.runtime.v2.task"),
    reported: report::REPORTED,
    command: Some(report::COMMAND),
};

impl Engine for DockerEngine {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings<'c>(&self, config: &'c Config) -> Option<&'c config::Engine> {
        Some(&config.docker)
    }

    fn desired(&self, wish: &Wish<'_>) -> Desired {
        let Some(wrapper) = wish.wrapper else { return Desired::default() };
        let docker = &wish.engines.docker;
        let of_file = |it: &Installed| {
            default_runtime(&it.config, Format::Json, &["default-runtime"], &wish.config.docker.runtime)
        };
        let uses: Vec<_> = docker.installed.iter().map(of_file).collect();
        desired::actions(wish.config, docker, wrapper).used_by(&uses)
    }

    fn in_force(&self, _root: &Root, _containerd: Option<&Containerd>, docker: &Docker) -> Vec<PathBuf> {
        let of_docker = |docker: &Installed| {
            let by_unit = docker.unit.as_ref().and_then(CommandLine::config);
            [by_unit.unwrap_or_else(|| DOCKER_CONFIG.into()), docker.config.clone()]
        };
        docker.installed.iter().flat_map(of_docker).collect()
    }

    fn watched(&self, root: &Root, config: &Config) -> Vec<Watched> {
        let docker = Docker::unasked(root, config).installed;
        docker.into_iter().flat_map(|docker| [docker.program, docker.config].map(Watched::File)).collect()
    }

    fn made_with(&self, root: &Root, config: &Config, runtimes: &[String]) -> Vec<String> {
        if runtimes.is_empty() { Vec::new() } else { Docker::unasked(root, config).made_with(root, runtimes) }
    }

    fn doctor(&self, examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
        doctor::check(examined, versions)
    }

    fn canary(&self, context: &CanaryContext<'_>) -> CanaryResult {
        canary::try_it(context)
    }
}

/// What there is of docker on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Docker {
    pub installed: Option<Installed>,
    /// Whether there is a docker that is a snap: its files and its way to start are snapd's.
    pub is_snap: bool,
}

/// A dockerd of this machine's packages, or of its administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub program: PathBuf,
    /// Or why it cannot be told.
    pub version: Result<Version, String>,
    /// The configuration file that dockerd reads: its unit may name another than ours does.
    pub config: PathBuf,
    /// Its text, `None` where there is no file, or why it cannot be read.
    pub text: Result<Option<String>, String>,
    /// How docker.service starts it; `None` where there is no such unit.
    pub unit: Option<CommandLine>,
    /// Units with which docker.service ends, and begins anew.
    pub ends_with: Vec<String>,
    /// What a person should know of how it is started.
    pub notes: Vec<String>,
}

impl Docker {
    /// The same as [`Docker::read`]; none of its programs is run.
    #[must_use]
    pub fn unasked(root: &Root, config: &Config) -> Self {
        Self::read(root, &config.docker.config, &mut Versions::new(root, None, BTreeMap::new()))
    }

    /// Looks for docker beneath `root`. `config` is where its configuration lies unless its unit says otherwise.
    #[must_use]
    pub fn read(root: &Root, config: &Path, versions: &mut Versions<'_>) -> Self {
        let program = PROGRAMS.iter().map(Path::new).find(|program| root.exists(program));
        let installed = program.map(|program| {
            let mut unread = Vec::new();
            let service = service(root, &mut unread);
            let unit = service.as_ref().map(|service| CommandLine::of(root, service, &mut unread));
            let named = unit.as_ref().and_then(CommandLine::config);
            let unknown = unit.as_ref().and_then(CommandLine::unknown);
            let notes = notes(config, named.as_deref(), unknown, &unread);
            let config = named.unwrap_or_else(|| config.to_owned());
            Installed {
                program: program.to_owned(),
                version: versions.of(program, &PACKAGES),
                text: text(root, &config),
                config,
                unit,
                ends_with: service.map_or_else(Vec::new, |service| service.ends_with),
                notes,
            }
        });
        Self { installed, is_snap: root.exists(SNAP) }
    }
}

impl Installed {
    /// What its file says of a key; nothing where it cannot be read.
    fn said(&self, key: &str) -> Option<serde_json::Value> {
        let text = self.text.as_ref().ok()?.as_deref()?;
        let known: serde_json::Value =
            serde_json::from_str(text.trim_start_matches('\u{feff}').trim()).ok()?;
        known.get(key).cloned()
    }
}

/// `unread` gets what could not be read of it, each as a sentence.
fn service(root: &Root, unread: &mut Vec<String>) -> Option<Unit> {
    let unit = Unit::read(root, UNIT, None).unwrap_or_else(|reason| {
        // One that is masked starts nothing.
        unread.push(reason);
        None
    })?;
    unread.extend(unit.unread.iter().cloned());
    Some(unit)
}

/// What is not as it looks with the file. `config` is the configured one.
fn notes(config: &Path, named: Option<&Path>, unknown: Option<&str>, unread: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    for reason in unread {
        notes.push(format!("{reason}: how docker.service starts dockerd is not fully known"));
    }
    if let Some(named) = named.filter(|named| *named != config && config != Path::new(DOCKER_CONFIG)) {
        notes.push(format!(
            "docker.service starts dockerd with {}, which is edited, and not {}: see docker.config",
            named.display(),
            config.display()
        ));
    }
    if let Some(word) = unknown {
        let file = named.unwrap_or(config).display();
        notes.push(format!(
            "docker.service starts dockerd with {word}, which only systemd can resolve: if that names another \
             configuration file than {file}, set docker.config"
        ));
    }
    notes
}

fn text(root: &Root, config: &Path) -> Result<Option<String>, String> {
    match root.lstat(config) {
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(meta) if meta.kind == Kind::Regular => {}
        Ok(meta) => {
            return Err(format!(
                "{} is {}, not a regular file, and is left alone",
                root.shown(config).display(),
                meta.kind.described()
            ));
        }
    }
    root.read_text(config, LIMIT).map(Some).map_err(|error| error.to_string())
}
