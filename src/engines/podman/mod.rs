//! podman, which finds the GPUs by CDI: rocworker configures nothing of it.

mod canary;

use std::path::{Path, PathBuf};

use root::Root;
use serde_json::Value;

use super::{Engine, File, Watched, Wish, is_wrappers_program, on_path};

const NAME: &str = "podman";

/// containers.conf(5), in the order in which root's podman reads them; the folder's files come last.
const FILES: [&str; 2] = ["/usr/share/containers/containers.conf", "/etc/containers/containers.conf"];
const FOLDER: &str = "/etc/containers/containers.conf.d";

pub(super) const ENGINE: Engine = Engine {
    name: NAME,
    program: Some(NAME),
    names_programs_in: Some((&FILES, &[FOLDER])),
    has_wrapper_as_default,
    watched: |_, _| {
        let files = FILES.map(|file| Watched::File(file.into()));
        files.into_iter().chain([Watched::Folder(FOLDER.into())]).collect()
    },
    canary: canary::check,
    ..Engine::UNCONFIGURED
};

/// What may name its default runtime.
#[derive(Debug)]
pub struct Podman {
    files: Vec<File>,
}

impl Podman {
    /// `None` where it is not installed.
    #[must_use]
    pub fn read(root: &Root) -> Option<Self> {
        on_path(root, NAME)?;
        let mut names = root.list(FOLDER).unwrap_or_default();
        names.retain(|name| name.as_encoded_bytes().ends_with(b".conf"));
        names.sort();
        let in_folder = names.into_iter().map(|name| Path::new(FOLDER).join(name));
        let paths = FILES.into_iter().map(PathBuf::from).chain(in_folder);
        Some(Self { files: paths.map(|path| File::read(root, path)).collect() })
    }
}

/// A runtime is named by its program's path, or by its name among `engine.runtimes`, each a list of such paths.
fn has_wrapper_as_default(wish: &Wish<'_>) -> Result<Option<PathBuf>, String> {
    let Some(podman) = &wish.engines.podman else { return Ok(None) };
    let (mut default, mut programs) = (None, Vec::new());
    for file in &podman.files {
        let Some(engine) = file.table(&["engine"])? else { continue };
        default = engine.get("runtime").map(|runtime| (runtime, &file.path)).or(default);
        programs.extend(file.table(&["engine", "runtimes"])?.into_iter().flatten());
    }
    let Some((name, file)) = default else { return Ok(None) };
    let named = programs.iter().rev().find(|(of, _)| name == of.as_str());
    let programs = named.and_then(|(_, programs)| programs.as_array());
    let mut programs = programs.into_iter().flatten().chain([name]).filter_map(Value::as_str);
    Ok(programs.any(|program| is_wrappers_program(wish, program)).then(|| file.clone()))
}
