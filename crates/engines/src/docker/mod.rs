//! docker: dockerd, its daemon.json, and how its unit starts it.

mod canary;
mod containers;
pub mod desired;
mod doctor;
mod running;

use std::path::{Path, PathBuf};

use config::{Config, DOCKER_CONFIG};
use edit::Format;
use host::version::{Version, Versions};
use reconcile::Desired;
use root::{Kind, Root};
use serde_json::{Value, json};

use super::wrapper_as_default::{NamedRuntime, of_runc, runs_wrapper};
use super::{CommandLine, Engine, Engines, Watched, Wish, default_runtime};
use host::unit::Unit;

pub use running::DefaultRuntime;

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

/// The option by which its unit may name its configuration file.
const CONFIG_OPTION: [&str; 1] = ["config-file"];

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    names_programs_in: Some((&[], &[])),
    // The bundles of the containerd that dockerd starts.
    bundles: Some("/run/docker/containerd/daemon/io.containerd.runtime.v2.task"),
    settings: |config| Some(&config.docker),
    off: |config| config.docker.managed.off(),
    desired,
    has_wrapper_as_default,
    files: |root, config| {
        let of_docker = |docker: &Installed| {
            let by_unit = docker.unit.as_ref().and_then(|line| line.path(&CONFIG_OPTION));
            [by_unit.unwrap_or_else(|| DOCKER_CONFIG.into()), docker.config.clone()]
        };
        Docker::find(root, &config.docker.config).installed.iter().flat_map(of_docker).collect()
    },
    watched: |root, config| {
        let docker = Docker::find(root, &config.docker.config).installed.into_iter();
        docker.flat_map(|docker| [docker.program, docker.config].map(Watched::File)).collect()
    },
    made_with: |root, config, runtimes| match runtimes {
        [] => Vec::new(),
        _ => Docker::find(root, &config.docker.config).made_with(root, runtimes),
    },
    doctor: doctor::check,
    canary: canary::check,
    ..Engine::UNCONFIGURED
};

fn desired(wish: &Wish<'_>) -> Desired {
    let Some(wrapper) = wish.wrapper else { return Desired::default() };
    let docker = &wish.engines.docker;
    let of_file = |it: &Installed| {
        default_runtime(&it.config, Format::Json, &["default-runtime"], &wish.config.docker.runtime)
    };
    let uses: Vec<_> = docker.installed.iter().map(of_file).collect();
    desired::actions(wish.config, docker, wrapper).used_by(&uses)
}

fn has_wrapper_as_default(
    root: &Root,
    config: &Config,
    engines: &Engines,
) -> Result<Option<NamedRuntime>, String> {
    let Some(docker) = &engines.docker.installed else { return Ok(None) };
    let known = docker.known().map_err(|error| format!("{}: {error}", docker.config.display()))?;
    let line = docker.unit.as_ref();
    let of_unit = line.and_then(|line| line.value(&["default-runtime"]));
    let of_file = || known.get("default-runtime")?.as_str().filter(|name| !name.is_empty());
    // dockerd does not start with both.
    let Some(name) = of_unit.or_else(of_file) else { return Ok(of_runc(root)) };
    let added = line.map(|line| line.values(&["add-runtime"])).unwrap_or_default().into_iter();
    let mut added = added.filter_map(|(_, runtime)| runtime?.split_once('='));
    let by_unit = added.rfind(|(of, _)| *of == name).map(|(_, path)| json!({ "path": path }));
    let entry = by_unit.as_ref().or_else(|| known.get("runtimes")?.get(name));
    let named_in = if of_unit.is_some() { Path::new(UNIT) } else { &docker.config };
    let is = runs_wrapper(root, (name, &config.docker.runtime), entry);
    Ok(is.map(|is| (named_in.to_owned(), is)).or_else(|| of_runc(root)))
}

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
    /// dockerd's version, or why it is unknown.
    pub version: Result<Version, String>,
    /// The configuration file that dockerd reads: its unit may name another than rocworker's configuration does.
    pub config: PathBuf,
    /// The configuration file's text, `None` where there is no file, or why it cannot be read.
    pub text: Result<Option<String>, String>,
    /// How docker.service starts it; `None` where there is no such unit.
    pub unit: Option<CommandLine>,
    /// Units with which docker.service stops and restarts.
    pub ends_with: Vec<String>,
    /// Notes for a person on how dockerd is started.
    pub notes: Vec<String>,
}

impl Docker {
    /// Looks for docker beneath `root`. `config` is where its configuration lies unless its unit says otherwise.
    #[must_use]
    pub fn read(root: &Root, config: &Path, versions: &mut Versions<'_>) -> Self {
        let mut docker = Self::find(root, config);
        if let Some(installed) = &mut docker.installed {
            installed.version = versions.of(&installed.program, &PACKAGES);
        }
        docker
    }

    /// Finds docker beneath `root` without running it for its version.
    #[must_use]
    pub fn find(root: &Root, config: &Path) -> Self {
        let program = PROGRAMS.iter().map(PathBuf::from).find(|program| root.exists(program));
        let installed = program.map(|program| {
            let unit = Unit::read(root, UNIT, None);
            let unread = match &unit {
                Ok(unit) => unit.iter().flat_map(|unit| unit.unread.clone()).collect(),
                // A masked unit starts nothing.
                Err(reason) => vec![reason.clone()],
            };
            let unit = unit.ok().flatten();
            let line = unit.as_ref().map(|unit| CommandLine::of(root, unit));
            let named = line.as_ref().and_then(|line| line.path(&CONFIG_OPTION));
            let unknown = line.as_ref().and_then(|line| line.unknown(&CONFIG_OPTION));
            let notes = notes(config, named.as_deref(), unknown, &unread);
            let config = named.unwrap_or_else(|| config.to_owned());
            Installed {
                version: Err(format!("{} was not asked", program.display())),
                program,
                text: text(root, &config),
                config,
                unit: line,
                ends_with: unit.map_or_else(Vec::new, |unit| unit.ends_with),
                notes,
            }
        });
        Self { installed, is_snap: root.exists(SNAP) }
    }
}

impl Installed {
    /// What dockerd's file sets; null where the file is absent or empty.
    fn known(&self) -> Result<Value, String> {
        let text = self.text.as_ref().map_err(Clone::clone)?.as_deref().unwrap_or_default();
        match text.trim_start_matches('\u{feff}').trim() {
            "" => Ok(Value::Null),
            text => serde_json::from_str(text).map_err(|error| error.to_string()),
        }
    }

    /// The value of a key in dockerd's file; `None` also where the file cannot be read.
    fn setting(&self, key: &str) -> Option<Value> {
        self.known().ok()?.get(key).cloned()
    }
}

/// Notes where dockerd reads, or may read, another file than `config`, which rocworker's configuration names.
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
        Err(error) if error.is_not_found() => Ok(None),
        Ok(meta) if meta.kind != Kind::Regular => Err(format!(
            "{} is {}, not a regular file, and is left alone",
            root.shown(config).display(),
            meta.kind.described()
        )),
        found => {
            found.and_then(|_| root.read_text(config, LIMIT)).map(Some).map_err(|error| error.to_string())
        }
    }
}
