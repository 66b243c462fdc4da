//! The Concourse worker of a machine: how its unit starts it, with which environment, and which containerd it brings.
//!
//! Only variables of the environment that decide something here are kept: the rest may be secret.

mod charm;
pub mod desired;
mod doctor;
mod environment;
pub mod tags;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::Config;
use host::version::{Version, Versions};
use root::{Kind, Root};

use super::containerd::check_concourses;
use super::{CommandLine, Engine, Watched, Wish};
use host::env_file::EnvFile;
use host::glob::clean;
use host::unit::{CONCOURSE_WORKER, FOLDERS, Unit};

pub use charm::Charm;
use environment::Environment;

const NAME: &str = "concourse";

/// The unit that is configured.
pub const UNIT: &str = CONCOURSE_WORKER;
/// Rocworker's drop-in of the unit. By its name it comes after every other that is likely.
pub const DROP_IN: &str = "/etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf";
/// The environment file that the drop-in names.
pub const ENV_FILE: &str = "/etc/rocworker/concourse.env";

/// Names the configuration of the worker's containerd.
pub const CONFIG_VARIABLE: &str = "CONCOURSE_CONTAINERD_CONFIG";

/// Paths of a worker's program when its unit names none: the charm's, and the one of Concourse's documentation.
const PROGRAMS: [&str; 2] = ["/var/lib/concourse/bin/concourse", "/usr/local/concourse/bin/concourse"];
/// systemd's own PATH for services, on a machine with merged folders or without (systemd.exec(5)).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Some hundred times what a configuration of containerd has.
const CONFIG_LIMIT: usize = 1 << 20;

/// File in which a person sets variables for a worker, whoever installed it (after Concourse's own packages).
const DEFAULTS: &str = "/etc/default/concourse";

/// The options that say again what the environment says, and win over it.
const OPTIONS: [&str; 5] = ["runtime", "tag", "containerd-config", "containerd-bin", "work-dir"];

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    unit: Some(UNIT),
    off: |config| config.concourse.managed.off(),
    // The configured tags are set without a GPU, too.
    desired: |wish| {
        let Wish { config, selection, engines, templates, wrapper } = *wish;
        desired::actions(config, selection, &engines.concourse, templates, wrapper)
    },
    // Behind the charm's own script is the real runc; the script would add every vendor's nodes again.
    real_runc: |wish| {
        let concourse = &wish.engines.concourse;
        let set_up = desired::set_up(wish.config, wish.selection, concourse, wish.templates);
        let script = desired::replaced_script(wish.config, concourse).filter(|_| set_up == Some(true));
        script.map(|(_, real_runc)| real_runc.to_owned())
    },
    watched,
    doctor: doctor::check,
    canary: check_concourses,
    ..Engine::UNCONFIGURED
};

fn watched(root: &Root, _config: &Config) -> Vec<Watched> {
    let unit = Unit::read(root, UNIT, Some(Path::new(DROP_IN))).ok().flatten();
    // The slow timer looks at a path with wildcards.
    let settings = unit.into_iter().flat_map(|unit| unit.environment_files).map(|file| file.path);
    let mut versions = Versions::new(root, None, BTreeMap::new());
    let of_worker = Concourse::read(root, &mut versions).worker.into_iter().flat_map(|worker| {
        let programs = ["concourse", "containerd"].map(|name| worker.bin.join(name));
        programs.into_iter().chain(worker.own_config.map(|(path, _)| path))
    });
    settings.chain([DEFAULTS.into()]).chain(of_worker).map(Watched::File).collect()
}

#[derive(Debug, Clone, Default)]
pub struct Concourse {
    pub worker: Option<Worker>,
    /// Why it is unknown how the worker runs, although its unit is there: the unit cannot be read, or what it
    /// names is not there now, since shared storage comes late.
    pub unknown: Option<String>,
    /// What a person should know of workers that are not configured, a sentence each.
    pub notes: Vec<String>,
}

