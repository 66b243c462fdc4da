//! The container engines of a machine, each in a module of its own that fills in an `Engine`: whether it is there, how
//! it is configured now, what rocworker configures of it, and whether that is in effect.

pub mod canary;
mod command_line;
pub mod concourse;
pub mod containerd;
pub mod crio;
pub mod docker;
mod examined;
mod file;
pub mod hidden;
mod podman;
pub mod program;
pub mod undo_constraints;
mod wrapper_as_default;

use std::path::{Path, PathBuf};

use cdi::{DEFAULT_FOLDERS, is_read_by_engines};
use check::Check;
use config::selection::Selection;
use config::{self, Config, Off};
use edit::{Format as Syntax, Set};
use reconcile::{Desired, UndoConstraints, Use};
use render::Templates;
use root::Root;
use serde::Serialize;
use serde_json::Value;

use crate::canary::{Canary, CanaryContext, Interrupted};
use crate::program::is_managed;

pub use command_line::CommandLine;
pub use concourse::Concourse;
pub use containerd::Containerd;
pub use crio::Crio;
pub use docker::Docker;
pub use examined::{CHECKS, Examined};
pub use file::File;
pub use host::version::{Answer, Known, Version, Versions};
pub use podman::Podman;
use undo_constraints::undo_constraints;
use wrapper_as_default::NamedRuntime;
pub use wrapper_as_default::WrapperAsDefault;
pub use wrapper_as_default::with_wrapper_as_default;

/// Every engine, in the order in which they are asked.
pub static ALL: [Engine; 5] =
    [podman::ENGINE, containerd::ENGINE, docker::ENGINE, concourse::ENGINE, crio::ENGINE];

/// What rocworker knows about an engine and asks of it. `Engine::UNCONFIGURED` has what an engine leaves out.
#[derive(Debug)]
pub struct Engine {
    /// In receipts, notes and checks, and the key of the configuration of an engine that has one.
    pub name: &'static str,
    /// The unit of systemd that starts it. The daemon watches it.
    pub unit: Option<&'static str>,
    /// The program whose version a report has.
    pub program: Option<&'static str>,
    /// The files, and folders of files, in which a person may name a runtime's program for the engine, whatever
    /// rocworker's configuration says. `None`: neither they nor its unit do.
    pub(crate) names_programs_in: Option<(&'static [&'static str], &'static [&'static str])>,
    /// Where it keeps the bundles of containers that run: their shims call the wrapper by its path.
    pub(crate) bundles: Option<&'static str>,
    /// Its configuration, where it knows the wrapper by a runtime's name.
    pub settings: fn(&Config) -> Option<&config::Engine>,
    /// Why rocworker does not configure it, and doctor and the canary pass over it.
    pub off: fn(&Config) -> Option<Off>,
    /// What rocworker configures of the engine. Like `real_runc`, not called for an engine that is off.
    pub(crate) desired: fn(&Wish<'_>) -> Desired,
    /// Where the engine says that its default runtime is the wrapper, or why that is unknown. `None`: a container has to
    /// name the wrapper to run by it.
    pub(crate) has_wrapper_as_default: fn(&Root, &Config, &Engines) -> Result<Option<NamedRuntime>, String>,
    /// The runc that the wrapper has to run, where that is not the one on PATH.
    pub(crate) real_runc: fn(&Wish<'_>) -> Option<PathBuf>,
    /// The files that the engine reads now, wherever its unit and rocworker's configuration have them. Each may name a
    /// default runtime.
    pub(crate) files: fn(&Root, &Config) -> Vec<PathBuf>,
    /// What the daemon watches beside the engine's unit: the files that the engine reads, and its programs.
    pub watched: fn(&Root, &Config) -> Vec<Watched>,
    /// Names of the engine's containers that were made with one of these runtimes. They do not start again without it.
    pub made_with: fn(&Root, &Config, &[String]) -> Vec<String>,
    /// Checks whether the engine's configuration is in effect. doctor calls neither this nor the canary for an engine
    /// that rocworker is not to configure. The error is the one check that says why there is nothing to look at.
    pub doctor: fn(&Examined<'_>, &mut Versions<'_>) -> Result<Vec<Check>, Check>,
    /// Starts a container through the engine. The error is the one check that says why no container could start.
    pub(crate) canary: fn(&CanaryContext<'_>) -> Result<Vec<Check>, Check>,
}

impl Engine {
    pub(crate) const UNCONFIGURED: Self = Self {
        name: "",
        unit: None,
        program: None,
        names_programs_in: None,
        bundles: None,
        settings: |_| None,
        off: |_| None,
        desired: |_| Desired::default(),
        has_wrapper_as_default: |_, _, _| Ok(None),
        real_runc: |_| None,
        files: |_, _| Vec::new(),
        watched: |_, _| Vec::new(),
        made_with: |_, _, _| Vec::new(),
        doctor: |_, _| Ok(Vec::new()),
        canary: |_| Ok(Vec::new()),
    };
}

/// What decides how an engine is configured.
#[derive(Debug)]
pub struct Wish<'a> {
    pub config: &'a Config,
    pub engines: &'a Engines,
    pub templates: &'a Templates,
    pub selection: &'a Selection<'a>,
    /// The wrapper's program; without one no container can be given a GPU.
    pub wrapper: Option<&'a Path>,
}

#[derive(Debug, Default)]
pub struct Engines {
    /// `None`: containerd is not installed. Rocworker asks for its version only if the configuration has rocworker set
    /// containerd up.
    pub containerd: Option<Containerd>,
    pub docker: Docker,
    /// `None`: podman is not installed.
    pub podman: Option<Podman>,
    pub concourse: Concourse,
    /// `None`: CRI-O is not installed. Rocworker asks for its version only if the configuration has rocworker set CRI-O
    /// up.
    pub crio: Option<Crio>,
    /// What limits an undo of the engines' configuration, as the engines' files show it.
    pub undo_constraints: UndoConstraints,
}

impl Engines {
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Self {
        let containerd = Containerd::read(root, config, versions);
        let docker = Docker::read(root, &config.docker.config, versions);
        let undo_constraints = undo_constraints(root, config, &docker);
        let concourse = Concourse::read(root, versions);
        let (podman, crio) = (Podman::read(root), Crio::read(root, config, versions));
        Self { containerd, docker, podman, concourse, crio, undo_constraints }
    }
}

/// What rocworker configures of the engines. Without the wrapper's program, only what needs no wrapper.
#[must_use]
pub fn desired(wish: &Wish<'_>) -> Desired {
    let mut desired = Desired::default();
    managed(wish.config).for_each(|engine| desired.extend((engine.desired)(wish)));
    desired
}

/// The runc that the wrapper has to run, where an engine needs another one than PATH has.
#[must_use]
pub fn real_runc(wish: &Wish<'_>) -> Option<PathBuf> {
    managed(wish.config).find_map(|engine| (engine.real_runc)(wish))
}

fn managed(config: &Config) -> impl Iterator<Item = &'static Engine> {
    ALL.iter().filter(|engine| (engine.off)(config).is_none())
}

