//! What is remembered from one apply to the next, beside the receipt: what words of the configuration meant, which
//! version a program has, which built-in template an override was made beside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use config::{self, Config};
use host::pinned_devices::PinnedDevices;
use host::version::{Known, Version};
use packages::driver::Attempt;
use reconcile::Digest;
use render::Sums;
use root::{Attributes, Root, Written};
use serde::{Deserialize, Serialize};

pub const PATH: &str = "/var/lib/rocworker/memory.json";
const LIMIT: usize = 4 << 20;
const VERSION: u32 = 1;

/// The path of the memory, and the newest schema_version that this version reads.
pub const FORMAT: (&str, u32) = (PATH, VERSION);

/// The memory as its file holds it.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "the keys of memory.json")]
struct Stored<M> {
    schema_version: u32,
    #[serde(flatten)]
    memory: M,
}

/// What rocworker remembers from one run to the next, beside the receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Which GPUs the words of gpu-device-ids meant when they were first applied.
    #[serde(default, rename = "chosen")]
    pub pinned: PinnedDevices,
    /// Versions of programs, by path.
    #[serde(default)]
    pub versions: BTreeMap<PathBuf, Known>,
    /// Beside which built-in template each override was first seen.
    #[serde(default)]
    pub overrides: BTreeMap<String, Sums>,
    /// The Concourse whose configuration of containerd the managed one is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concourse: Option<Version>,
    /// Whether rocworker tags the Concourse worker. Tags go with the GPUs, and come back with them. `None`: no apply of
    /// this version has run ([`Memory::has_tagged`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagged: Option<bool>,
    /// The last reboot that was asked for because of the driver, where an earlier version kept it. The receipt has it
    /// now.
    #[serde(default, skip_serializing, rename = "driver")]
    pub(crate) reboot: Option<Attempt>,
    /// Whether packages were about to come, and no run has found since that the driver among them is in order: a run
    /// may have been killed, or have found what a person repairs later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// Whether an undo has begun and no apply has run since. If so, the daemon sets up nothing again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// The configuration of the last apply. `None`: the machine's own, which had no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<AppliedConfig>,
    /// The version of rocworker that last set the machine up. Another version on the machine may make another thing of
    /// one configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocworker: Option<String>,
    /// The mount points over files that may name the wrapper, as they were when this machine was first set up. `None`:
    /// an earlier version did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounts: Option<BTreeSet<PathBuf>>,
    /// The component that alone was applied here (`apply --only`), as receipts name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
}

/// The configuration of an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedConfig {
    /// The configuration's path, where it is not the machine's own (`--config`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<PathBuf>,
    /// The digest of the configuration's text, as the history records it.
    pub sha256: String,
}

impl AppliedConfig {
    /// What is remembered of a configuration by which a machine is set up. `None`: it is the machine's own, and says
    /// nothing.
    pub fn of(root: &Root, config: &Config) -> Option<Self> {
        let path = config.path();
        let other = (path != root.shown(config::PATH)).then(|| path.to_owned());
        let says_nothing = config.says_nothing();
        let sha256 = || Digest::of(config.text().as_bytes()).as_str().to_owned();
        (other.is_some() || !says_nothing).then(|| Self { other, sha256: sha256() })
    }
}

/// Why what is remembered cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    #[error("{} cannot be read: {problem}; move it away, then run rocworker apply, with --config FILE where the last one had it: rocworker then looks words of gpu-device-ids up anew, and does not know by which configuration this machine was set up", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{} has schema_version {found}, which another rocworker wrote: install that one again, and undo with it before \
         going back",
        path.display()
    )]
    Newer { path: PathBuf, found: u32 },
}

impl Memory {
    /// Reads the memory's file. Without a file the memory is empty.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let damaged = |problem| Error::Damaged { path: root.shown(PATH), problem };
        let stored = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        match stored {
            Stored { schema_version: VERSION, memory } => Ok(memory),
            Stored { schema_version: found, .. } => Err(Error::Newer { path: root.shown(PATH), found }),
        }
    }

    /// Whether rocworker tags the Concourse worker, or did before its GPUs went. Earlier versions tagged each worker that
    /// they set up, and did not remember it.
    pub fn has_tagged(&self) -> bool {
        self.tagged.unwrap_or(self.rocworker.is_some() && self.only.is_none())
    }

    /// Writes the file, unless it has these bytes already. Removes the file where nothing is remembered.
    pub fn write(&self, root: &Root) -> Result<Written, root::Error> {
        if *self == Self::default() {
            return root.remove(PATH);
        }
        let stored = Stored { schema_version: VERSION, memory: self };
        let mut text = serde_json::to_vec_pretty(&stored).unwrap_or_default();
        text.push(b'\n');
        root.write(PATH, &text, Attributes { mode: 0o644, owner: None })
    }
}
