//! /run/rocworker/exporter.json: what rocworker's daemon, as root, tells the exporter, which runs without rights.

use std::path::Path;

use root::{Kind, Root};
use serde::{Deserialize, Serialize};

use crate::container::label;
use crate::metrics;
use crate::processes::{LabelledGpu, sample};
use crate::sample::{Label, Sample, count};

/// Mode 0644.
pub const PATH: &str = "/run/rocworker/exporter.json";

/// Older than this, it says nothing of now.
pub const FRESH_S: u64 = 30;

/// Of [`Published::schema_version`].
pub const SCHEMA_VERSION: u32 = 1;

/// How far it may be from the future: the clock may be set between a write and a read.
const AHEAD_S: u64 = 5;

/// More than the daemon writes.
const LIMIT: usize = 1 << 20;

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

/// What the daemon publishes; `None` where it publishes nothing, or does no more: the file is old. `now`: seconds since
/// 1970.
///
/// # Errors
/// Says in a sentence why nothing of the file counts: it is from the future, another version's, damaged, or another user
/// could have written it.
pub fn read(root: &Root, now: f64) -> Result<Option<Published>, String> {
    let folder = Path::new(PATH).parent().unwrap_or(Path::new("/"));
    match root.lstat(folder) {
        Err(error) if error.is_not_found() => return Ok(None),
        Ok(meta) if meta.kind != Kind::Directory => {
            return Err(format!("{} is no folder", root.shown(folder).display()));
        }
        _ => {}
    }
    root.believe_folder(folder).map_err(|error| error.to_string())?;
    let bytes = match root.read_trusted(PATH, LIMIT) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other.map_err(|error| error.to_string())?,
    };
    parse(&bytes, now).map_err(|why| format!("{} {why}", root.shown(PATH).display()))
}

fn parse(bytes: &[u8], now: f64) -> Result<Option<Published>, String> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let damaged = |error: serde_json::Error| format!("is damaged: {error}");
    let Version { schema_version } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema_version != SCHEMA_VERSION {
        return Err(format!(
            "has schema_version {schema_version}, not {SCHEMA_VERSION}: use one version of rocworker"
        ));
    }
    let published: Published = serde_json::from_slice(bytes).map_err(damaged)?;
    let age = now - count(published.written_at);
    if age > count(FRESH_S) {
        return Ok(None);
    }
    // Not a number is neither old nor new.
    if age >= -count(AHEAD_S) {
        Ok(Some(published))
    } else {
        Err(format!("is {:.0} s from the future: see whether the clock is right", -age))
    }
}

/// Leases, drift, pending restarts, and when the daemon wrote that.
#[must_use]
pub fn samples(published: &Published, gpus: &[LabelledGpu<'_>]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for lease in &published.leases {
        let is_its = |gpu: &&LabelledGpu<'_>| {
            let name = gpu.0.render.as_ref().and_then(|node| node.path.file_name());
            name.is_some_and(|name| name == lease.gpu.as_str())
        };
        if let Some((_, labels)) = gpus.iter().find(is_its) {
            samples.push(sample(&metrics::LEASE, labels, vec![("container", label(&lease.container))], 1.0));
        }
    }
    let Drift { differs, contested, blocked, failed, pending_restarts } = published.drift;
    let states = [("differs", differs), ("contested", contested), ("blocked", blocked), ("failed", failed)];
    samples.extend(states.map(|(state, paths)| {
        let own: Vec<Label> = vec![("state", state.to_owned())];
        sample(&metrics::DRIFT, &[], own, count(paths))
    }));
    samples.push(sample(&metrics::PENDING_RESTARTS, &[], Vec::new(), count(pending_restarts)));
    samples.push(sample(&metrics::PUBLISHED, &[], Vec::new(), count(published.written_at)));
    samples
}
