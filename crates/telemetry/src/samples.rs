//! A snapshot as samples.

use std::collections::HashSet;

use inventory::Snapshot;
use inventory::published::{Drift, Published};
use inventory::snapshot::{Card, GpuId, Owner};

use crate::card;
use crate::health;
use crate::hip_worker;
use crate::identity::{info_labels, labels};
use crate::metrics::{
    self, BUILD, CONTAINER_GPU_SECONDS, CONTAINER_VRAM_PEAK, DRIFT, GPU_INFO, GPU_SUSPENDED, LEASE, PCIE_RX,
    PCIE_TX, PENDING_RESTARTS, PROCESS_CU, PROCESS_QUEUES, PROCESS_VRAM, PROCESSES, PUBLISHED, READ_ERRORS,
    SCRAPE_DURATION, STUCK_READS, XGMI_LINKS,
};
use crate::sample::{Label, Labelled, Sample, count, truth};

/// The snapshot's samples in the order of [`metrics::ALL`], then of the GPUs.
#[must_use]
pub fn samples(snapshot: &Snapshot) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut gpus = Vec::new();
    for card in &snapshot.cards {
        of_card(snapshot, card, &mut gpus, &mut samples);
    }
    users(snapshot, &gpus, &mut samples);
    let mut machines_own = Labelled::new(&[], &mut samples);
    if let Some(published) = &snapshot.daemon {
        of_daemon(published, &mut machines_own);
    }
    if let Some(worker) = &snapshot.hip_worker {
        hip_worker::worker(worker, &mut machines_own);
    }
    for (file, times) in &snapshot.failed_reads {
        machines_own.add_with(&READ_ERRORS, [("file", file.display().to_string())], count(*times));
    }
    machines_own.add(&SCRAPE_DURATION, snapshot.read_seconds);
    machines_own
        .add(&STUCK_READS, snapshot.stuck_reads.and_then(|reads| u64::try_from(reads).ok()).map(count));
    machines_own.add_with(&BUILD, [("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    in_order(each_once(samples))
}

/// Drops numbers that are not finite, and every sample of a series but the first: Prometheus refuses the
/// whole scrape for a second one.
fn each_once(mut samples: Vec<Sample>) -> Vec<Sample> {
    let mut seen = HashSet::new();
    samples.retain(|sample| {
        sample.value.is_finite() && seen.insert((sample.metric.name, sample.labels.clone()))
    });
    samples
}

/// Sorts samples into the table's order; those of one metric keep their order.
#[must_use]
pub fn in_order(mut samples: Vec<Sample>) -> Vec<Sample> {
    let place = |sample: &Sample| metrics::ALL.iter().position(|metric| std::ptr::eq(*metric, sample.metric));
    samples.sort_by_cached_key(place);
    samples
}

/// A GPU of the snapshot and the labels of its series.
type Labels = (GpuId, Vec<Label>);

/// `gpus`: takes down what containers can get of the card.
fn of_card(snapshot: &Snapshot, card: &Card, gpus: &mut Vec<Labels>, samples: &mut Vec<Sample>) {
    let driver = snapshot.driver_version.as_ref();
    let index = card.gpus.first().and_then(|gpu| gpu.index);
    let own = labels(&card.identity, GpuId { index, pci: card.pci, partition: None });
    let mut to = Labelled::new(&own, samples);
    // An entry whose card is not known has no labels of a card.
    if card.pci.is_some() {
        let vbios = card.readings.vbios_version.as_ref();
        to.add_with_all(&GPU_INFO, info_labels(&card.identity, vbios, driver), 1.0);
    }
    to.add(&GPU_SUSPENDED, card.is_suspended().map(truth));
    if let Some(judged) = &card.health {
        health::card(judged, snapshot.quarantine_enforced, &mut to);
    }
    let is_suspended = card.readings.is_suspended();
    if !is_suspended {
        card::card(&card.readings, &mut to);
    }
    to.add(&PCIE_TX, card.traffic.map(|it| it.sent_bytes_per_second));
    to.add(&PCIE_RX, card.traffic.map(|it| it.received_bytes_per_second));
    for gpu in &card.gpus {
        let identity = gpu.part.as_ref().map_or(&card.identity, |part| &part.identity);
        let labels = labels(identity, card.id_of(gpu));
        let mut to = Labelled::new(&labels, samples);
        if let Some(part) = &gpu.part {
            to.add_with_all(&GPU_INFO, info_labels(identity, None, driver), 1.0);
            if !is_suspended {
                card::partition(part, &mut to);
            }
        }
        hip_worker::gpu(snapshot.hip_worker.as_ref(), gpu.index, &mut to);
        to.add(&XGMI_LINKS, gpu.xgmi_links.map(f64::from));
        to.add(&PROCESSES, gpu.compute_processes.map(count));
        if let Some(lease) = &gpu.lease {
            to.add_with(&LEASE, [("container", lease.clone())], 1.0);
        }
        gpus.push((card.id_of(gpu), labels));
    }
}

/// The series of processes, and of what containers, pods and units have used.
fn users(snapshot: &Snapshot, gpus: &[Labels], samples: &mut Vec<Sample>) {
    let labels_of = |id: GpuId| gpus.iter().find(|(known, _)| known.is(id)).map(|(_, labels)| labels);
    for process in &snapshot.processes {
        let Some(labels) = labels_of(process.gpu) else { continue };
        let mut own = vec![("pid", process.pid.to_string())];
        own.extend(process.name.clone().map(|name| ("name", name)));
        own.extend(of_owner(&process.owner));
        let mut to = Labelled::new(labels, samples);
        to.add_with_all(&PROCESS_VRAM, own.clone(), process.vram_bytes.map(count));
        to.add_with_all(&PROCESS_CU, own.clone(), process.compute_units.map(count));
        to.add_with_all(&PROCESS_QUEUES, own, process.queues.map(count));
    }
    for account in &snapshot.accounts {
        let Some(labels) = labels_of(account.gpu) else { continue };
        let own: Vec<Label> = of_owner(&account.owner).collect();
        let mut to = Labelled::new(labels, samples);
        to.add_with_all(&CONTAINER_GPU_SECONDS, own.clone(), account.seconds);
        to.add_with_all(&CONTAINER_VRAM_PEAK, own, account.vram_peak_bytes.map(count));
    }
}

fn of_owner(owner: &Owner) -> impl Iterator<Item = Label> + use<> {
    let Owner { container, namespace, pod, unit } = owner.clone();
    let labels = [("container", container), ("namespace", namespace), ("pod", pod), ("unit", unit)];
    labels.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Drift, pending restarts, and when the daemon wrote that.
fn of_daemon(published: &Published, to: &mut Labelled<'_>) {
    let Drift { differs, contested, blocked, failed, pending_restarts } = published.drift;
    let states = [("differs", differs), ("contested", contested), ("blocked", blocked), ("failed", failed)];
    for (state, paths) in states {
        to.add_with(&DRIFT, [("state", state.to_owned())], count(paths));
    }
    to.add(&PENDING_RESTARTS, count(pending_restarts));
    to.add(&PUBLISHED, count(published.written_at));
}
