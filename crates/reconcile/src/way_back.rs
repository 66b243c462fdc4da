//! What taking things back has to heed on the machine as it is now: a receipt tells what was so when they came.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::Root;

use crate::state::LIMIT;
use crate::{Effect, Finding};

/// By what the machine's files say now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WayBack {
    /// The files of a concern in which a use of it can stand, beside those in which it could when its parts came.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// Uses that stand elsewhere than at a key of a file.
    pub named: Vec<Named>,
    /// Where whoever runs by a file of a concern names it.
    pub running: BTreeMap<String, Vec<Running>>,
    /// Files of somebody's: what they name is not taken away.
    pub namers: Vec<PathBuf>,
    /// Files and folders of which nobody can tell whether they name something, and why: nothing is taken away that they
    /// could name.
    pub unread: Vec<Finding>,
    /// What to do about a setting of a file that names a concern's part, where it is more than to change it.
    pub remedies: BTreeMap<String, String>,
    /// What it takes for a unit to begin anew, whatever it took when the receipt was written.
    pub starts: BTreeMap<String, Vec<Effect>>,
}

/// A setting that would name nothing if what it names were gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub concern: String,
    /// The value of the [`crate::Use`] that it stands for, or the path that it names.
    pub value: String,
    /// Who says it, and what to do first.
    pub why: String,
}

/// A folder of folders that each hold one folder for each thing that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub folder: PathBuf,
    /// Files of such a folder, in any of which the path stands by which it runs.
    pub files: Vec<String>,
    /// What runs there: `container`.
    pub what: String,
}

impl Running {
    /// What runs by this path.
    #[must_use]
    pub fn by(&self, root: &Root, path: &Path) -> Option<String> {
        let path = path.as_os_str().as_encoded_bytes();
        let names = |file: &Path| {
            let bytes = root.read(file, LIMIT).unwrap_or_default();
            bytes.windows(path.len().max(1)).any(|part| part == path)
        };
        let inner = |folder: &Path| {
            let names = root.list(folder).unwrap_or_default();
            names.into_iter().map(|name| folder.join(name)).collect::<Vec<_>>()
        };
        let runs = |folder: &PathBuf| self.files.iter().any(|file| names(&folder.join(file)));
        let folder = inner(&self.folder).iter().flat_map(|group| inner(group)).find(runs)?;
        Some(format!("{} {}", self.what, folder.file_name()?.to_string_lossy()))
    }
}

impl WayBack {
    /// What the effects of an entry come to now.
    #[must_use]
    pub fn effects(&self, kept: &[Effect]) -> Vec<Effect> {
        let mut effects: Vec<Effect> = Vec::new();
        for effect in kept {
            let start = match effect {
                Effect::Restart { unit, drain: None } | Effect::NextStart { unit, .. } => {
                    self.starts.get(unit)
                }
                _ => None,
            };
            effects.extend(start.map_or(std::slice::from_ref(effect), Vec::as_slice).iter().cloned());
        }
        effects.sort();
        effects.dedup();
        effects
    }
}
