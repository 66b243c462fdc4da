//! Records what a container was given, for `exec --process` and for later decisions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bundle::ProcessEdits;
use crate::document::Document;
use inventory::PciAddress;

use crate::{Render, gpu::Gpu};

/// The record of one container's grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// See [`version_of`].
    pub schema_version: u32,
    /// The container's id, as runc got it.
    pub id: String,
    /// runc's root folder (`--root`), absolute: ids are unique only beneath one.
    pub root: String,
    pub gpus: Vec<RecordedGpu>,
    /// Additional gids, in the container's numbering.
    pub gids: Vec<u32>,
    /// `KEY=VALUE`, each for a process that does not set the variable itself.
    pub env: Vec<String>,
    /// One more entry for `env`, which earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_unless_set: Option<String>,
    /// The least that a process may lock in memory, in bytes. From version 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memlock_bytes: Option<u64>,
    pub creator: Creator,
}

/// The schema version of a record with these edits of processes: the oldest that can hold them, so that an older
/// wrapper can read what it can act on.
#[must_use]
pub fn version_of(edits: &ProcessEdits<'_>) -> u32 {
    if edits.memlock_bytes.is_none() { 1 } else { Record::SCHEMA_VERSION }
}

/// A GPU in a record, named by what stays when indexes are given anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedGpu {
    /// The index at the time of the grant, for people.
    pub index: u32,
    pub pci: Option<PciAddress>,
    pub render: Render,
}

impl RecordedGpu {
    /// Whether `gpu` is the recorded one. The index does not count.
    #[must_use]
    pub fn is(&self, gpu: &Gpu) -> bool {
        self.render == gpu.render && (self.pci.is_none() || gpu.card.is_none() || self.pci == gpu.card)
    }
}

impl fmt::Display for RecordedGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pci {
            Some(pci) => write!(f, "{} ({pci}, {})", self.index, self.render),
            None => write!(f, "{} ({})", self.index, self.render),
        }
    }
}

impl From<&Gpu> for RecordedGpu {
    fn from(gpu: &Gpu) -> Self {
        Self { index: gpu.index, pci: gpu.card, render: gpu.render }
    }
}

/// The process that made the container. The wrapper executes runc in its own place, so this is runc's create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Creator {
    pub pid: u32,
    /// The process's start in clock ticks after boot: field 22 of `/proc/PID/stat`. With the pid it names one
    /// process of this boot, since a later process with that pid has a later start.
    pub start_time: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

impl Document for Record {
    const SCHEMA_VERSION: u32 = 2;
    const NAME: &'static str = "record of what a container was given";
}

impl Record {
    /// The edits of a process that `exec` starts in the container.
    #[must_use]
    pub fn process_edits(&self) -> ProcessEdits<'_> {
        ProcessEdits {
            gids: self.gids.clone(),
            env: self.env.iter().chain(&self.env_unless_set).map(String::as_str).collect(),
            memlock_bytes: self.memlock_bytes,
        }
    }
}

#[cfg(test)]
mod tests;