/// Starts a container through each of them.
///
/// # Errors
/// When a signal interrupted the canary.
pub fn canary(canary: &Canary<'_>) -> Result<Vec<Check>, Interrupted> {
    let tries = ALL.iter().map(|engine| {
        let try_it = |context: &CanaryContext<'_>| match (engine.off)(context.config) {
            Some(why) => Err(context.skipped(why.to_string())),
            None => (engine.canary)(context),
        };
        (engine.name, try_it)
    });
    canary::examine(canary, tries)
}

/// A file, or all that is in a folder.
#[derive(Debug)]
pub enum Watched {
    File(PathBuf),
    Folder(PathBuf),
}

/// Where packages put programs, in the order of a service's PATH.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

fn on_path(root: &Root, name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| root.exists(path))
}

/// The use of the managed runtime as an engine's default: without that runtime, the engine would not start. `key`: where
/// a file names the default.
fn default_runtime(file: &Path, format: Syntax, key: &[&str], runtime: &str) -> Use {
    let key = key.iter().map(|part| (*part).to_owned()).collect();
    Use { file: file.to_owned(), format, key, value: runtime.to_owned() }
}

/// What rocworker configures of an engine that is installed: what `configure` adds, or a problem with it. `unread`:
/// what could not be read of its unit.
fn configured(
    (engine, daemon): (&Engine, &str),
    notes: &[String],
    unread: &[String],
    version: &Result<Version, String>,
    configure: impl FnOnce(Version, &mut Desired) -> Result<(), String>,
) -> Desired {
    let mut desired = Desired::default();
    notes.iter().for_each(|note| desired.note(engine.name, note.as_str()));
    let (unread, unit) = (unread.join("; "), engine.unit.unwrap_or_default());
    let version = match unread.as_str() {
        "" => version.clone().map_err(|reason| format!("its version is not known: {reason}")),
        _ => Err(format!("{unread}: which files it reads, and whether {unit} starts it, is not known")),
    };
    if let Err(problem) = version.and_then(|version| configure(version, &mut desired)) {
        desired.problem(engine.name, format!("{daemon} is left alone: {problem}"));
    }
    desired.of_component_or_undecided(engine.name)
}

/// The folder of the CDI spec; `None` where engines look by themselves.
fn spec_folder(config: &Config) -> Option<&str> {
    let folder = config.cdi.path.parent()?.to_str();
    folder.filter(|_| !is_read_by_engines(&config.cdi.path))
}

/// A list of an engine's folders of specs with the managed one at its end. `None`: the engine's own, which a file that
/// names any replaces.
fn with_folder(folders: Option<&Vec<Value>>, managed: &str) -> Vec<Value> {
    let mut folders = folders.cloned().unwrap_or_else(|| DEFAULT_FOLDERS.map(Value::from).to_vec());
    if !folders.iter().any(|it| it == managed) {
        folders.push(managed.into());
    }
    folders
}

/// The managed folder beside an engine's folders of specs, as a key of a file that is edited.
fn folder_beside(managed: &str) -> Set {
    Set::Beside { member: managed.into(), default: DEFAULT_FOLDERS.map(Value::from).to_vec() }
}

/// What a runtime of the managed name runs, where that is not the wrapper.
fn other_program<'a>(program: Option<&'a str>, wrapper: &str) -> Option<&'a str> {
    match program.filter(|program| !program.is_empty()) {
        Some(program) => Some(program).filter(|it| *it != wrapper && !is_managed(it)),
        None => Some("another program than the wrapper"),
    }
}

/// A drop-in, rendered and read again. `program`: the key that has to name the wrapper.
fn drop_in(
    templates: &Templates,
    template: &'static str,
    context: impl Serialize,
    (program, wrapper): (&[&str], &str),
) -> Result<(String, Value), String> {
    let text = templates.render(template, context).map_err(|error| error.to_string())?;
    let place = templates.place(template);
    let table = Syntax::Toml.read(&text).map_err(|fault| format!("{place}: {fault}"))?;
    let found = program.iter().try_fold(&table, |table, key| table.get(key)).and_then(Value::as_str);
    if found != Some(wrapper) {
        return Err(format!("{place}: what it makes does not name the wrapper"));
    }
    Ok((text, table))
}
