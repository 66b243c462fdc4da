//! Constraints of an undo from the present machine: the receipt only has what was true at the apply.

use std::collections::BTreeMap;
use std::path::PathBuf;

use edit::Format;
use serde::{Deserialize, Serialize};

use super::{Effect, Finding};

/// A key of a file that uses something which rocworker manages. `value` is the name by which the key uses it. An undo
/// that removed the named thing would leave the key without what it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub file: PathBuf,
    pub format: Format,
    pub key: Vec<String>,
    pub value: String,
}

/// Constraints as the machine's files show them now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoConstraints {
    /// The files that may use a component, beside those that may have used it when rocworker set the component up.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// Uses elsewhere than at a key of a file.
    pub named: Vec<Named>,
    /// The places that show what runs with a file of the component.
    pub running: BTreeMap<String, Vec<Running>>,
    /// Unmanaged files: what they name is not removed.
    pub namers: Vec<PathBuf>,
    /// Files and folders that cannot be read, and why: nothing is removed that they could name.
    pub unread: Vec<Finding>,
    /// A remedy for a setting that names a component's part, where changing the setting is not enough.
    pub remedies: BTreeMap<String, String>,
    /// The effects with which a unit restarts now, in place of those that the receipt holds.
    pub starts: BTreeMap<String, Vec<Effect>>,
}

/// A setting that would name nothing if what it names were gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub component: String,
    /// The value of the [`Use`], or the path that the setting names.
    pub value: String,
    /// A sentence on where the setting is, and what to do first.
    pub why: String,
}

/// A folder of folders that each hold one folder for each thing that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub folder: PathBuf,
    /// Files of such a folder, any of which may name the path by which it runs.
    pub files: Vec<String>,
    /// The name for what runs there: `container`.
    pub what: String,
}

impl UndoConstraints {
    /// The present effects in place of those of an entry.
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
