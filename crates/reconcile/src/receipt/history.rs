//! The history of runs: who changed what, and when.

use std::path::Path;

use root::{Attributes, Root};
use serde::{Deserialize, Serialize};

use super::document::{read_document, write_document};
use crate::error::Error;
use crate::model::{LIMIT, Resource, Verb};

/// Mode 0644. A new file with each run that changed something.
pub const PATH: &str = "/var/lib/rocworker/history.json";

/// How many runs the history keeps; the oldest go first.
const KEPT: usize = 1000;

pub(crate) const VERSION: u32 = 1;

/// A run that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    /// `apply` or `undo`.
    pub command: String,
    /// The user who called, and by which program.
    pub caller: String,
    /// The version of rocworker.
    pub version: String,
    /// SHA-256 of the configuration.
    pub config_sha256: String,
    pub changed: Vec<Changed>,
    /// Whether the run was killed, so that the next run reports it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub path: Resource,
    pub change: Verb,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema_version: u32,
    events: Vec<Event>,
}

/// Reads the history, the oldest run first.
///
/// # Errors
/// When the history cannot be read, or was written by a newer version.
pub fn read(root: &Root) -> Result<Vec<Event>, Error> {
    let damaged = |path, problem| Error::History { path, problem };
    let document: Option<Document> = read_document(root, Path::new(PATH), VERSION, damaged)?;
    Ok(document.map(|document| document.events).unwrap_or_default())
}

/// Adds to what happened; of killed runs, those that are there already are not added again. A history that cannot be
/// read is begun anew beside the old one, which is kept: what is managed is in the receipt, not there.
///
/// # Errors
/// When the history cannot be written, or was written by a newer version, whose events must not be lost.
pub(crate) fn add(root: &Root, new: &[Event]) -> Result<(), Error> {
    let mut events = match read(root) {
        Ok(events) => events,
        Err(Error::History { .. }) => {
            let bytes = root.read(PATH, LIMIT)?;
            root.write(format!("{PATH}.damaged"), &bytes, Attributes { mode: 0o600, owner: None })?;
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    // A run whose receipt could not be written after its history is taken for a killed one by the next.
    let is_known =
        |new: &&Event| new.killed && events.iter().any(|it| Event { killed: true, ..it.clone() } == **new);
    let new: Vec<_> = new.iter().filter(|event| !is_known(event)).cloned().collect();
    events.extend(new);
    let events = events.split_off(events.len().saturating_sub(KEPT));
    write_document(root, PATH, &Document { schema_version: VERSION, events })
}
