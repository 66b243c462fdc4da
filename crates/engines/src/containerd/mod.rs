//! The system's containerd: its program and version, the files that it would load, its unit.
//!
//! k3s, RKE2 and Concourse start containerds of their own, from folders that are not looked into here.

mod canary;
pub mod desired;
mod doctor;
mod files;
mod listener;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::{CONTAINERD_CONFIG, Config};
use edit::Format;
use host::version::{Version, Versions};
use reconcile::{Desired, Effect, UndoConstraints};
use root::Root;
use serde_json::Value;

use super::docker;
use super::wrapper_as_default::{NamedRuntime, of_runc, runs_wrapper};
use super::{CommandLine, Engine, Engines, File, Watched, Wish, default_runtime, on_path};
use host::unit::Unit;

pub(super) use canary::check_concourses;

pub(super) const NAME: &str = "containerd";

pub const UNIT: &str = "containerd.service";

/// Rocworker's drop-in, beside the main file.
const DROP_IN: &str = "conf.d/rocworker.toml";

/// The Debian packages that carry containerd: the distributor's, and Docker's.
const PACKAGES: [&str; 2] = ["containerd", "containerd.io"];

/// The runtime of pods where no file names one.
const BUILT_IN: &str = "runc";

/// Options by which containerd's unit may name the main file.
const CONFIG_OPTIONS: [&str; 2] = ["config", "c"];

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    unit: Some(UNIT),
    program: Some(NAME),
    names_programs_in: Some((&[], &[])),
    bundles: Some("/run/containerd/io.containerd.runtime.v2.task"),
    settings: |config| Some(&config.containerd),
    off: |config| config.containerd.managed.off(),
    desired,
    has_wrapper_as_default,
    files: |root, config| {
        // rocworker's configuration may name another main file than containerd's unit does.
        let by_unit = Path::new(CONTAINERD_CONFIG);
        let configured = Some(config.containerd.config.as_path()).filter(|main| *main != by_unit);
        let found = configured.into_iter().chain([by_unit]).filter_map(|main| Containerd::find(root, main));
        found.flat_map(|containerd| containerd.files).map(|file| file.path).collect()
    },
    watched,
    doctor: doctor::check,
    canary: canary::check,
    ..Engine::UNCONFIGURED
};

fn desired(wish: &Wish<'_>) -> Desired {
    let (Some(containerd), Some(wrapper)) = (&wish.engines.containerd, wish.wrapper) else {
        return Desired::default();
    };
    let part = desired::actions(wish.config, containerd, wish.templates, wrapper);
    let default = |file: &File| {
        SECTIONS.map(|section| {
            let key = ["plugins", section, "containerd", "default_runtime_name"];
            default_runtime(&file.path, Format::Toml, &key, &wish.config.containerd.runtime)
        })
    };
    with_docker(part, &wish.engines.undo_constraints)
        .used_by(&containerd.files.iter().flat_map(default).collect::<Vec<_>>())
}

/// containerd's part, where docker ends with containerd: then its restart is docker's.
fn with_docker(mut part: Desired, now: &UndoConstraints) -> Desired {
    for action in &mut part.actions {
        action.effects = now.effects(&action.effects);
    }
    let waits = |effect: &Effect| matches!(effect, Effect::NextStart { .. });
    if part.actions.iter().any(|action| action.effects.iter().any(waits)) {
        part.note(
            NAME,
            format!(
                "{} ends whenever {UNIT} does (its Requires=, BindsTo= or PartOf=), and may stop its containers: {UNIT} \
                 is not restarted unless restart is now, or dockerd says that they outlive it; systemctl restart \
                 containerd does it",
                docker::UNIT
            ),
        );
    }
    part
}

fn has_wrapper_as_default(
    root: &Root,
    config: &Config,
    engines: &Engines,
) -> Result<Option<NamedRuntime>, String> {
    let Some(containerd) = &engines.containerd else { return Ok(None) };
    // The last of several files counts.
    let (mut default, mut runtimes, mut unnamed) = (None, BTreeMap::new(), Vec::new());
    for file in &containerd.files {
        let parsed = file.parsed.as_ref().map_err(Clone::clone)?;
        for cri in
            SECTIONS.iter().filter_map(|section| parsed.get("plugins")?.get(section)?.get("containerd"))
        {
            let name =
                cri.get("default_runtime_name").and_then(Value::as_str).filter(|name| !name.is_empty());
            default = name.map(|name| (name, &file.path)).or(default);
            let named = cri.get("runtimes").and_then(Value::as_object).into_iter().flatten();
            for (name, it) in named {
                // containerd 2 merges the entries of several files.
                let program = it.pointer("/options/BinaryName").and_then(Value::as_str);
                if program.is_some_and(|it| !it.is_empty()) || !runtimes.contains_key(name.as_str()) {
                    runtimes.insert(name.as_str(), (it, &file.path));
                }
            }
            // containerd 1.x takes it for the default.
            unnamed.extend(cri.get("default_runtime").filter(|it| it.is_object()).map(|it| (it, &file.path)));
        }
    }
    let (name, file) = default.map_or((BUILT_IN, None), |(name, file)| (name, Some(file)));
    let entry = runtimes.get(name).copied();
    let by_name = runs_wrapper(root, (name, &config.containerd.runtime), entry.map(|(it, _)| it))
        .and_then(|is| Some((file.or(entry.map(|(_, file)| file))?.clone(), is)));
    let of_unnamed = |(it, file): &(&Value, &PathBuf)| {
        Some(((*file).clone(), runs_wrapper(root, (BUILT_IN, &config.containerd.runtime), Some(it))?))
    };
    Ok(by_name.or_else(|| unnamed.iter().find_map(of_unnamed)).or_else(|| of_runc(root)))
}

