use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reconcile::Digest;
use root::{Kind, Root};
use serde::{Deserialize, Serialize};

use super::{BUILT_IN, Error};

/// Folder of an operator's templates, each with the name of the built-in one that it overrides.
const FOLDER: &str = "/etc/rocworker/templates";

/// Eighty times the longest built-in one.
const LIMIT: usize = 64 << 10;

/// Folders beneath [`FOLDER`] are no deeper than this.
const DEPTH: usize = 3;

/// Every path at which an operator's template would be.
pub fn overrides() -> impl Iterator<Item = PathBuf> {
    BUILT_IN.iter().map(|(name, _)| Path::new(FOLDER).join(name))
}

/// An override and the template that it overrides, by the SHA-256 of their texts, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub r#override: String,
    pub built_in: String,
}

/// The templates that the program carries, and an operator's that come before them, read once.
#[derive(Debug, Default)]
pub struct Templates {
    overrides: BTreeMap<&'static str, Override>,
    unknown: Vec<PathBuf>,
}

#[derive(Debug)]
struct Override {
    /// The override's path, with the Root in front, as a person at a shell names it.
    path: PathBuf,
    /// The template, or why it cannot be trusted.
    text: Result<String, String>,
}

impl Templates {
    /// The templates that the program carries, without an operator's.
    #[must_use]
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The built-in templates and the overrides beneath `root`. Rendering an override fails that cannot be read, or
    /// that others than root could have written.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let mut templates = Self::default();
        templates.read_folder(root, Path::new(FOLDER), 1);
        templates
    }

    fn read_folder(&mut self, root: &Root, folder: &Path, depth: usize) {
        // Nearly always there is none.
        for name in root.list(folder).unwrap_or_default() {
            let path = folder.join(&name);
            let is_folder = root.lstat(&path).is_ok_and(|meta| meta.kind == Kind::Directory);
            if is_folder && depth < DEPTH {
                self.read_folder(root, &path, depth + 1);
                continue;
            }
            let name = path.strip_prefix(FOLDER).ok().and_then(Path::to_str);
            let Some((name, _)) = BUILT_IN.iter().find(|(known, _)| Some(*known) == name) else {
                self.unknown.push(root.shown(&path));
                continue;
            };
            let text = root.read_trusted(&path, LIMIT).map_err(|error| error.to_string()).and_then(|bytes| {
                String::from_utf8(bytes).map_err(|_| format!("{} is not text", root.shown(&path).display()))
            });
            self.overrides.insert(name, Override { path: root.shown(&path), text });
        }
    }

    /// Files in the folder that are named like no template: nothing reads them.
    #[must_use]
    pub fn unknown(&self) -> &[PathBuf] {
        &self.unknown
    }

    /// What a person calls the template: the override's file, or that it is the program's own.
    #[must_use]
    pub fn place(&self, name: &str) -> String {
        match self.overrides.get(name) {
            Some(found) => found.path.display().to_string(),
            None => format!("template {name}"),
        }
    }

    /// The error of a template that gives this, which its reader does not take.
    #[must_use]
    pub fn unfit(&self, name: &str, problem: impl Into<String>) -> Error {
        Error(format!("{} gives {}; mend the template", self.place(name), problem.into()))
    }

    /// The built-in template beside which each readable override was first seen. An edited override counts as new:
    /// whoever edited it has seen the template of today.
    #[must_use]
    pub fn first_seen(&self, memory: &BTreeMap<String, Sums>) -> BTreeMap<String, Sums> {
        let readable = self.overrides.iter().filter_map(|(name, found)| {
            let sum = |text: &str| Digest::of(text.as_bytes()).as_str().to_owned();
            let now = Sums { r#override: sum(found.text.as_ref().ok()?), built_in: sum(built_in(name)?) };
            let first = memory.get(*name).filter(|first| first.r#override == now.r#override);
            Some(((*name).to_owned(), first.cloned().unwrap_or(now)))
        });
        readable.collect()
    }

    /// The names of overrides whose built-in template has changed since they were first seen, and which have not: they
    /// may lack what is new.
    #[must_use]
    pub fn stale(&self, memory: &BTreeMap<String, Sums>) -> Vec<String> {
        let (first, now) = (self.first_seen(memory), self.first_seen(&BTreeMap::new()));
        first.into_iter().filter(|(name, first)| now.get(name) != Some(first)).map(|(name, _)| name).collect()
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Error> {
        match self.overrides.get(name) {
            Some(found) => found.text.as_deref().map_err(|problem| {
                Error::new(&format!("the override of template {name} is not followed"), problem)
            }),
            None => built_in(name).ok_or_else(|| Error::new(&self.place(name), "there is none of this name")),
        }
    }
}

fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
