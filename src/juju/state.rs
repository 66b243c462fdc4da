//! What a charm has put on this machine beside the receipt, so that it takes that away and nothing else.

use reconcile::Digest;
use root::{Attributes, Root};
use serde::{Deserialize, Serialize};

pub(super) const PATH: &str = "/var/lib/rocworker/charm.json";
const LIMIT: usize = 1 << 20;
const VERSION: u32 = 1;

/// What is remembered. A digest is written here before the bytes are written there: whoever is killed in between finds
/// that either of the two is ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    schema_version: u32,
    /// Units whose hooks ran here: several of one charm can share a machine.
    #[serde(default)]
    pub(super) units: Vec<String>,
    /// Whether the action undo has been run, and apply not since.
    #[serde(default)]
    pub(super) is_taken_back: bool,
    /// Whether that has come to its end: what is set up afterwards is somebody else's.
    #[serde(default)]
    pub(super) undo_ended: bool,
    /// Whether a hook or an action has applied here: only then is it the charm's to take back what is set up. A file without it was
    /// written by a version that applied at once.
    #[serde(default = "at_once")]
    pub(super) has_applied: bool,
    /// What the configuration was written as, the last one last.
    #[serde(default)]
    pub(super) configuration: Vec<String>,
    /// The same of the program.
    #[serde(default)]
    pub(super) program: Vec<String>,
}

fn at_once() -> bool {
    true
}

/// Why it cannot be told what a charm has put here.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error(
        "{path} cannot be read: {problem}; move it away: the files that it names then stay when the charm goes"
    )]
    Damaged { path: String, problem: String },
    #[error(
        "{path} has schema_version {found}, which another rocworker wrote: upgrade the charm to that one"
    )]
    Newer { path: String, found: u32 },
}

impl Default for State {
    fn default() -> Self {
        Self {
            schema_version: VERSION,
            units: Vec::new(),
            is_taken_back: false,
            undo_ended: false,
            has_applied: false,
            configuration: Vec::new(),
            program: Vec::new(),
        }
    }
}

impl State {
    /// What is remembered; nothing where nothing is.
    pub(super) fn read(root: &Root) -> Result<Self, Error> {
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let path = || root.shown(PATH).display().to_string();
        let state: Self = serde_json::from_slice(&bytes)
            .map_err(|error| Error::Damaged { path: path(), problem: error.to_string() })?;
        if state.schema_version != VERSION {
            return Err(Error::Newer { path: path(), found: state.schema_version });
        }
        Ok(state)
    }

    /// Remembers it; nothing is written when that stands there already.
    pub(super) fn write(&self, root: &Root) -> Result<(), Error> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        root.write(PATH, &text, Attributes { mode: 0o644, owner: None })?;
        Ok(())
    }
}

/// Whether bytes are among those that were written.
pub(super) fn is_among(written: &[String], bytes: &[u8]) -> bool {
    let digest = Digest::of(bytes);
    written.iter().any(|known| known == digest.as_str())
}

/// What is known to be ours while one file takes another's place: what stands there, and what is about to.
pub(super) fn around(standing: Option<&[u8]>, next: &[u8]) -> Vec<String> {
    let digests = standing.into_iter().chain([next]).map(|bytes| Digest::of(bytes).as_str().to_owned());
    digests.collect()
}
