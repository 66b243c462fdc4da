//! The system's containerd: its program and version, its files as it would load them, its unit.
//!
//! k3s, RKE2 and Concourse start containerds of their own, from folders that are not looked into here.

mod canary;
pub mod desired;
mod doctor;
mod files;
mod listener;
mod report;
mod start;

use std::path::{Path, PathBuf};

use edit::Format;
use reconcile::Desired;
use root::Root;

use super::undo_constraints::{undo_constraints, with_docker};
use super::unit::Unit;
use super::{About, Docker, Engine, Examined, Watched, Wish, default_runtime, on_path};
use crate::canary::{CanaryContext, CanaryResult};
use crate::check::Check;
use crate::config::{self, CONTAINERD_CONFIG, Config, Configure};
use crate::version::{Version, Versions};
use start::Start;

pub(super) use canary::try_concourses;
pub use files::{File, Text};
pub(crate) use report::KEYS as CONFIG_KEYS;

/// In receipts, notes and checks.
pub(super) const NAME: &str = "containerd";

/// What systemd starts it as.
pub const UNIT: &str = "containerd.service";

/// Our drop-in, beside the main file.
const DROP_IN: &str = "conf.d/rocworker.toml";

/// The Debian packages that carry it: the distributor's, and Docker's.
const PACKAGES: [&str; 2] = ["containerd", "containerd.io"];

/// The system's, as [`Engine`] asks of it.
pub(super) struct ContainerdEngine;

const ABOUT: About = About {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    names_programs_in: Some((&[], &[])),
    bundles: Some("/run/containerd/io.containerd.runtime.v2.task"),
    reported: report::REPORTED,
    command: Some(report::COMMAND),
};

impl Engine for ContainerdEngine {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings<'c>(&self, config: &'c Config) -> Option<&'c config::Engine> {
        Some(&config.containerd)
    }

    fn desired(&self, wish: &Wish<'_>) -> Desired {
        let engines = wish.engines;
        let (Some(containerd), Some(wrapper)) = (&engines.containerd, wish.wrapper) else {
            return Desired::default();
        };
        let part = desired::actions(wish.config, containerd, wish.templates, wrapper);
        let part = with_docker(part, &undo_constraints(wish.config, &engines.in_force, &engines.docker));
        let default = |file: &File| {
            SECTIONS.map(|section| {
                let key = ["plugins", section, "containerd", "default_runtime_name"];
                default_runtime(&file.path, Format::Toml, &key, &wish.config.containerd.runtime)
            })
        };
        part.used_by(&containerd.files.iter().flat_map(default).collect::<Vec<_>>())
    }

    fn in_force(&self, root: &Root, containerd: Option<&Containerd>, _docker: &Docker) -> Vec<PathBuf> {
        let Some(containerd) = containerd else { return Vec::new() };
        let files = containerd.files.iter().map(|file| file.path.clone());
        // The configuration may name another than its unit does.
        files.chain(loaded_by_unit(root)).collect()
    }

    fn watched(&self, root: &Root, config: &Config) -> Vec<Watched> {
        let Some(containerd) = Containerd::unasked(root, config) else { return Vec::new() };
        let drop_ins = containerd.main().and_then(|main| Some(main.path.parent()?.join("conf.d")));
        let files = containerd.files.into_iter().map(|file| file.path).chain([containerd.program]);
        files.map(Watched::File).chain(drop_ins.map(Watched::Folder)).collect()
    }

    fn doctor(&self, examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
        doctor::check(examined, versions)
    }

    fn canary(&self, context: &CanaryContext<'_>) -> CanaryResult {
        canary::try_it(context)
    }
}

/// The sections in which the versions of its file name the runtime of pods that name none.
const SECTIONS: [&str; 3] = ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"];

/// What is true of the system's containerd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containerd {
    pub program: PathBuf,
    /// Or why it cannot be told.
    pub version: Result<Version, String>,
    /// Its main file and what that imports, in the order in which containerd loads them, the main file first. Our
    /// drop-in is not among them.
    pub files: Vec<File>,
    /// How many of them are loaded before our drop-in; what the others say wins over it.
    pub before_ours: usize,
    /// Whether systemd starts it, as containerd.service.
    pub unit: bool,
    /// What could not be read of its unit, each as a sentence.
    pub unread: Vec<String>,
    /// What a person should know of how it is started.
    pub notes: Vec<String>,
}

impl Containerd {
    /// `None` where it is not installed, or not to be configured.
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Option<Self> {
        if config.containerd.configure == Configure::Never {
            return None;
        }
        Self::find(root, config, |program| versions.of(program, &PACKAGES))
    }

    /// The same whether it is to be configured or not, and its program is not run for its version.
    #[must_use]
    pub fn unasked(root: &Root, config: &Config) -> Option<Self> {
        Self::find(root, config, |program| Err(format!("{} was not asked", program.display())))
    }

    fn find(
        root: &Root,
        config: &Config,
        version: impl FnOnce(&Path) -> Result<Version, String>,
    ) -> Option<Self> {
        let (unit, unread) = Unit::of_engine(root, UNIT);
        let started = unit.as_ref().and_then(|unit| Start::of(&unit.exec_start));
        let started = started.as_ref();
        let by_unit = started.map(|start| start.program.clone()).filter(|program| root.exists(program));
        let program = by_unit.or_else(|| on_path(root, NAME))?;

        let mut notes = Vec::new();
        let mut main = config.containerd.config.clone();
        if let Some(named) = started.and_then(|start| start.config.as_ref()).filter(|named| **named != main) {
            if main == Path::new(CONTAINERD_CONFIG) && named.is_absolute() {
                notes.push(format!("containerd.service names its main file: {}", named.display()));
                main.clone_from(named);
            } else {
                notes.push(format!(
                    "containerd.service starts containerd with {}, and {} is configured: see containerd.config",
                    named.display(),
                    main.display()
                ));
            }
        }
        if let Some(variable) = started.and_then(|start| start.unknown.as_ref()) {
            notes.push(format!(
                "containerd.service starts containerd with {variable}, which only systemd can resolve: if that names \
                 another main file than {}, set containerd.config",
                main.display()
            ));
        }
        let version = version(&program);
        let (files, before_ours) = files::read(root, &main, &drop_in(&main));
        Some(Self { program, version, files, before_ours, unit: unit.is_some(), unread, notes })
    }

    /// The same by what its files would say without our keys, of a release that needs none in them. `text`: what a file
    /// of this path and text would say, where keys of it are ours.
    #[must_use]
    pub fn without_ours(mut self, text: impl Fn(&Path, &str) -> Option<String>) -> Self {
        // containerd 1.x goes on with our keys where they stand.
        if self.version.as_ref().is_ok_and(|version| version.major > 1) {
            for file in &mut self.files {
                file.without_ours(&text);
            }
        }
        self
    }

    /// The main file.
    #[must_use]
    pub fn main(&self) -> Option<&File> {
        self.files.first()
    }
}

/// The files that containerd loads where its unit names the main one.
fn loaded_by_unit(root: &Root) -> Vec<PathBuf> {
    let unit = Unit::read(root, UNIT, None).ok().flatten();
    let named = unit.and_then(|unit| Start::of(&unit.exec_start)?.config).filter(|named| named.is_absolute());
    let files = named.map(|main| files::read(root, &main, &drop_in(&main)).0).unwrap_or_default();
    files.into_iter().map(|file| file.path).collect()
}

/// Where our drop-in stands beside a main file.
#[must_use]
pub fn drop_in(main: &Path) -> PathBuf {
    main.parent().unwrap_or(Path::new("/etc/containerd")).join(DROP_IN)
}
