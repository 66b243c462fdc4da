//! /run/rocworker/exporter.json: what rocworker's daemon, as root, tells the exporter, which runs without rights.

use serde::{Deserialize, Serialize};

use crate::container::label;
use crate::daemon_file::DaemonFile;
use crate::metrics;
use crate::processes::LabelledGpu;
use crate::sample::{Labelled, Sample, count};

/// Mode 0644.
pub const PATH: &str = "/run/rocworker/exporter.json";

/// Older than this, it says nothing of now.
pub const FRESH_S: u64 = 30;

/// Of [`Published::schema_version`].
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
    /// Whether the configuration file is in force as it is now.
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
    /// Its render node, by which a lease is called: `renderD128`.
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
    /// A sentence. It quotes neither a file nor what a program said: every user reads this.
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
    /// What it did, a sentence.
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

impl DaemonFile for Published {
    const PATH: &'static str = PATH;
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}

/// Leases, drift, pending restarts, and when the daemon wrote that.
#[must_use]
pub fn samples(published: &Published, gpus: &[LabelledGpu<'_>]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for lease in published.leases.iter().flatten() {
        let is_its = |gpu: &&LabelledGpu<'_>| {
            let name = gpu.0.render.as_ref().and_then(|node| node.path.file_name());
            name.is_some_and(|name| name == lease.gpu.as_str())
        };
        if let Some((_, labels)) = gpus.iter().find(is_its) {
            let container = ("container", label(&lease.container));
            Labelled::new(labels, &mut samples).add_with(&metrics::LEASE, [container], 1.0);
        }
    }
    let mut machines_own = Labelled::new(&[], &mut samples);
    let Drift { differs, contested, blocked, failed, pending_restarts } = published.drift;
    let states = [("differs", differs), ("contested", contested), ("blocked", blocked), ("failed", failed)];
    for (state, paths) in states {
        machines_own.add_with(&metrics::DRIFT, [("state", state.to_owned())], count(paths));
    }
    machines_own.add(&metrics::PENDING_RESTARTS, count(pending_restarts));
    machines_own.add(&metrics::PUBLISHED, count(published.written_at));
    samples
}