/// A worker that a unit starts, without what rocworker itself has set.
#[derive(Debug, Clone)]
pub struct Worker {
    pub unit: PathBuf,
    /// The folder of `concourse` and of the programs that come with it.
    pub bin: PathBuf,
    pub version: Result<Version, String>,
    pub containerd: Containerd,
    /// The variables of the environment that matter here, with the values that count.
    pub environment: BTreeMap<String, String>,
    /// The worker's command line. Its options win over variables.
    pub options: CommandLine,
    /// The configuration of containerd that the worker itself wrote into its work folder at a start without
    /// `CONCOURSE_CONTAINERD_CONFIG`.
    pub written_config: Option<String>,
    /// The configuration of containerd that another program has given the worker, and its text.
    pub own_config: Option<(PathBuf, Result<String, String>)>,
    /// Whether the managed environment file names a configuration of containerd now. If so, the worker's containerd is of
    /// a version that reads the managed one.
    pub was_given_config: bool,
    /// Whether rocworker has tagged the worker: the managed environment file sets tags now, or an earlier run remembers
    /// that it did.
    pub was_tagged: bool,
    /// What the Concourse charm's own GPU mode has done.
    pub charm: Charm,
    /// Drop-ins that come after rocworker's and name environment files or unset variables.
    pub later: Vec<PathBuf>,
    /// The last of the worker's environment files, in which a person would set a variable.
    pub settings_file: Option<PathBuf>,
    /// A sentence for each part of the unit and the environment that could not be read.
    pub unread: Vec<String>,
    /// Environment files that systemd may read and that are not read here, a sentence each.
    pub unfollowed: Vec<String>,
}

/// The containerd that the worker starts.
#[derive(Debug, Clone)]
pub struct Containerd {
    /// `None`: none was found, or none that the worker would surely start.
    pub program: Option<PathBuf>,
    pub version: Result<Version, String>,
}

impl Concourse {
    #[must_use]
    pub fn read(root: &Root, versions: &mut Versions<'_>) -> Self {
        let mut found = Self { notes: others(root), ..Self::default() };
        match Unit::read(root, UNIT, Some(Path::new(DROP_IN))) {
            Err(problem) => found.unknown = Some(problem),
            Ok(None) => {
                if let Some(program) = PROGRAMS.iter().find(|program| root.exists(program)) {
                    found.notes.push(format!(
                        "{program} is there and no unit {UNIT}: a worker that is started in another way is not configured"
                    ));
                }
            }
            Ok(Some(unit)) => {
                let line = CommandLine::of(root, &unit);
                // A script perhaps, which starts one.
                let program = line.program().filter(|path| path.file_name() == Some("concourse".as_ref()));
                if let Some(other) = line.subcommand().filter(|it| program.is_some() && *it != "worker") {
                    found.notes.push(format!(
                        "{} runs concourse {other}, not concourse worker: it is not configured",
                        unit.path.display()
                    ));
                    return found;
                }
                let environment = Environment::effective(root, &unit);
                found.unknown = environment.lacking.clone();
                let worker = Worker::read(root, versions, unit, (program, &line), environment);
                if !root.exists(&worker.bin) {
                    let (unit, bin) = (root.shown(&worker.unit), root.shown(&worker.bin));
                    found.unknown = Some(format!(
                        "{} starts a worker, and {}, where its programs should be, is not there: it may not be mounted yet",
                        unit.display(),
                        bin.display()
                    ));
                }
                found.worker = Some(worker);
            }
        }
        found
    }
}

impl Worker {
    fn read(
        root: &Root,
        versions: &mut Versions<'_>,
        unit: Unit,
        (program, line): (Option<PathBuf>, &CommandLine),
        environment: Environment,
    ) -> Self {
        let Environment { variables: environment, mut unread, unfollowed, .. } = environment;
        let options = line.only(&OPTIONS);
        let setting = |option: &str, variable: &str| {
            options.value(&[option]).or_else(|| environment.get(variable).map(String::as_str))
        };
        let named = program.or_else(|| PROGRAMS.iter().map(PathBuf::from).find(|path| root.exists(path)));
        let program = resolved(root, named.unwrap_or_else(|| PathBuf::from(PROGRAMS[0])));
        let bin = program.parent().unwrap_or(Path::new("/")).to_owned();
        let version = versions.of(&program, &[]);
        let path = environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        let containerd = setting("containerd-bin", "CONCOURSE_CONTAINERD_BIN");
        let containerd = Containerd::read(root, versions, containerd, &bin, path);
        let work_dir = setting("work-dir", "CONCOURSE_WORK_DIR");
        let written_config = work_dir.and_then(|folder| written(root, Path::new(folder), &mut unread));
        let config = setting("containerd-config", CONFIG_VARIABLE);
        let own_config = config.filter(|path| !path.is_empty()).map(|path| {
            let text = root.read_text(path, CONFIG_LIMIT).map_err(|error| error.to_string());
            (PathBuf::from(path), text)
        });
        let managed = Path::new(DROP_IN).file_name();
        let later = unit.drop_ins.iter().filter(|path| path.file_name() > managed);
        let later = later.filter(|path| environment::sets_late(root, path)).cloned().collect();
        let charm = Charm::read(root, &bin, own_config.as_ref().map(|(path, _)| path.as_path()));
        let mut files = unit.environment_files.iter().map(|file| &file.path);
        let settings_file = files.rfind(|path| *path != Path::new(ENV_FILE)).cloned();
        let managed = root.read_text(ENV_FILE, CONFIG_LIMIT).map(|text| EnvFile::parse(&text));
        let was_given = |variable| managed.as_ref().is_ok_and(|managed| managed.get(variable).is_some());
        Self {
            unit: unit.path,
            bin,
            version,
            containerd,
            options,
            environment,
            written_config,
            own_config,
            was_given_config: was_given(CONFIG_VARIABLE),
            was_tagged: was_given(tags::VARIABLE),
            charm,
            later,
            settings_file,
            unread: [unit.unread, unread].concat(),
            unfollowed,
        }
    }

