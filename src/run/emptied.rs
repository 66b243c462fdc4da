//! A configuration that says nothing, where the one that was followed last did.

use reconcile::Store;
use root::Root;

use super::is_set_up;
use crate::config::Config;
use crate::memory::{Followed, Memory};

/// Why nobody goes by a configuration that is empty or not there, but an apply that somebody asks for: this machine was set
/// up by one of the same place that said something. It may be about to be written, and what it withheld (GPUs, requests) is
/// not to be given meanwhile. `None` of any other, and where nothing is set up.
#[must_use]
pub fn emptied(root: &Root, config: &Config) -> Option<String> {
    if !config.says_nothing() {
        return None;
    }
    // Of what cannot be read it is said where something is done by it.
    let (memory, receipt) = (Memory::read(root).ok()?, Store::new(root).receipt().ok()?);
    let now = Followed::of(root, config);
    let last = memory.config.as_ref().filter(|last| now.as_ref() != Some(last))?;
    let other = now.and_then(|now| now.other);
    let is_of_same_place = last.other == other;
    let option = other.map_or_else(String::new, |path| format!("--config {} ", path.display()));
    (is_of_same_place && is_set_up(&receipt, &memory)).then(|| {
        format!(
            "{} is empty or not there, and was not when this machine was set up by it: it counts once it says something, or \
             after rocworker {option}apply",
            config.path().display()
        )
    })
}
