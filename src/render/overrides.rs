use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::{Kind, Root};

use super::stale::{Sums, sum};
use super::{BUILT_IN, Error};

/// Where an operator's templates lie, by the names of those that they override.
pub const FOLDER: &str = "/etc/rocworker/templates";

/// Eighty times the longest of ours.
const LIMIT: usize = 64 << 10;

/// Folders beneath [`FOLDER`] are no deeper than this.
const DEPTH: usize = 3;

/// The templates that the program carries, and an operator's that come before them, read once.
#[derive(Debug, Default)]
pub struct Templates {
    overrides: BTreeMap<&'static str, Override>,
    unknown: Vec<PathBuf>,
}

#[derive(Debug)]
struct Override {
    /// As a person at a shell would name it.
    path: PathBuf,
    /// Or why it cannot be believed.
    text: Result<String, String>,
}

impl Templates {
    /// Those that the program carries alone.
    #[must_use]
    pub fn built_in() -> Self {
        Self::default()
    }

    /// With the overrides beneath `root`. One that cannot be read, or that others than root could have written, is
    /// an error of rendering it.
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
        Error::Unfit { place: self.place(name), problem: problem.into() }
    }

    /// Of each override that can be read, what it is and what it overrides.
    #[must_use]
    pub fn sums(&self) -> BTreeMap<String, Sums> {
        let readable = self.overrides.iter().filter_map(|(name, found)| {
            let text = found.text.as_ref().ok()?;
            Some(((*name).to_owned(), Sums { r#override: sum(text), built_in: sum(built_in(name)?) }))
        });
        readable.collect()
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Error> {
        match self.overrides.get(name) {
            Some(found) => found
                .text
                .as_deref()
                .map_err(|problem| Error::Unreadable { name: name.to_owned(), problem: problem.clone() }),
            None => built_in(name).ok_or_else(|| Error::Template {
                at: format!("template {name}"),
                problem: "there is none of this name".to_owned(),
            }),
        }
    }
}

fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
