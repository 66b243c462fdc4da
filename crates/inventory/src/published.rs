//! /run/rocworker/exporter.json: what rocworker's daemon, as root, tells the exporter, which runs without rights.

use serde::{Deserialize, Serialize};

/// The daemon writes the file with mode 0644.
pub const PATH: &str = "/run/rocworker/exporter.json";

/// Seconds after the write during which the file counts.
pub const FRESH_S: u64 = 30;

/// The value of [`Published::schema_version`] that this version writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A field that an older daemon does not write is unknown, or an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    pub schema_version: u32,
    /// Seconds since 1970.
    pub written_at: u64,
    /// `None` where they cannot be read.
    pub leases: Option<Vec<Lease>>,
    pub drift: Drift,
    /// The first of the paths that [`Published::drift`] counts.
    #[serde(default)]
    pub drifting: Vec<DriftingPath>,
    /// Whether the configuration file's present content is in force.
    pub config_in_force: Option<bool>,
    /// How many configured parts are not applied.
    pub problems: Option<u64>,
    /// The last runs of rocworker that changed something, the newest first; `None` where the history cannot be read.
    pub changes: Option<Vec<Change>>,
    pub pods: Vec<Pod>,
    pub clients: Vec<Client>,
}

/// A container's exclusive hold of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The leased GPU by its render node: `renderD128`.
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

/// A managed path that differs from what rocworker applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftingPath {
    pub path: String,
    pub state: DriftState,
    /// A sentence that quotes neither a file nor a program's output: every user can read it.
    pub reason: String,
}

/// Which count of [`Drift`] a path is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftState {
    Differs,
    Contested,
    Blocked,
    Failed,
}

/// A run of rocworker that changed something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Seconds since 1970.
    pub at: u64,
    /// The command that made it, as `apply` or `serve`.
    pub command: String,
    /// A sentence on what the run did.
    pub text: String,
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
