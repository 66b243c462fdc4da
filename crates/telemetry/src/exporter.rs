//! From a machine's files to samples.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

use allocation::health::Health;
use amdgpu::readings::{CardReadings, Fault, PartitionReadings};
use amdgpu::{Gpu, Machine, Problem, Unknown, UnreadNode};
use root::Root;

use crate::card;
use crate::daemon_file::{self, DaemonFile};
use crate::gpu::Card;
use crate::health;
use crate::identity::{Identities, Identity, Place};
use crate::links::Links;
use crate::metrics::{self, BUILD, GPU_INFO, GPU_SUSPENDED, READ_ERRORS, SCRAPE_DURATION, XGMI_LINKS};
use crate::processes::{LabelledGpu, Processes};
use crate::published::{self, Published};
use crate::sample::{Label, Labelled, Sample, count, truth};

/// What a container can get, and the labels of its series.
type Labels<'m> = (&'m Gpu, Vec<Label>);

/// What is kept between two scrapes: counts of failed reads, what containers have used, the identity of GPUs that are
/// suspended now.
#[derive(Debug, Clone, Default)]
pub struct Exporter {
    identities: Identities,
    links: Links,
    /// How often each file failed: a card's while the card is there; the machine's stand at `None`.
    failed_reads: BTreeMap<Option<Place>, BTreeMap<PathBuf, u64>>,
    processes: Processes,
}

/// What one scrape has found. Its `overview` is the same for people.
#[derive(Debug, Clone, Default)]
pub struct Scraped {
    /// In the order of [`metrics::ALL`], then of the GPUs.
    pub samples: Vec<Sample>,
    /// Seconds since 1970.
    pub taken_at: f64,
    /// The files that gave no value, each with the reason.
    pub faults: Vec<Fault>,
    /// What the daemon says, where that is fresh.
    pub health: Option<Health>,
    /// Whether the wrapper keeps containers off the GPUs that it names.
    pub quarantine_enforced: Option<bool>,
    pub published: Option<Published>,
    /// Where the machine's list of GPUs has gaps, a sentence each.
    pub gaps: Vec<String>,
    /// The labels of a GPU that no container can use, and why.
    pub unusable: Vec<(Vec<Label>, Vec<String>)>,
}

