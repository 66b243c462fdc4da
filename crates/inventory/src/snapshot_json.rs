//! The JSON of a snapshot, as docs/json.md documents it for `top --once`: absent is null, never 0.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::published::Published;
use crate::series::count;
use crate::snapshot::{Card, Gpu, Process, Snapshot};

/// A snapshot as `top --once --output json` prints it. Between two rocworkers of one version it passes as it is.
#[derive(Debug)]
pub struct Shown<'s>(pub &'s Snapshot);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let snapshot = self.0;
        let cards: Vec<OfSnapshot<'_, &Card>> =
            snapshot.cards.iter().map(|card| OfSnapshot { snapshot, part: card }).collect();
        let processes: Vec<OfSnapshot<'_, &Process>> =
            snapshot.processes.iter().map(|process| OfSnapshot { snapshot, part: process }).collect();
        let mut object = serializer.serialize_struct("Snapshot", 8)?;
        object.serialize_field("taken_at", &snapshot.taken_at)?;
        object.serialize_field("cards", &cards)?;
        object.serialize_field("may_lack_cards", &snapshot.may_lack_cards())?;
        object.serialize_field("driver_version", &snapshot.driver_version)?;
        object.serialize_field("processes", &processes)?;
        object.serialize_field("quarantine_enforced", &snapshot.quarantine_enforced)?;
        object.serialize_field("daemon", &snapshot.daemon.as_ref().map(Daemon))?;
        object.serialize_field("unknown", &snapshot.unknown())?;
        object.end()
    }
}

/// A part whose JSON takes something from its snapshot.
struct OfSnapshot<'s, T> {
    snapshot: &'s Snapshot,
    part: T,
}

impl Serialize for OfSnapshot<'_, &Card> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { snapshot, part: card } = self;
        let gpu = |gpu| OfSnapshot { snapshot, part: (*card, gpu) };
        let gpus: Vec<OfSnapshot<'_, (&Card, &Gpu)>> = card.gpus.iter().map(gpu).collect();
        let memory = card.readings.own_memory();
        let mut object = serializer.serialize_struct("Card", 14)?;
        object.serialize_field("pci", &card.pci)?;
        object.serialize_field("model", &card.identity.model())?;
        object.serialize_field("gfx", &card.identity.gfx)?;
        object.serialize_field("compute_partition", &card.identity.compute_partition)?;
        object.serialize_field("memory_partition", &card.identity.memory_partition)?;
        object.serialize_field("is_suspended", &card.is_suspended())?;
        object.serialize_field("temperatures", &card.temperatures().collect::<BTreeMap<_, _>>())?;
        object.serialize_field("power_watts", &card.watts())?;
        object.serialize_field("power_limit_watts", &card.watts_limit())?;
        object.serialize_field("memory_used_bytes", &memory.and_then(|it| it.used_bytes).map(count))?;
        object.serialize_field("memory_total_bytes", &memory.and_then(|it| it.total_bytes).map(count))?;
        object.serialize_field("busy_percent", &card.readings.busy_percent)?;
        object.serialize_field("gpus", &gpus)?;
        object.serialize_field("health", &card.health)?;
        object.end()
    }
}

impl Serialize for OfSnapshot<'_, (&Card, &Gpu)> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { snapshot, part: (card, gpu) } = self;
        let mut object = serializer.serialize_struct("Gpu", 8)?;
        object.serialize_field("index", &gpu.index)?;
        object.serialize_field("partition", &gpu.partition())?;
        object.serialize_field("busy_percent", &card.busy_percent_of(gpu))?;
        object.serialize_field("memory_total_bytes", &card.memory_total_bytes_of(gpu).map(count))?;
        object.serialize_field("processes", &snapshot.process_count(card, gpu))?;
        object.serialize_field("only_compute", &snapshot.counts_only_compute(card, gpu))?;
        object.serialize_field("lease", &gpu.lease)?;
        object.serialize_field("problems", &gpu.problems)?;
        object.end()
    }
}

impl Serialize for OfSnapshot<'_, &Process> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let process = self.part;
        let mut object = serializer.serialize_struct("Process", 10)?;
        object.serialize_field("pid", &process.pid)?;
        object.serialize_field("name", &process.name)?;
        object.serialize_field("gpu", &process.gpu.index)?;
        object.serialize_field("pci", &process.gpu.pci)?;
        object.serialize_field("partition", &process.gpu.partition)?;
        object.serialize_field("container", &process.owner.container)?;
        object.serialize_field("pod", &process.owner.pod_path())?;
        object.serialize_field("unit", &process.owner.unit)?;
        object.serialize_field("vram_bytes", &process.vram_bytes.map(count))?;
        object.serialize_field("compute_units", &process.compute_units.map(count))?;
        object.end()
    }
}

/// What the daemon publishes, without the parts that the snapshot shows elsewhere.
struct Daemon<'s>(&'s Published);

impl Serialize for Daemon<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Published { written_at, leases, drift, drifting, config_in_force, problems, changes, .. } =
            self.0;
        let mut object = serializer.serialize_struct("Daemon", 7)?;
        object.serialize_field("written_at", written_at)?;
        object.serialize_field("leases", leases)?;
        object.serialize_field("drift", drift)?;
        object.serialize_field("drifting", drifting)?;
        object.serialize_field("config_in_force", config_in_force)?;
        object.serialize_field("problems", problems)?;
        object.serialize_field("changes", changes)?;
        object.end()
    }
}
