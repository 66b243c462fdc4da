//! podman, which finds the GPUs by CDI, so that rocworker configures nothing of podman's.

mod canary;
mod doctor;

use std::path::{Path, PathBuf};

use config::Config;
use root::Root;
use serde_json::Value;

use super::wrapper_as_default::{NamedRuntime, is_wrapper};
use super::{Engine, Engines, File, Watched, on_path};

const NAME: &str = "podman";

/// containers.conf(5), in the order in which root's podman reads them; the folder's files come last.
const FILES: [&str; 2] = ["/usr/share/containers/containers.conf", "/etc/containers/containers.conf"];
const FOLDER: &str = "/etc/containers/containers.conf.d";
/// Folder of vendors' files, which not every release reads.
const VENDORS: &str = "/usr/share/containers/containers.conf.d";

/// Runtimes that podman looks for where no file names one.
const BUILT_IN: [&str; 2] = ["crun", "runc"];

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    program: Some(NAME),
    names_programs_in: Some((&FILES, &[FOLDER])),
    has_wrapper_as_default,
    watched: |_, _| {
        let files = FILES.map(|file| Watched::File(file.into()));
        files.into_iter().chain([VENDORS, FOLDER].map(|folder| Watched::Folder(folder.into()))).collect()
    },
    doctor: |examined, _| doctor::check(examined),
    canary: canary::check,
    ..Engine::UNCONFIGURED
};

/// What may name its default runtime.
#[derive(Debug)]
pub struct Podman {
    files: Vec<File>,
}

impl Podman {
    /// Reads podman's files; `None` where podman is not installed.
    #[must_use]
    pub fn read(root: &Root) -> Option<Self> {
        on_path(root, NAME)?;
        let in_folder = |folder: &str| {
            let mut names = root.list(folder).unwrap_or_default();
            names.retain(|name| name.as_encoded_bytes().ends_with(b".conf"));
            names.sort();
            names.into_iter().map(|name| Path::new(folder).join(name)).collect::<Vec<_>>()
        };
        let paths =
            FILES.into_iter().map(PathBuf::from).chain([VENDORS, FOLDER].into_iter().flat_map(in_folder));
        Some(Self { files: paths.map(|path| File::read(root, path)).collect() })
    }
}

/// Looks at the files as a podman reads them that skips the vendors' folder, then as one that reads it: releases
/// differ.
fn has_wrapper_as_default(
    root: &Root,
    _: &Config,
    engines: &Engines,
) -> Result<Option<NamedRuntime>, String> {
    let Some(podman) = &engines.podman else { return Ok(None) };
    let all: Vec<_> = podman.files.iter().collect();
    let without: Vec<_> = all.iter().copied().filter(|file| !file.path.starts_with(VENDORS)).collect();
    Ok(by_files(root, &without)?.or(by_files(root, &all)?))
}

/// A runtime is named by its program's path, or by its name among `engine.runtimes`, each a list of such paths.
fn by_files(root: &Root, files: &[&File]) -> Result<Option<NamedRuntime>, String> {
    let (mut default, mut known) = (None, Vec::new());
    for file in files {
        let Some(engine) = file.table(&["engine"])? else { continue };
        let name = engine.get("runtime").and_then(Value::as_str).filter(|name| !name.is_empty());
        default = name.map(|name| (name, &file.path)).or(default);
        let runtimes = file.table(&["engine", "runtimes"])?.into_iter().flatten();
        known.extend(runtimes.map(|(name, programs)| (name, programs, &file.path)));
    }
    let runtime = |name: &str, named_in: Option<&PathBuf>| {
        let named = known.iter().rev().find(|(of, ..)| *of == name);
        let programs = named.and_then(|(_, programs, _)| programs.as_array()).into_iter().flatten();
        let mut programs: Vec<_> = programs.filter_map(Value::as_str).collect();
        if programs.is_empty() || name.starts_with('/') {
            programs.push(name);
        }
        let is = is_wrapper(root, &programs)?;
        let listed_in = || named.map(|(_, _, file)| (*file).clone());
        Some((named_in.cloned().or_else(listed_in).or_else(|| on_path(root, name))?, is))
    };
    Ok(match default {
        Some((name, file)) => runtime(name, Some(file)),
        None => BUILT_IN.into_iter().find_map(|name| runtime(name, None)),
    })
}
