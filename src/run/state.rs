//! What rocworker manages on a machine, which configuration is in force there, and what is pending.

use std::path::Path;

use reconcile::{Entry, KindName, Pending, Receipt, Resource, Stage, Store};
use root::Root;
use serde::Serialize;

use super::Error;
use crate::component::Component;
use crate::memory::Memory;

/// One value, from which status, boot, the daemon, the package's scripts and the charm answer. docs/json.md has its JSON:
/// `status` prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct State {
    pub schema_version: u32,
    #[serde(skip)]
    pub phase: Phase,
    /// By which configuration the machine was set up last, and what that meant then.
    #[serde(skip)]
    pub memory: Memory,
    #[serde(rename = "ours")]
    pub managed: Vec<Held>,
    /// Restarts and the like that are due.
    pub pending: Vec<Pending>,
}

/// How far a machine is set up. Only an apply changes one that is not [`Phase::Applied`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// No apply has run here, or nothing is left of it. `cdi generate` may have written a spec.
    #[default]
    Unmanaged,
    /// An apply has run here, and no undo since.
    Applied,
    /// An undo has begun, and something is left, such as a driver that it kept.
    Undone,
}

/// Something that rocworker manages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    pub path: Resource,
    pub kind: KindName,
    pub stage: Stage,
    pub reason: String,
    /// How often rocworker restored it after another change.
    pub repairs: u32,
    /// As receipts name it.
    #[serde(skip)]
    component: String,
}

impl State {
    /// Reads the machine beneath `root`. Writes nothing.
    pub fn read(root: &Root) -> Result<Self, Error> {
        Ok(Stored::read(root)?.state(root))
    }

    /// As [`State::read`], where a memory that cannot be read is to stop nothing.
    pub fn of_receipt(root: &Root) -> Result<Self, Error> {
        Ok(Stored::read_if(root, false)?.state(root))
    }

    pub fn is_applied(&self) -> bool {
        self.phase == Phase::Applied
    }

    pub fn manages(&self, path: &Resource) -> bool {
        self.managed.iter().any(|held| held.path == *path)
    }

    pub fn manages_file(&self, path: &str) -> bool {
        self.managed.iter().any(|held| held.path == Path::new(path))
    }
}

impl Held {
    fn of(entry: &Entry) -> Self {
        Self {
            path: entry.path.clone(),
            kind: entry.managed.kind(),
            stage: entry.stage,
            reason: entry.reason.clone(),
            repairs: entry.repairs.count,
            component: entry.component.clone(),
        }
    }

    pub fn is_of(&self, component: Component) -> bool {
        self.component == component.as_ref()
    }
}

/// The two files that a run keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored {
    pub(super) receipt: Receipt,
    pub(super) memory: Memory,
}

impl Stored {
    pub(super) fn read(root: &Root) -> Result<Self, Error> {
        Self::read_if(root, true)
    }

    /// The memory may be damaged unless it is needed.
    pub(super) fn read_if(root: &Root, needs_memory: bool) -> Result<Self, Error> {
        let (receipt, memory) = (Store::new(root).receipt()?, Memory::read(root));
        Ok(Self { receipt, memory: if needs_memory { memory? } else { memory.unwrap_or_default() } })
    }

    pub(super) fn state(&self, root: &Root) -> State {
        State {
            schema_version: 1,
            phase: self.phase(),
            memory: self.memory.clone(),
            managed: self.receipt.entries.iter().map(Held::of).collect(),
            pending: self.receipt.still_pending(root).cloned().collect(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        // `cdi generate` alone leaves a spec, which belongs to no component.
        let is_set_up = || self.receipt.entries.iter().any(|entry| !entry.component.is_empty());
        match self.memory.undone {
            true => Phase::Undone,
            false if is_set_up() => Phase::Applied,
            false => Phase::Unmanaged,
        }
    }

    pub(super) fn is_applied(&self) -> bool {
        self.phase() == Phase::Applied
    }
}
