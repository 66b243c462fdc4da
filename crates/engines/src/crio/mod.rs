//! CRI-O: its program and version, the files that it would load, its unit.

pub mod desired;
mod doctor;

use std::path::{Path, PathBuf};

use check::Check;
use config::{CRIO_CONFIG, Config};
use edit::Format;
use host::version::{Version, Versions};
use reconcile::Desired;
use root::{Kind, Root};

use super::{CommandLine, Engine, File, Watched, Wish, default_runtime, on_path};
use crate::canary::CanaryContext;
use host::glob::MOST;
use host::unit::Unit;

const NAME: &str = "crio";

pub const UNIT: &str = "crio.service";

/// Folder in which CRI-O looks for drop-ins by default.
const FOLDER: &str = "/etc/crio/crio.conf.d";
/// The name of rocworker's drop-in, which sorts after most.
const DROP_IN: &str = "99-rocworker.conf";

/// CRI-O's own packages, of pkgs.k8s.io and later of download.opensuse.org.
const PACKAGES: [&str; 1] = ["cri-o"];

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    // crio.conf.d(5)
    names_programs_in: Some((&[CRIO_CONFIG], &[FOLDER])),
    settings: |config| Some(&config.crio),
    off: |config| config.crio.managed.off(),
    desired,
    has_wrapper_as_default: desired::has_wrapper_as_default,
    real_runc,
    // CRI-O reads the file that its unit names, whatever rocworker's configuration says.
    files: |root, _| {
        let crio = Crio::find(root, Path::new(CRIO_CONFIG)).into_iter();
        crio.flat_map(|crio| crio.files).map(|file| file.path).collect()
    },
    watched: |root, config| {
        let Some(crio) = Crio::find(root, &config.crio.config) else { return Vec::new() };
        let files = [crio.program, crio.main].map(Watched::File);
        files.into_iter().chain([Watched::Folder(crio.folder)]).collect()
    },
    doctor: doctor::check,
    canary,
    ..Engine::UNCONFIGURED
};

fn desired(wish: &Wish<'_>) -> Desired {
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
fn real_runc(wish: &Wish<'_>) -> Option<PathBuf> {
    let crio = wish.engines.crio.as_ref()?;
    crio.own_runc.clone().filter(|_| !crio.has_runc)
}

fn canary(context: &CanaryContext<'_>) -> Result<Vec<Check>, Check> {
    let why = match context.programs.find(NAME) {
        Some(_) => {
            "CRI-O starts a container in a pod alone, from an image of a registry: try a pod that asks for a GPU"
        }
        None => "not installed",
    };
    Err(context.skipped(why))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crio {
    pub program: PathBuf,
    /// CRI-O's version, or why it is unknown.
    pub version: Result<Version, String>,
    pub main: PathBuf,
    /// The folder of CRI-O's drop-ins.
    pub folder: PathBuf,
    /// The files that CRI-O loads, in order. Rocworker's drop-in is not among them.
    pub files: Vec<File>,
    /// How many of `files` are loaded before rocworker's drop-in; the others win over it.
    pub before_drop_in: usize,
    /// Whether systemd starts it, as crio.service.
    pub unit: bool,
    /// What could not be read of its unit, each as a sentence.
    pub unread: Vec<String>,
    /// Notes for a person on how CRI-O is started.
    pub notes: Vec<String>,
    /// Whether the wrapper finds a runc on PATH.
    pub has_runc: bool,
    /// The program of its runtime runc, where the configuration names one that is there.
    pub own_runc: Option<PathBuf>,
}

impl Crio {
    /// Reads CRI-O; `None` where it is not installed. Rocworker asks for its version only if the configuration has
    /// rocworker set CRI-O up.
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Option<Self> {
        let mut found = Self::find(root, &config.crio.config)?;
        if config.crio.managed.is_on() {
            found.version = versions.of(&found.program, &PACKAGES);
        }
        Some(found)
    }

    /// Finds CRI-O without running it for its version. `configured`: its main file, unless its unit names another.
    fn find(root: &Root, configured: &Path) -> Option<Self> {
        let (unit, unread) = Unit::of_engine(root, UNIT);
        let line = unit.as_ref().map(|unit| CommandLine::of(root, unit)).unwrap_or_default();
        let program =
            line.program().filter(|program| root.exists(program)).or_else(|| on_path(root, NAME))?;

        let mut notes = Vec::new();
        let main = line.path(&["config", "c"]).unwrap_or_else(|| configured.to_owned());
        let folder = line.path(&["config-dir", "d"]).unwrap_or_else(|| FOLDER.into());
        if main != configured && configured != Path::new(CRIO_CONFIG) {
            notes.push(format!(
                "{UNIT} starts CRI-O with {}, which counts, and not {}: see crio.config",
                main.display(),
                configured.display()
            ));
        }
        let mut paths = paths(root, &main, &folder);
        let drop_in = folder.join(DROP_IN);
        let later = |path: &PathBuf| *path != main && *path > drop_in;
        paths.retain(|path| *path != drop_in);
        let before_drop_in = paths.iter().position(later).unwrap_or(paths.len());
        let files: Vec<File> = paths.into_iter().map(|path| File::read(root, path)).collect();
        let own_runc = files.iter().rev().find_map(|file| {
            let runc = file.parsed.as_ref().ok()?.pointer("/crio/runtime/runtimes/runc/runtime_path")?;
            Some(PathBuf::from(runc.as_str()?)).filter(|path| path.is_absolute() && root.exists(path))
        });
        Some(Self {
            version: Err(format!("{} was not asked", program.display())),
            program,
            main,
            folder,
            files,
            before_drop_in,
            unit: unit.is_some(),
            unread,
            notes,
            has_runc: on_path(root, "runc").is_some(),
            own_runc,
        })
    }

    #[must_use]
    pub fn drop_in(&self) -> PathBuf {
        self.folder.join(DROP_IN)
    }
}

/// The files that CRI-O loads, in order: the main file, then every file of a folder and the folders in it, by their names
/// (`UpdateFromPath` of its pkg/config). It takes a file of any name for one of its own.
fn paths(root: &Root, main: &Path, folder: &Path) -> Vec<PathBuf> {
    // CRI-O passes over a main file that is not there.
    let mut found: Vec<PathBuf> = [main].iter().filter(|it| root.exists(it)).map(PathBuf::from).collect();
    below(root, folder, &mut found);
    found
}

fn below(root: &Root, folder: &Path, found: &mut Vec<PathBuf>) {
    let mut names = root.list(folder).unwrap_or_default();
    names.sort();
    for path in names.into_iter().map(|name| folder.join(name)) {
        let kind = root.lstat(&path).map(|meta| meta.kind);
        match kind {
            _ if found.len() >= MOST => return,
            Ok(Kind::Directory) => below(root, &path, found),
            Ok(_) => found.push(path),
            Err(_) => {}
        }
    }
}