    /// What containerd's processes look for programs in, once the worker has put its own folder first.
    #[must_use]
    pub fn path(&self) -> String {
        let path = self.environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        format!("{}:{path}", self.bin.display())
    }

    /// Whether the worker surely takes every step while rocworker sets no tag.
    fn has_no_tags(&self) -> bool {
        tags::known(self).is_empty() && !self.options.has("tag") && self.unfollowed.is_empty()
    }
}

impl Containerd {
    /// `configured`: the containerd that a person configured the worker to start.
    fn read(
        root: &Root,
        versions: &mut Versions<'_>,
        configured: Option<&str>,
        bin: &Path,
        path: &str,
    ) -> Self {
        let name = configured.unwrap_or("containerd");
        let found = if name.contains('/') {
            Some(PathBuf::from(name)).filter(|path| path.is_absolute() && root.exists(path))
        } else {
            let folders = std::iter::once(bin).chain(path.split(':').map(Path::new));
            folders.map(|folder| folder.join(name)).find(|file| root.exists(file))
        };
        // Concourse brings its own containerd. Where that is missing, PATH leads to the system's, of another version:
        // Concourse is being installed, or half of it is there.
        let is_meant = |program: &PathBuf| configured.is_some() || program.parent() == Some(bin);
        let version = match &found {
            Some(program) if is_meant(program) => versions.of(program, &[]),
            Some(other) => Err(format!(
                "there is no {name} in {}, and {} is not its own",
                bin.display(),
                other.display()
            )),
            None if name.contains('/') => Err(format!("there is no {name}")),
            None => Err(format!("there is no {name} in {}", bin.display())),
        };
        Self { program: found.filter(is_meant), version }
    }
}

/// Follows a chain of links: the worker looks for programs beside its own, behind all links.
fn resolved(root: &Root, mut path: PathBuf) -> PathBuf {
    for _ in 0..8 {
        match root.read_link(&path) {
            Ok(target) => path = clean(&path.parent().unwrap_or(Path::new("/")).join(target)),
            Err(_) => break,
        }
    }
    path
}

fn written(root: &Root, folder: &Path, unread: &mut Vec<String>) -> Option<String> {
    let path = folder.join("containerd.toml");
    if root.lstat(&path).ok()?.kind != Kind::Regular {
        return None;
    }
    let text = root.read_trusted(&path, CONFIG_LIMIT).map_err(|error| error.to_string());
    let text = text.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| format!("{} is not text", root.shown(&path).display()))
    });
    text.map_err(|problem| unread.push(problem)).ok()
}

/// Units that look like workers and are not configured.
fn others(root: &Root) -> Vec<String> {
    let names = FOLDERS.iter().flat_map(|folder| root.list(folder).unwrap_or_default());
    let mut names: Vec<String> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.ends_with(".service") && name != UNIT)
        .filter(|name| name.starts_with("concourse-worker") || name == "concourse.service")
        .collect();
    names.sort_unstable();
    names.dedup();
    let sentence = |name| format!("the unit {name} is not configured: only {UNIT} is");
    names.into_iter().map(sentence).collect()
}
