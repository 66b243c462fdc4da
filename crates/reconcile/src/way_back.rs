//! What taking things back has to heed on the machine as it is now: a receipt tells what was so when they came.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Effect;

/// By what the machine's files say now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WayBack {
    /// The files of a concern in which a use of it can stand, beside those in which it could when its parts came.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// Uses that stand elsewhere than at a key of a file.
    pub named: Vec<Named>,
    /// What it takes for a unit to begin anew, whatever it took when the receipt was written.
    pub starts: BTreeMap<String, Vec<Effect>>,
}

/// A setting that would name nothing if what it names were gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub concern: String,
    /// The value of the [`crate::Use`] that it stands for.
    pub value: String,
    /// Who says it and what: `docker.service starts dockerd with --default-runtime amd`.
    pub by: String,
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
