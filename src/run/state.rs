//! What rocworker keeps on a machine from one run to the next.

use reconcile::{Receipt, Store};
use root::Root;

use super::Error;
use crate::memory::Memory;

/// What rocworker manages here, and what the last apply went by.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub receipt: Receipt,
    pub memory: Memory,
}

impl State {
    pub fn read(root: &Root) -> Result<Self, Error> {
        Self::read_if(root, true)
    }

    /// The same where the memory may be damaged, unless it is needed.
    pub(super) fn read_if(root: &Root, needs_memory: bool) -> Result<Self, Error> {
        let (receipt, memory) = (Store::new(root).receipt()?, Memory::read(root));
        Ok(Self { receipt, memory: if needs_memory { memory? } else { memory.unwrap_or_default() } })
    }

    /// Whether this machine is set up: an apply has run here, and no undo since. Every command, hook and the daemon ask
    /// this; only an apply changes a machine that is not set up. A driver that an undo kept does not count.
    pub fn is_set_up(&self) -> bool {
        // `cdi generate` alone leaves a spec, which belongs to no component.
        self.receipt.entries.iter().any(|entry| !entry.component.is_empty()) && !self.memory.undone
    }
}
