//! What rocworker manages on a machine, which configuration is in force there, and what is pending.

use reconcile::{Entry, KindName, Pending, Receipt, Resource, Stage, Store};
use root::Root;
use serde::{Serialize, Serializer};

use super::Error;
use crate::memory::Memory;

/// What rocworker manages and what is pending: the value from which status, boot, the daemon, the package's scripts and
/// the charm answer. `status` prints it as JSON (docs/json.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct State {
    pub schema_version: u32,
    /// What is managed.
    #[serde(rename = "ours", serialize_with = "managed")]
    pub receipt: Receipt,
    /// The configuration of the last apply, and what its words meant then.
    #[serde(skip)]
    pub memory: Memory,
    /// Restarts and the like that are due.
    pub pending: Vec<Pending>,
}

/// How far a machine is set up. Only an apply changes one that is not [`Phase::Applied`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        Self { schema_version: 1, receipt, memory, pending }
    }

    pub fn phase(&self) -> Phase {
        // `cdi generate` alone leaves a spec, which belongs to no component.
        let is_set_up = || self.receipt.entries.iter().any(|entry| !entry.component.is_empty());
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

fn managed<S: Serializer>(receipt: &Receipt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(receipt.entries.iter().map(|entry: &Entry| Managed {
        path: &entry.path,
        kind: entry.managed.kind(),
        stage: entry.stage,
        reason: &entry.reason,
        repairs: entry.repairs.count,
    }))
}
