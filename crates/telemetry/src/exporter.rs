//! Makes snapshots of a machine's files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use inventory::health::Health;
use inventory::published::Published;
use inventory::readings::{CardReadings, Fault};
use inventory::snapshot::{Card, GpuId, Part, Snapshot};
use inventory::{Gpu, Identity, Inventory, Unknown, Unread};
use root::Root;

use crate::container::label;
use crate::daemon_file::{self, DaemonFile};
use crate::health;
use crate::identity::{Identities, Place};
use crate::links::Links;
use crate::processes::{Found, Processes};

/// The state between two scrapes: counts of failed reads, what containers have used, the identity of GPUs
/// that are suspended now.
#[derive(Debug, Clone, Default)]
pub struct Exporter {
    identities: Identities,
    links: Links,
    /// How often each file failed, by card. A card's counts go with the card; files of the machine are under
    /// `None`.
    failed_reads: BTreeMap<Option<Place>, BTreeMap<PathBuf, u64>>,
    processes: Processes,
}

impl Exporter {
    /// Reads the machine once. `now`: seconds since 1970.
    pub fn scrape(&mut self, root: &Root, now: f64) -> Snapshot {
        let start = Instant::now();
        let inventory = amdgpu::read(root);
        self.links.begin_scrape(root);
        let found = Snapshot {
            taken_at: now,
            driver_version: inventory.amdgpu.version.clone().ok(),
            gaps: inventory.problems(),
            quarantine_enforced: health::is_quarantine_enforced(root),
            ..Snapshot::default()
        };
        let mut scrape = Scrape { exporter: self, root, found, places: Vec::new() };
        scrape.unread(&inventory);
        let health = scrape.of_daemon::<Health>();
        scrape.found.daemon = scrape.of_daemon();
        scrape.found.hip_worker = scrape.of_daemon();
        let cards = inventory.cards();
        let cards = cards.into_iter().map(|card| (scrape.card(&card, health.as_ref()), card)).collect();
        scrape.users(cards);
        let Scrape { mut found, places, .. } = scrape;
        found.unjudged = health.map(|health| health.unknown).unwrap_or_default();
        self.identities.end_scrape();
        self.failed_reads.retain(|place, _| place.as_ref().is_none_or(|place| places.contains(place)));
        let failed = self.failed_reads.values().flatten();
        found.failed_reads = failed.map(|(file, times)| (file.clone(), *times)).collect();
        found.read_seconds = start.elapsed().as_secs_f64();
        found
    }
}

/// A scrape in progress.
struct Scrape<'s> {
    exporter: &'s mut Exporter,
    root: &'s Root,
    found: Snapshot,
    /// The places of the GPUs that this scrape has found.
    places: Vec<Place>,
}

