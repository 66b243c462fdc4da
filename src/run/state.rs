//! What rocworker manages on a machine, which configuration is in force there, and what is pending.

use std::path::Path;

use reconcile::{Entry, KindName, Pending, Receipt, Resource, Stage, Store};
use root::Root;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Error;
use crate::memory::Memory;

/// What rocworker manages and what is pending: the value from which status, boot, the daemon, the package's scripts and
/// the charm answer. `status` prints it as JSON (docs/json.md).
#[derive(Debug, Clone, Default)]
pub struct State {
    /// What rocworker manages on the machine.
    pub receipt: Receipt,
    /// The configuration of the last apply, and what its words meant then.
    pub memory: Memory,
    /// Restarts and the like that are due.
    pub pending: Vec<Pending>,
}

/// How far a machine is set up. Only an apply changes one that is not [`Phase::Applied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// No apply has run here, or nothing is left of it. `cdi generate` may have written a spec.
    Unmanaged,
    /// An apply has run here, and no undo since.
    Applied,
    /// An undo has begun, and something is left, such as a driver that it kept.
    Undone,
}

impl State {
    /// Reads the machine beneath `root`. Writes nothing.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let receipt = Store::new(root).receipt()?;
        Ok(Self::of(root, receipt, Memory::read(root)?))
    }

    /// Reads the state as [`State::read`] does, but takes a memory that cannot be read for an empty one.
    pub fn of_receipt(root: &Root) -> Result<Self, Error> {
        Ok(Self::of(root, Store::new(root).receipt()?, Memory::read(root).unwrap_or_default()))
    }

    pub(super) fn of(root: &Root, receipt: Receipt, memory: Memory) -> Self {
        let pending = receipt.still_pending(root).cloned().collect();
        Self { receipt, memory, pending }
    }

    pub fn phase(&self) -> Phase {
        // `cdi generate` alone leaves a spec, which belongs to no component, and `partition set` modes.
        let is_its = |entry: &Entry| !entry.component.is_empty() && entry.managed.kind() != KindName::Value;
        let is_set_up = || self.receipt.entries.iter().any(is_its);
        match self.memory.undone {
            true => Phase::Undone,
            false if is_set_up() => Phase::Applied,
            false => Phase::Unmanaged,
        }
    }

    pub fn is_applied(&self) -> bool {
        self.phase() == Phase::Applied
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let configuration = self.memory.config.as_ref().map(|config| Configuration {
            path: config.other.as_deref().unwrap_or(config::PATH.as_ref()),
            sha256: &config.sha256,
        });
        let managed: Vec<_> = self.receipt.entries.iter().map(Managed::of).collect();
        let mut state = serializer.serialize_struct("State", 5)?;
        state.serialize_field("schema_version", &1)?;
        state.serialize_field("phase", &self.phase())?;
        state.serialize_field("configuration", &configuration)?;
        state.serialize_field("ours", &managed)?;
        state.serialize_field("pending", &self.pending)?;
        state.end()
    }
}

/// The configuration of the last apply as `status` prints it.
#[derive(Serialize)]
struct Configuration<'a> {
    path: &'a Path,
    sha256: &'a str,
}

/// An entry of the receipt as `status` prints it under the key `ours`.
#[derive(Serialize)]
struct Managed<'a> {
    path: &'a Resource,
    kind: KindName,
    stage: Stage,
    reason: &'a str,
    /// How often rocworker restored it after another change.
    repairs: u32,
}

impl<'a> Managed<'a> {
    fn of(entry: &'a Entry) -> Self {
        let kind = entry.managed.kind();
        let (stage, repairs) = (entry.stage, entry.repairs.count);
        Self { path: &entry.path, kind, stage, reason: &entry.reason, repairs }
    }
}
