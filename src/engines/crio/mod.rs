//! CRI-O: its program and version, its files as it would load them, its unit.

pub mod desired;
mod doctor;
mod files;
mod report;
mod start;

use std::path::{Path, PathBuf};

use edit::Format;
use reconcile::Desired;
use root::Root;

use super::unit::Unit;
use super::{About, Containerd, Docker, Engine, Examined, Watched, Wish, default_runtime, on_path};
use crate::canary::{CanaryContext, CanaryResult};
use crate::check::Check;
use crate::config::{self, CRIO_CONFIG, Config, Configure};
use crate::version::{Version, Versions};
use start::Start;

pub use files::File;

/// In receipts, notes and checks.
const NAME: &str = "crio";

pub const UNIT: &str = "crio.service";

/// Where it looks for drop-ins when it is not told.
const FOLDER: &str = "/etc/crio/crio.conf.d";
/// Ours among them. Its name comes after most.
const DROP_IN: &str = "99-rocworker.conf";

/// CRI-O's own, of pkgs.k8s.io and later of download.opensuse.org.
const PACKAGES: [&str; 1] = ["cri-o"];

/// CRI-O, as [`Engine`] asks of it.
pub(super) struct CrioEngine;

const ABOUT: About = About {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    // crio.conf.d(5)
    names_programs_in: Some((&[CRIO_CONFIG], &[FOLDER])),
    bundles: None,
    reported: report::REPORTED,
    command: Some(report::COMMAND),
};

impl Engine for CrioEngine {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn settings<'c>(&self, config: &'c Config) -> Option<&'c config::Engine> {
        Some(&config.crio)
    }

    fn desired(&self, wish: &Wish<'_>) -> Desired {
        let (Some(crio), Some(wrapper)) = (&wish.engines.crio, wish.wrapper) else {
            return Desired::default();
        };
        let default = |file: &File| {
            let key = ["crio", "runtime", "default_runtime"];
            default_runtime(&file.path, Format::Toml, &key, &wish.config.crio.runtime)
        };
        let uses: Vec<_> = crio.files.iter().map(default).collect();
        desired::actions(wish.config, crio, wish.templates, wrapper).used_by(&uses)
    }

    /// CRI-O's packages bring a runc that is not on PATH.
    fn real_runc(&self, wish: &Wish<'_>) -> Option<PathBuf> {
        let crio = wish.engines.crio.as_ref().filter(|_| wish.config.crio.configure != Configure::Never)?;
        crio.own_runc.clone().filter(|_| !crio.has_runc)
    }

    fn in_force(&self, root: &Root, _containerd: Option<&Containerd>, _docker: &Docker) -> Vec<PathBuf> {
        loaded_by_unit(root)
    }

    fn watched(&self, root: &Root, config: &Config) -> Vec<Watched> {
        let Some(crio) = Crio::find(root, config, |_| Err(String::new())) else { return Vec::new() };
        let files = [crio.program, crio.main].map(Watched::File);
        files.into_iter().chain([Watched::Folder(crio.folder)]).collect()
    }

    fn doctor(&self, examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
        doctor::check(examined, versions)
    }

    fn canary(&self, context: &CanaryContext<'_>) -> CanaryResult {
        if context.programs.find(NAME).is_none() {
            return CanaryResult::Skipped("not installed".to_owned());
        }
        let why = "CRI-O starts a container in a pod alone, from an image of a registry: try a pod that asks for a GPU";
        CanaryResult::Skipped(why.to_owned())
    }
}

/// What is true of CRI-O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crio {
    pub program: PathBuf,
    /// Or why it cannot be told.
    pub version: Result<Version, String>,
    pub main: PathBuf,
    /// Where its drop-ins are.
    pub folder: PathBuf,
    /// What it loads, in order. Our drop-in is not among them.
    pub files: Vec<File>,
    /// How many of them are loaded before our drop-in; what the others say wins over it.
    pub before_ours: usize,
    /// Whether systemd starts it, as crio.service.
    pub unit: bool,
    /// What could not be read of its unit, each as a sentence.
    pub unread: Vec<String>,
    /// What a person should know of how it is started.
    pub notes: Vec<String>,
    /// Whether the wrapper finds a runc on PATH.
    pub has_runc: bool,
    /// The program of its runtime runc, where the configuration names one that is there.
    pub own_runc: Option<PathBuf>,
}

impl Crio {
    /// `None` where it is not installed. One that is not to be configured is not asked for its version.
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Option<Self> {
        Self::find(root, config, |program| match config.crio.configure {
            Configure::Never => Err(format!("{} was not asked", program.display())),
            Configure::Auto => versions.of(program, &PACKAGES),
        })
    }

    fn find(
        root: &Root,
        config: &Config,
        version: impl FnOnce(&Path) -> Result<Version, String>,
    ) -> Option<Self> {
        let (unit, unread) = Unit::of_engine(root, UNIT);
        let Start { program, main, folder } = unit.as_ref().map(|it| Start::of(root, it)).unwrap_or_default();
        let program = program.filter(|program| root.exists(program)).or_else(|| on_path(root, NAME))?;

        let mut notes = Vec::new();
        let configured = &config.crio.config;
        if let Some(named) =
            main.as_ref().filter(|named| *named != configured && *configured != Path::new(CRIO_CONFIG))
        {
            notes.push(format!(
                "{UNIT} starts CRI-O with {}, which counts, and not {}: see crio.config",
                named.display(),
                configured.display()
            ));
        }
        let (main, folder) =
            (main.unwrap_or_else(|| configured.clone()), folder.unwrap_or_else(|| FOLDER.into()));
        let mut paths = files::paths(root, &main, &folder);
        let ours = folder.join(DROP_IN);
        let later = |path: &PathBuf| *path != main && *path > ours;
        paths.retain(|path| *path != ours);
        let before_ours = paths.iter().position(later).unwrap_or(paths.len());
        let files: Vec<File> = paths.into_iter().map(|path| File::read(root, path)).collect();
        let own_runc = files.iter().rev().find_map(|file| {
            let runc = file.said.as_ref().ok()?.pointer("/crio/runtime/runtimes/runc/runtime_path")?;
            Some(PathBuf::from(runc.as_str()?)).filter(|path| path.is_absolute() && root.exists(path))
        });
        Some(Self {
            version: version(&program),
            program,
            main,
            folder,
            files,
            before_ours,
            unit: unit.is_some(),
            unread,
            notes,
            has_runc: on_path(root, "runc").is_some(),
            own_runc,
        })
    }

    /// Where our drop-in stands.
    #[must_use]
    pub fn drop_in(&self) -> PathBuf {
        self.folder.join(DROP_IN)
    }
}

/// The files that CRI-O loads by its unit, whatever the configuration says. Ours is not among them.
fn loaded_by_unit(root: &Root) -> Vec<PathBuf> {
    let Start { main, folder, .. } =
        Unit::of_engine(root, UNIT).0.map(|it| Start::of(root, &it)).unwrap_or_default();
    let folder = folder.unwrap_or_else(|| FOLDER.into());
    let mut paths = files::paths(root, &main.unwrap_or_else(|| CRIO_CONFIG.into()), &folder);
    paths.retain(|path| *path != folder.join(DROP_IN));
    paths
}