fn watched(root: &Root, config: &Config) -> Vec<Watched> {
    let Some(containerd) = Containerd::find(root, &config.containerd.config) else { return Vec::new() };
    let drop_ins = containerd.main().and_then(|main| Some(main.path.parent()?.join("conf.d")));
    let files = containerd.files.into_iter().map(|file| file.path).chain([containerd.program]);
    files.map(Watched::File).chain(drop_ins.map(Watched::Folder)).collect()
}

/// The sections in which the versions of its file name the runtime of pods that name none.
const SECTIONS: [&str; 3] = ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containerd {
    pub program: PathBuf,
    /// containerd's version, or why it is unknown.
    pub version: Result<Version, String>,
    /// The main file and what it imports, in the order in which containerd loads them, the main file first. Rocworker's
    /// drop-in is not among them.
    pub files: Vec<File>,
    /// How many of them are loaded before rocworker's drop-in; what the others say wins over it.
    pub before_drop_in: usize,
    /// Whether systemd starts it, as containerd.service.
    pub unit: bool,
    /// What could not be read of its unit, each as a sentence.
    pub unread: Vec<String>,
    /// What a person should know of how it is started.
    pub notes: Vec<String>,
}

impl Containerd {
    /// Reads containerd; `None` where it is not installed. Rocworker asks for its version only if the configuration has
    /// rocworker set containerd up.
    #[must_use]
    pub fn read(root: &Root, config: &Config, versions: &mut Versions<'_>) -> Option<Self> {
        let mut found = Self::find(root, &config.containerd.config)?;
        if config.containerd.managed.is_on() {
            found.version = versions.of(&found.program, &PACKAGES);
        }
        Some(found)
    }

    /// Finds containerd without running it for its version. `main`: its main file; where that is the default,
    /// containerd's unit may name another.
    #[must_use]
    pub fn find(root: &Root, main: &Path) -> Option<Self> {
        let (unit, unread) = Unit::of_engine(root, UNIT);
        let line = unit.as_ref().map(|unit| CommandLine::of(root, unit)).unwrap_or_default();
        let program =
            line.program().filter(|program| root.exists(program)).or_else(|| on_path(root, NAME))?;

        let mut notes = Vec::new();
        let mut main = main.to_owned();
        if let Some(named) = line.path(&CONFIG_OPTIONS).filter(|named| *named != main) {
            if main == Path::new(CONTAINERD_CONFIG) {
                notes.push(format!("containerd.service names its main file: {}", named.display()));
                main = named;
            } else {
                notes.push(format!(
                    "containerd.service starts containerd with {}, and {} is configured: see containerd.config",
                    named.display(),
                    main.display()
                ));
            }
        }
        if let Some(word) = line.unknown(&CONFIG_OPTIONS) {
            notes.push(format!(
                "containerd.service starts containerd with {word}, which only systemd can resolve: if that names another \
                 main file than {}, set containerd.config",
                main.display()
            ));
        }
        let version = Err(format!("{} was not asked", program.display()));
        let (files, before_drop_in) = files::read(root, &main, &drop_in(&main));
        Some(Self { program, version, files, before_drop_in, unit: unit.is_some(), unread, notes })
    }

    /// Replaces what containerd's files say by what they would say without managed keys, for releases above 1.x, which
    /// need none in them. `text`: what a file of this path and text would say, where keys of it are managed.
    #[must_use]
    pub fn without_managed(mut self, text: impl Fn(&Path, &str) -> Option<String>) -> Self {
        // containerd 1.x keeps the managed keys where they are.
        if self.version.as_ref().is_ok_and(|version| version.major > 1) {
            for file in &mut self.files {
                let without = file.text.as_ref().ok().and_then(|it| text(&file.path, it.as_deref()?));
                if let Some(Ok(parsed)) = without.map(|text| Format::Toml.read(&text)) {
                    file.parsed = Ok(parsed);
                }
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

/// The path of rocworker's drop-in for this main file.
#[must_use]
pub fn drop_in(main: &Path) -> PathBuf {
    main.parent().unwrap_or(Path::new("/etc/containerd")).join(DROP_IN)
}
