//! An override is made from the template that the program carries at the time. When that changes with a later
//! version, and the override does not, it may lack what is new.

use std::collections::BTreeMap;

use reconcile::Digest;
use serde::{Deserialize, Serialize};

/// An override and what it overrides, by the SHA-256 of their texts, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub r#override: String,
    pub built_in: String,
}

/// What is to be said of overrides, and what is to be remembered of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stale {
    /// The names of those whose built-in template has changed since they were first seen, and which have not.
    pub names: Vec<String>,
    /// Beside which built-in template each was first seen: what the next [`judge`] is given.
    pub memory: BTreeMap<String, Sums>,
}

/// Compares the overrides of now with what is remembered of them. One that was edited counts as new: whoever edited it
/// has seen the template of today.
#[must_use]
pub fn judge(memory: &BTreeMap<String, Sums>, now: &BTreeMap<String, Sums>) -> Stale {
    let mut stale = Stale::default();
    for (name, sums) in now {
        let first = memory.get(name).filter(|first| first.r#override == sums.r#override).unwrap_or(sums);
        if first.built_in != sums.built_in {
            stale.names.push(name.clone());
        }
        stale.memory.insert(name.clone(), first.clone());
    }
    stale
}

pub(super) fn sum(text: &str) -> String {
    Digest::of(text.as_bytes()).as_str().to_owned()
}
