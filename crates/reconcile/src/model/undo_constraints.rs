//! What an undo has to respect on the machine as it is now: a receipt says what was so at the apply.

use std::collections::BTreeMap;
use std::path::PathBuf;

use edit::Format;
use serde::{Deserialize, Serialize};

use super::{Effect, Finding};

/// A key of a file that would name nothing if it held this value and what it names were gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub file: PathBuf,
    pub format: Format,
    pub key: Vec<String>,
    pub value: String,
}

/// By what the machine's files say now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoConstraints {
    /// The files of a component in which a use of it can be, beside those in which it could when its parts came.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// Uses elsewhere than at a key of a file.
    pub named: Vec<Named>,
    /// Where whoever runs by a file of a component names it.
    pub running: BTreeMap<String, Vec<Running>>,
    /// Unmanaged files: what they name is not removed.
    pub namers: Vec<PathBuf>,
    /// Files and folders that cannot be read, and why: nothing is removed that they could name.
    pub unread: Vec<Finding>,
    /// What to do about a setting of a file that names a component's part, where it is more than to change it.
    pub remedies: BTreeMap<String, String>,
    /// What it takes for a unit to begin anew, whatever it took when the receipt was written.
    pub starts: BTreeMap<String, Vec<Effect>>,
}

/// A setting that would name nothing if what it names were gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub component: String,
    /// The value of the [`Use`] that it is, or the path that it names.
    pub value: String,
    /// Who says it, and what to do first.
    pub why: String,
}

/// A folder of folders that each hold one folder for each thing that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub folder: PathBuf,
    /// Files of such a folder, any of which may name the path by which it runs.
    pub files: Vec<String>,
    /// What runs there: `container`.
    pub what: String,
}

impl UndoConstraints {
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
