//! /run/rocworker/exporter.json: what rocworker's daemon, as root, tells the exporter, which runs as nobody.

use serde::{Deserialize, Serialize};

/// Mode 0644.
pub const PATH: &str = "/run/rocworker/exporter.json";

/// Older than this, it says nothing of now.
pub const FRESH_S: u64 = 30;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    pub schema_version: u32,
    /// Seconds since 1970.
    pub written_at: u64,
    pub leases: Vec<Lease>,
    pub drift: Drift,
    pub pods: Vec<Pod>,
    pub clients: Vec<Client>,
}

/// A container's exclusive hold of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// As the lease names it: a uuid, a PCI address, a render node.
    pub gpu: String,
    pub container: String,
}

/// Counts of paths, and of effects that are pending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub differs: u64,
    pub contested: u64,
    pub blocked: u64,
    pub failed: u64,
    pub pending_restarts: u64,
}

/// A pod of this node, whose uid a cgroup's path names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    pub uid: String,
    pub namespace: String,
    pub name: String,
}

/// A process that has a render or card node open, by its fdinfo (Documentation/gpu/drm-usage-stats.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub pid: u32,
    /// `drm-pdev`.
    pub pci: String,
    pub vram_bytes: Option<u64>,
}