impl Scrape<'_> {
    /// The content of a daemon's file, where that counts.
    fn of_daemon<T: DaemonFile>(&mut self) -> Option<T> {
        daemon_file::read(self.root, self.found.taken_at_seconds()).unwrap_or_else(|reason| {
            let reason = Unknown::because(reason);
            self.failed(None, &[Fault { file: PathBuf::from(T::PATH), reason }]);
            None
        })
    }

    /// Counts the PCI functions and the nodes of KFD that cannot be read: they are among the machine's gaps.
    fn unread(&mut self, inventory: &Inventory) {
        for file in inventory.unread.iter().filter_map(Unread::file) {
            self.count(None, file);
        }
    }

    /// `place`: whose files they are; `None`: the machine's.
    fn failed(&mut self, place: Option<&Place>, faults: &[Fault]) {
        for fault in faults {
            self.count(place, fault.file.clone());
        }
        self.found.faults.extend_from_slice(faults);
    }

    fn count(&mut self, place: Option<&Place>, file: PathBuf) {
        *self.exporter.failed_reads.entry(place.cloned()).or_default().entry(file).or_default() += 1;
    }

    /// Adds the processes on the GPUs that are awake.
    fn users(&mut self, cards: Vec<(Card, inventory::Card<'_>)>) {
        let awake = cards.iter().filter(|(card, _)| !card.readings.is_suspended());
        let gpus: Vec<(GpuId, &Gpu)> = awake
            .flat_map(|(card, read)| {
                card.gpus.iter().map(|gpu| card.id_of(gpu)).zip(read.gpus.iter().copied())
            })
            .collect();
        let daemon = self.found.daemon.as_ref();
        let Found { mut counts, processes, accounts } =
            self.exporter.processes.read(self.root, self.found.taken_at, &gpus, daemon);
        let lease_of = |gpu: &Gpu| lease_of(daemon, gpu);
        let mut leases: BTreeMap<GpuId, String> =
            gpus.iter().filter_map(|(id, gpu)| Some((*id, lease_of(gpu)?))).collect();
        self.found.cards = cards.into_iter().map(|(card, _)| card).collect();
        for card in &mut self.found.cards {
            let pci = card.pci;
            for gpu in &mut card.gpus {
                let id = GpuId { index: gpu.index, pci, partition: gpu.partition() };
                gpu.compute_processes = counts.remove(&id);
                gpu.lease = leases.remove(&id);
            }
        }
        (self.found.processes, self.found.accounts) = (processes, accounts);
        let faults = std::mem::take(&mut self.exporter.processes.faults);
        self.failed(None, &faults);
    }

    /// A card with its partitions.
    fn card(&mut self, card: &inventory::Card<'_>, health: Option<&Health>) -> Card {
        let first = card.first;
        let mut read = amdgpu::snapshot::card(self.root, card);
        let place = Place::of(first, None);
        let seen = (Identity::of(first, false), read.readings.vbios_version.take());
        (read.identity, read.readings.vbios_version) = self.exporter.identities.complete(place.clone(), seen);
        self.failed(Some(&place), &read.readings.faults);
        self.places.push(place);
        let judged = health.and_then(|health| health.gpus.iter().find(|gpu| Some(gpu.pci) == first.pci));
        read.health = judged.cloned();
        let has_parts = card.is_partitioned() || first.pci.is_none();
        for (to, gpu) in read.gpus.iter_mut().zip(&card.gpus) {
            to.part = has_parts.then(|| self.part(gpu, &read.readings));
            to.xgmi_links = self.links(gpu, read.readings.is_suspended());
            // `rocworker detect` and doctor report the problems of a reader without the nodes in /dev.
            to.problems = gpu.own_problems().map(ToString::to_string).collect();
        }
        read
    }

    fn part(&mut self, gpu: &Gpu, of_card: &CardReadings) -> Part {
        let id = gpu.partition.as_ref().map(|partition| partition.id);
        let place = Place::of(gpu, id);
        let seen = (Identity::of(gpu, true), None);
        let (identity, _) = self.exporter.identities.complete(place.clone(), seen);
        let readings = amdgpu::snapshot::partition(self.root, of_card, gpu);
        self.failed(Some(&place), &readings.faults);
        self.places.push(place);
        let vram = gpu.vram_bytes.as_ref().ok().copied();
        let memory_total_bytes = vram.filter(|_| !of_card.is_suspended());
        Part { number: id, identity, readings, memory_total_bytes }
    }

    fn links(&mut self, gpu: &Gpu, is_suspended: bool) -> Option<u32> {
        let node = gpu.kfd_node.filter(|_| !is_suspended)?;
        match self.exporter.links.of(self.root, node) {
            Ok(links) => Some(links),
            Err(reason) => {
                if !reason.is_absent() {
                    let file = PathBuf::from(format!("/sys/class/kfd/kfd/topology/nodes/{node}/io_links"));
                    self.failed(None, &[Fault { file, reason }]);
                }
                None
            }
        }
    }
}

/// The container that holds the GPU exclusively.
fn lease_of(daemon: Option<&Published>, gpu: &Gpu) -> Option<String> {
    let name = gpu.render.as_ref()?.path.file_name()?;
    let mut leases = daemon?.leases.iter().flatten();
    leases.find(|lease| name == lease.gpu.as_str()).map(|lease| label(&lease.container))
}