impl Exporter {
    /// Reads the machine once. `now`: seconds since 1970.
    pub fn scrape(&mut self, root: &Root, now: f64) -> Scraped {
        let start = Instant::now();
        let machine = Machine::read(root);
        self.links.begin_scrape(root);
        let found = Scraped { taken_at: now, gaps: machine.problems.clone(), ..Scraped::default() };
        let mut scrape = Scrape { exporter: self, root, machine: &machine, found };
        scrape.unread();
        scrape.found.health = scrape.of_daemon();
        scrape.found.quarantine_enforced = health::is_quarantine_enforced(root);
        scrape.found.published = scrape.of_daemon();
        let mut gpus = Vec::new();
        let mut places = Vec::new();
        for card in Card::all(&machine) {
            gpus.extend(scrape.card(&card, &mut places));
        }
        scrape.users(&gpus);
        let mut found = scrape.found;
        self.identities.end_scrape();
        self.failed_reads.retain(|place, _| place.as_ref().is_none_or(|place| places.contains(place)));
        let mut machines_own = Labelled::new(&[], &mut found.samples);
        for (file, times) in self.failed_reads.values().flatten() {
            machines_own.add_with(&READ_ERRORS, [("file", file.display().to_string())], count(*times));
        }
        machines_own.add(&SCRAPE_DURATION, start.elapsed().as_secs_f64());
        machines_own.add_with(&BUILD, [("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
        found.samples = in_order(each_once(found.samples));
        found
    }
}

/// Without what depends on who looks: the exporter's sandbox has no nodes in /dev, and a container may hide GPUs from KFD's
/// list. `rocworker detect` and doctor tell that.
fn unusable(gpu: &Gpu) -> Vec<String> {
    let is_of_gpu = |it: &&Problem| !matches!(it, Problem::Node(_) | Problem::Kfd(_) | Problem::HiddenByKfd);
    gpu.problems.iter().filter(is_of_gpu).map(ToString::to_string).collect()
}

/// Whole seconds since 1970.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is no time counts as 1970")]
pub fn whole_seconds(time: f64) -> u64 {
    time as u64
}

/// Without the numbers that are none. Each series stands once: a second value of it would cost Prometheus the scrape.
fn each_once(mut samples: Vec<Sample>) -> Vec<Sample> {
    let mut seen = HashSet::new();
    samples.retain(|sample| {
        sample.value.is_finite() && seen.insert((sample.metric.name, sample.labels.clone()))
    });
    samples
}

/// In the table's order, each metric's samples as they came.
#[must_use]
pub fn in_order(mut samples: Vec<Sample>) -> Vec<Sample> {
    let place = |sample: &Sample| metrics::ALL.iter().position(|metric| std::ptr::eq(*metric, sample.metric));
    samples.sort_by_cached_key(place);
    samples
}

/// One scrape, while it lasts.
struct Scrape<'s> {
    exporter: &'s mut Exporter,
    root: &'s Root,
    machine: &'s Machine,
    found: Scraped,
}

impl Scrape<'_> {
    /// What the daemon says in a file, where that counts.
    fn of_daemon<T: DaemonFile>(&mut self) -> Option<T> {
        daemon_file::read(self.root, whole_seconds(self.found.taken_at)).unwrap_or_else(|reason| {
            let reason = Unknown::because(reason);
            self.failed(None, &[Fault { file: PathBuf::from(T::PATH), reason }]);
            None
        })
    }

    /// Counts the PCI functions and the nodes of KFD that cannot be read: they are among the machine's gaps.
    fn unread(&mut self) {
        let functions = self.machine.unread_functions.iter().cloned();
        for file in functions.chain(self.machine.kfd.unread_nodes.iter().map(UnreadNode::file)) {
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

    /// `labels`: by which the series of what a container can get name it.
    fn note_unusable(&mut self, gpu: &Gpu, labels: &[Label]) {
        let problems = unusable(gpu);
        if !problems.is_empty() {
            self.found.unusable.push((labels.to_vec(), problems));
        }
    }

    /// Who uses the GPUs, and what rocworker's daemon publishes.
    fn users(&mut self, gpus: &[Labels<'_>]) {
        let gpus: Vec<LabelledGpu<'_>> = gpus.iter().map(|(gpu, labels)| (*gpu, &labels[..])).collect();
        let Scraped { samples, published, taken_at, .. } = &mut self.found;
        let processes = &mut self.exporter.processes;
        samples.extend(processes.samples(self.root, *taken_at, &gpus, published.as_ref()));
        samples.extend(published.iter().flat_map(|published| published::samples(published, &gpus)));
        let faults = std::mem::take(&mut processes.faults);
        self.failed(None, &faults);
    }

    /// Samples of a card and of its partitions. Returns which of them are awake. `places`: takes down which GPUs were
    /// there.
    fn card<'m>(&mut self, card: &Card<'m>, places: &mut Vec<Place>) -> Vec<Labels<'m>> {
        let Some(first) = card.entries.first() else { return Vec::new() };
        let is_partitioned = card.is_partitioned();
        let readings = match first.pci {
            Some(address) if first.driver.as_deref() == Some("amdgpu") => {
                CardReadings::read(self.root, address)
            }
            _ => CardReadings::default(),
        };
        let is_suspended = readings.is_suspended();
        let place = Place::of(first, None);
        let seen = Identity {
            vbios: readings.vbios_version.clone(),
            is_apu: readings.is_apu,
            ..Identity::of(first, false)
        };
        let identity = self.exporter.identities.complete(place.clone(), seen);
        let labels = identity.labels(first, None);
        let info = identity.info_labels(self.driver_version());
        let mut to = Labelled::new(&labels, &mut self.found.samples);
        // Of an entry whose card is not known, nothing can be said of a card.
        if first.pci.is_some() {
            to.add_with_all(&GPU_INFO, info, 1.0);
        }
        to.add(&GPU_SUSPENDED, readings.power_state.as_ref().map(|_| truth(is_suspended)));
        if let Some((health, pci)) = self.found.health.as_ref().zip(first.pci) {
            health::card(health, pci, self.found.quarantine_enforced, &mut to);
        }
        if !is_suspended {
            card::card(&readings, identity.is_apu, &mut to);
        }
        self.failed(Some(&place), &readings.faults);
        places.push(place);
        if !is_partitioned && first.pci.is_some() {
            self.note_unusable(first, &labels);
            self.links(first.kfd_node, is_suspended, &labels);
            return if is_suspended { Vec::new() } else { vec![(first, labels)] };
        }
        card.entries.iter().filter_map(|gpu| self.partition(gpu, &readings, places)).collect()
    }

    fn partition<'m>(
        &mut self,
        gpu: &'m Gpu,
        of_card: &CardReadings,
        places: &mut Vec<Place>,
    ) -> Option<Labels<'m>> {
        let id = gpu.partition.as_ref().map(|partition| partition.id);
        let place = Place::of(gpu, id);
        let identity = self.exporter.identities.complete(place.clone(), Identity::of(gpu, true));
        let labels = identity.labels(gpu, id);
        let info = identity.info_labels(self.driver_version());
        Labelled::new(&labels, &mut self.found.samples).add_with_all(&GPU_INFO, info, 1.0);
        self.note_unusable(gpu, &labels);
        let is_suspended = of_card.is_suspended();
        if !is_suspended {
            let render = gpu.render.as_ref().and_then(|node| node.path.file_name()?.to_str());
            // Of a card that sysfs does not tell, nothing says that it is awake.
            let readings = match (gpu.pci, id, render) {
                (Some(_), Some(id), Some(render)) => of_card.partition(self.root, id, render),
                _ => PartitionReadings::default(),
            };
            let vram_bytes = gpu.vram_bytes.as_ref().ok().copied();
            card::partition(&readings, vram_bytes, &mut Labelled::new(&labels, &mut self.found.samples));
            self.failed(Some(&place), &readings.faults);
        }
        self.links(gpu.kfd_node, is_suspended, &labels);
        places.push(place);
        (!is_suspended).then_some((gpu, labels))
    }

    fn driver_version(&self) -> Option<String> {
        self.machine.amdgpu.version.clone().ok()
    }

    fn links(&mut self, kfd_node: Option<u32>, is_suspended: bool, labels: &[Label]) {
        if let Some(node) = kfd_node.filter(|_| !is_suspended) {
            match self.exporter.links.of(self.root, node) {
                Ok(links) => {
                    Labelled::new(labels, &mut self.found.samples).add(&XGMI_LINKS, f64::from(links))
                }
                Err(reason) if reason.is_absent() => {}
                Err(reason) => {
                    let file = PathBuf::from(format!("/sys/class/kfd/kfd/topology/nodes/{node}/io_links"));
                    self.failed(None, &[Fault { file, reason }]);
                }
            }
        }
    }
}
