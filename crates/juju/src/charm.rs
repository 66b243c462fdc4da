//! What a charm has put on this machine beside the receipt, so that it removes that and nothing else.

use std::time::Duration;

use anyhow::{anyhow, ensure};
use reconcile::{Digest, FOLDER};
use root::{Attributes, Error, Lock, Root};
use serde::{Deserialize, Serialize};

/// The lock of the charm's own file. A process takes it before the lock of an apply or an undo, and never while it holds
/// that one, so that no two processes wait for each other.
const LOCK: &str = "/var/lib/rocworker/charm.lock";
pub const PATH: &str = "/var/lib/rocworker/charm.json";
/// The versions of the Debian package that the charm has installed, one a line. charm/dispatch writes the file, and removes
/// the package after the last unit's hook `remove` while the file names the version that is installed.
pub const PACKAGE: &str = "/var/lib/rocworker/charm-package";
/// The folder that holds a folder for the agent of each Juju unit on the machine.
pub const AGENTS: &str = "/var/lib/juju/agents";
const LIMIT: usize = 1 << 20;
const VERSION: u32 = 1;

/// The charm's record of its files on this machine. A digest is written here before the bytes are written there:
/// whoever is killed in between finds that either of the two is the charm's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charm {
    schema_version: u32,
    /// Units whose hooks ran here: several of one charm can share a machine.
    #[serde(default)]
    pub units: Vec<String>,
    #[serde(flatten)]
    pub undo: Undo,
    /// Whether a hook or an action has applied here: only then does the charm revert what is set up. A version that
    /// applied at once wrote files without it.
    #[serde(default = "at_once")]
    pub has_applied: bool,
    /// What the configuration was written as, the last one last.
    #[serde(default)]
    pub configuration: Vec<String>,
    /// What a charm that carried no package wrote as /usr/local/bin/rocworker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// What a charm that carried no package wrote as /usr/local/bin/rocworker-exporter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exporter: Vec<String>,
    /// The ports that Juju was asked to open for the exporter, the last one last. Whether it did is known only once the
    /// hook has ended.
    #[serde(default)]
    pub ports: Vec<u16>,
}

fn at_once() -> bool {
    true
}

/// How far the action undo has come, which the action apply ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "UndoKeys", into = "UndoKeys")]
pub enum Undo {
    #[default]
    None,
    /// It was killed or could not begin, unless it runs still: the next hook tries it again.
    Begun,
    /// A person made what is set up afterwards.
    Ended,
}

/// What the record has of [`Undo`].
#[derive(Serialize, Deserialize)]
struct UndoKeys {
    #[serde(default)]
    is_taken_back: bool,
    #[serde(default)]
    undo_ended: bool,
}

impl From<UndoKeys> for Undo {
    fn from(keys: UndoKeys) -> Self {
        match (keys.is_taken_back, keys.undo_ended) {
            (false, _) => Self::None,
            (true, false) => Self::Begun,
            (true, true) => Self::Ended,
        }
    }
}

impl From<Undo> for UndoKeys {
    fn from(undo: Undo) -> Self {
        Self { is_taken_back: undo != Undo::None, undo_ended: undo == Undo::Ended }
    }
}

impl Charm {
    /// Reads the record; an absent file is an empty record.
    pub fn read(root: &Root) -> anyhow::Result<Self> {
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let path = root.shown(PATH);
        let charm: Self = serde_json::from_slice(&bytes).map_err(|error| {
            anyhow!(
                "{} cannot be read: {error}; move it away: the files that it names then stay when the charm goes",
                path.display()
            )
        })?;
        let found = charm.schema_version;
        ensure!(
            found == VERSION,
            "{} has schema_version {found}, which another rocworker wrote: upgrade the charm to that one",
            path.display()
        );
        Ok(charm)
    }

    /// Writes the record, unless the file holds it already.
    pub fn write(&self, root: &Root) -> Result<(), Error> {
        let stored = Self { schema_version: VERSION, ..self.clone() };
        let mut text = serde_json::to_vec_pretty(&stored).unwrap_or_default();
        text.push(b'\n');
        root.write(PATH, &text, Attributes { mode: 0o644, owner: None }).map(drop)
    }
}

/// Waits until no other hook of this machine reads, changes and writes the state; several units can share a machine.
/// `on_wait` is called with a sentence where another hook has the lock.
pub fn lock(root: &Root, patience: Duration, on_wait: &mut dyn FnMut(String)) -> Result<Lock, Error> {
    root.check_folder_owner(FOLDER)?;
    match root.lock(LOCK, Duration::ZERO) {
        Err(Error::Locked { path, .. }) => on_wait(format!(
            "waiting up to {} s for another hook of this machine, which has {}",
            patience.as_secs(),
            path.display()
        )),
        other => return other,
    }
    root.lock(LOCK, patience)
}

/// Whether the digest of `bytes` is among those of the files that the charm wrote.
pub fn is_among(written: &[String], bytes: &[u8]) -> bool {
    let digest = Digest::of(bytes);
    written.iter().any(|known| known == digest.as_str())
}

/// Digests of what is known to be the charm's while one file replaces another: the bytes that are `present`, and the
/// next.
pub fn around(present: Option<&[u8]>, next: &[u8]) -> Vec<String> {
    let digests = present.into_iter().chain([next]).map(|bytes| Digest::of(bytes).as_str().to_owned());
    digests.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_record_says_of_an_undo_what_it_always_said() {
        for (undo, keys) in [
            (Undo::None, r#""is_taken_back":false,"undo_ended":false"#),
            (Undo::Begun, r#""is_taken_back":true,"undo_ended":false"#),
            (Undo::Ended, r#""is_taken_back":true,"undo_ended":true"#),
        ] {
            let text = format!(
                r#"{{"schema_version":1,"units":["u/0"],{keys},"has_applied":true,"configuration":[],"ports":[9400]}}"#
            );
            let charm: Charm = serde_json::from_str(&text).unwrap();
            assert_eq!(charm.undo, undo);
            assert_eq!(serde_json::to_string(&charm).unwrap(), text);
        }
        // An apply after an undo left the second key as it was.
        let after = r#"{"schema_version":1,"is_taken_back":false,"undo_ended":true}"#;
        assert_eq!(serde_json::from_str::<Charm>(after).unwrap().undo, Undo::None);
        assert_eq!(serde_json::from_str::<Charm>(r#"{"schema_version":1}"#).unwrap().undo, Undo::None);
    }

    #[test]
    fn whoever_waits_too_long_says_for_what() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut reported = Vec::new();
        let held = lock(&root, Duration::ZERO, &mut |text| reported.push(text)).unwrap();
        assert!(reported.is_empty(), "{reported:?}");
        let error = lock(&root, Duration::ZERO, &mut |text| reported.push(text)).unwrap_err().to_string();
        let path = root.shown(LOCK).display().to_string();
        let expected = format!("waiting up to 0 s for another hook of this machine, which has {path}");
        assert_eq!(reported, [expected]);
        assert!(error.starts_with(&format!("{path} is locked: ")) && error.contains("fuser"), "{error}");
        drop(held);
        lock(&root, Duration::ZERO, &mut |text| reported.push(text)).unwrap();
        assert_eq!(reported.len(), 1);
    }
}
