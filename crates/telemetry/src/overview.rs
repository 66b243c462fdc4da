//! What the GPUs of a machine do at one moment, for people: `rocworker top` and the exporter's page print it.
//!
//! It is made of the same samples that Prometheus gets. What is unknown is `None`, never 0.

use std::collections::BTreeMap;

use allocation::health::GpuHealth;
use serde::{Serialize, Serializer};

use crate::exporter::{Scraped, whole_seconds};
use crate::metric::Metric;
use crate::metrics::{
    GPU_INFO, GPU_SUSPENDED, GPU_TEMPERATURE, GPU_UTILIZATION, LEASE, MEMORY_TOTAL, MEMORY_USED, POWER_LIMIT,
    POWER_USAGE, PROCESS_CU, PROCESS_QUEUES, PROCESS_VRAM, PROCESSES,
};
pub use crate::published::Change;
use crate::published::{Client, Drift, DriftingPath, Lease, Published};
use crate::sample::{Label, Sample};

#[derive(Debug, Clone, Default, Serialize)]
pub struct Overview {
    /// Seconds since 1970.
    pub taken_at: f64,
    /// In the order of their indexes.
    pub cards: Vec<Card>,
    /// Whether cards may be missing there: the machine's devices could not all be read.
    pub may_lack_cards: bool,
    /// The version of the kernel module amdgpu, where it says one: mainline's does not.
    pub driver_version: Option<String>,
    /// In the order of their numbers, a process on several GPUs once for each.
    pub processes: Vec<Process>,
    /// Whether the wrapper keeps containers off quarantined GPUs; `None` where that is not known.
    pub quarantine_enforced: Option<bool>,
    /// What rocworker's daemon publishes; `None` where it publishes nothing, or what it wrote is old.
    pub daemon: Option<Daemon>,
    /// What could not be read, a sentence each.
    pub unknown: Vec<String>,
}

/// A card, and what containers can get of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Card {
    pub pci: Option<String>,
    pub model: Option<String>,
    pub gfx: Option<String>,
    /// As amdgpu names the modes: SPX, NPS1.
    pub compute_partition: Option<String>,
    pub memory_partition: Option<String>,
    /// `None` where the kernel does not say. Of a suspended card nothing below is known.
    pub is_suspended: Option<bool>,
    /// By sensor, in °C.
    #[serde(serialize_with = "by_name")]
    pub temperatures: Vec<(String, f64)>,
    pub power_watts: Option<f64>,
    pub power_limit_watts: Option<f64>,
    /// Of the memory that the card works in: VRAM, on an APU GTT.
    pub memory_used_bytes: Option<f64>,
    pub memory_total_bytes: Option<f64>,
    pub busy_percent: Option<f64>,
    /// At least one: a whole card is its own only entry.
    pub gpus: Vec<Gpu>,
    /// The daemon's judgement, while it is fresh.
    pub health: Option<GpuHealth>,
}

/// What a container can get: a card, or a partition of one.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Gpu {
    /// As `rocworker detect` numbers them; `None` where a node of KFD that cannot be read may come before it.
    pub index: Option<u32>,
    /// Its number on its card; `None` for a whole card.
    pub partition: Option<u32>,
    pub busy_percent: Option<f64>,
    pub memory_total_bytes: Option<f64>,
    /// As KFD counts them, and at least as many as are listed.
    pub processes: Option<u32>,
    /// Whether that counts compute processes alone: who draws or decodes is not known.
    pub only_compute: bool,
    /// The container that holds it exclusively.
    pub lease: Option<String>,
    /// Why no container can use it, a sentence each.
    pub problems: Vec<String>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Process {
    pub pid: u32,
    pub name: Option<String>,
    /// The index of its GPU.
    pub gpu: Option<u32>,
    /// The address of its GPU's card.
    pub pci: Option<String>,
    pub partition: Option<u32>,
    pub container: Option<String>,
    /// `namespace/name` of a Kubernetes pod; its uid where they are not known.
    pub pod: Option<String>,
    /// Of systemd, where no container holds it.
    pub unit: Option<String>,
    pub vram_bytes: Option<f64>,
    pub compute_units: Option<f64>,
}

/// What the daemon says of the machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Daemon {
    /// Seconds since 1970.
    pub written_at: u64,
    pub leases: Option<Vec<Lease>>,
    pub drift: Drift,
    /// The first of the paths that `drift` counts.
    pub drifting: Vec<DriftingPath>,
    pub config_in_force: Option<bool>,
    pub problems: Option<u64>,
    /// The last changes that rocworker made here, the newest first.
    pub changes: Option<Vec<Change>>,
}

/// Names and values as one object.
fn by_name<S: Serializer>(values: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

impl Scraped {
    /// This scrape for people.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let Self { samples, taken_at, faults, health, quarantine_enforced, published, gaps, unusable } = self;
        let of_daemon = health.iter().flat_map(|health| health.unknown.iter().cloned());
        let unread = faults.iter().map(|fault| fault.reason.to_string());
        let processes = processes(samples);
        let mut cards = cards(samples);
        for card in &mut cards {
            // Of a partitioned card, a client names no partition.
            let clients = published.as_ref().filter(|_| !card.is_partitioned()).map(|it| &it.clients);
            let is_its = |gpu: &&GpuHealth| card.pci.as_deref() == Some(gpu.pci.to_string().as_str());
            card.health = health.as_ref().and_then(|health| health.gpus.iter().find(is_its)).cloned();
            for gpu in &mut card.gpus {
                let its = processes.iter().filter(|it| it.is_on(card.pci.as_deref(), gpu));
                let listed: Vec<u32> = its.map(|it| it.pid).collect();
                let at_least = u32::try_from(listed.len()).unwrap_or(u32::MAX);
                gpu.processes = gpu.processes.map(|count| count.max(at_least));
                let is_listed = |it: &Client| it.vram_bytes == Some(0) || listed.contains(&it.pid);
                gpu.only_compute = !clients.is_some_and(|all| {
                    all.iter().filter(|it| card.pci.as_ref() == Some(&it.pci)).all(is_listed)
                });
                let is_its = |labels: &[Label]| {
                    let (index, partition) = (number(labels, "gpu"), number(labels, "partition"));
                    text(labels, "pci") == card.pci && (index, partition) == (gpu.index, gpu.partition)
                };
                let problems = unusable.iter().find(|(labels, _)| is_its(labels));
                gpu.problems = problems.map(|(_, problems)| problems.clone()).unwrap_or_default();
            }
        }
        Overview {
            taken_at: *taken_at,
            cards,
            may_lack_cards: !gaps.is_empty(),
            driver_version: samples.iter().find_map(|sample| text(&sample.labels, "driver_version")),
            processes,
            quarantine_enforced: *quarantine_enforced,
            daemon: published.as_ref().map(daemon),
            unknown: gaps.iter().cloned().chain(unread).chain(of_daemon).collect(),
        }
    }
}

impl Overview {
    /// [`Self::taken_at`] in whole seconds.
    #[must_use]
    pub fn taken_at_seconds(&self) -> u64 {
        whole_seconds(self.taken_at)
    }

    /// What is known where no card is listed.
    #[must_use]
    pub fn no_card(&self) -> &'static str {
        match self.may_lack_cards {
            true => "Which GPUs this machine has is not known.",
            false => "No AMD GPU was found.",
        }
    }

    /// What is known where no process is listed.
    #[must_use]
    pub fn no_process(&self) -> &'static str {
        let gpus = || self.cards.iter().flat_map(|card| &card.gpus);
        if self.may_lack_cards || gpus().any(|gpu| gpu.processes.is_none()) {
            "Which processes use the GPUs is not known."
        } else if gpus().any(|gpu| gpu.only_compute) {
            "No compute process uses a GPU."
        } else {
            "No process uses a GPU."
        }
    }
}

impl Process {
    /// Whether it uses this GPU of the card with this address.
    #[must_use]
    pub fn is_on(&self, card: Option<&str>, gpu: &Gpu) -> bool {
        match (self.gpu, gpu.index) {
            (None, None) => (self.pci.as_deref(), self.partition) == (card, gpu.partition),
            (own, index) => own == index,
        }
    }
}

impl Card {
    /// Whether containers get the card's partitions, not the card.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        self.gpus.iter().any(|gpu| gpu.partition.is_some())
    }

    /// The first and the last index of its GPUs.
    #[must_use]
    pub fn indexes(&self) -> Option<(u32, u32)> {
        Some((self.gpus.first()?.index?, self.gpus.last()?.index?))
    }

    /// Why containers cannot use GPUs of it: each reason once, after `not usable` or `1 of 8 partitions not usable`.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, &str)> {
        let mut found: Vec<(usize, &str)> = Vec::new();
        for problem in self.gpus.iter().flat_map(|gpu| &gpu.problems) {
            match found.iter_mut().find(|(_, known)| known == problem) {
                Some((count, _)) => *count += 1,
                None => found.push((1, problem)),
            }
        }
        let all = self.gpus.len();
        let head = |count| match count {
            _ if count == all => "not usable".to_owned(),
            _ => format!("{count} of {all} partitions not usable"),
        };
        found.into_iter().map(|(count, problem)| (head(count), problem)).collect()
    }
}

fn daemon(published: &Published) -> Daemon {
    let Published { written_at, leases, drift, drifting, config_in_force, problems, changes, .. } =
        published.clone();
    Daemon { written_at, leases, drift, drifting, config_in_force, problems, changes }
}

fn text(labels: &[Label], name: &str) -> Option<String> {
    labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value.clone())
}

fn number(labels: &[Label], name: &str) -> Option<u32> {
    text(labels, name)?.parse().ok()
}

fn is_of(sample: &Sample, metric: &'static Metric) -> bool {
    std::ptr::eq(sample.metric, metric)
}

/// Where a series belongs: its card by the address or, where sysfs does not tell the card, by the GPU's index.
#[derive(PartialEq)]
enum Place {
    Card(String),
    Gpu(u32),
}

fn place(sample: &Sample) -> Option<Place> {
    let labels = &sample.labels;
    text(labels, "pci").map(Place::Card).or_else(|| number(labels, "gpu").map(Place::Gpu))
}

fn cards(samples: &[Sample]) -> Vec<Card> {
    let mut found: Vec<(Place, Vec<&Sample>)> = Vec::new();
    for sample in samples {
        let Some(place) = place(sample) else { continue };
        match found.iter_mut().find(|(known, _)| *known == place) {
            Some((_, samples)) => samples.push(sample),
            None => found.push((place, vec![sample])),
        }
    }
    let mut cards: Vec<Card> = found.iter().map(|(_, samples)| card(samples)).collect();
    // Those whose index is not known come last.
    cards.sort_by_key(|card| {
        let first = card.gpus.first().and_then(|gpu| gpu.index);
        (first.is_none(), first)
    });
    cards
}

/// `samples`: of this card and of its partitions.
fn card(samples: &[&Sample]) -> Card {
    let (of_partitions, own): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| text(&sample.labels, "partition").is_some());
    // A partition whose card is not known stands alone.
    let said = || own.iter().chain(&of_partitions);
    let info = |name: &str| said().filter(|it| is_of(it, &GPU_INFO)).find_map(|it| text(&it.labels, name));
    let value = |metric| own.iter().find(|it| is_of(it, metric)).map(|it| it.value);
    let of_sensor = |it: &&&Sample| is_of(it, &GPU_TEMPERATURE);
    let limit = own.iter().filter(|it| is_of(it, &POWER_LIMIT));
    let gpus = if of_partitions.is_empty() { gpus(&own) } else { gpus(&of_partitions) };
    Card {
        pci: info("pci"),
        model: info("model"),
        gfx: info("gfx"),
        compute_partition: info("compute_partition"),
        memory_partition: info("memory_partition"),
        is_suspended: value(&GPU_SUSPENDED).map(|value| value > 0.0),
        temperatures: own
            .iter()
            .filter(of_sensor)
            .filter_map(|it| Some((text(&it.labels, "sensor")?, it.value)))
            .collect(),
        power_watts: value(&POWER_USAGE),
        power_limit_watts: limit
            .filter(|it| text(&it.labels, "limit").as_deref() == Some("current"))
            .map(|it| it.value)
            .next(),
        memory_used_bytes: value(&MEMORY_USED),
        memory_total_bytes: value(&MEMORY_TOTAL),
        busy_percent: value(&GPU_UTILIZATION),
        gpus,
        health: None,
    }
}

/// Each GPU that these samples name, in the order of their indexes.
fn gpus(samples: &[&Sample]) -> Vec<Gpu> {
    let mut gpus: BTreeMap<(Option<u32>, Option<u32>), Gpu> = BTreeMap::new();
    for sample in samples {
        let (index, partition) = (number(&sample.labels, "gpu"), number(&sample.labels, "partition"));
        let gpu =
            gpus.entry((index, partition)).or_insert_with(|| Gpu { index, partition, ..Gpu::default() });
        if is_of(sample, &GPU_UTILIZATION) {
            gpu.busy_percent = Some(sample.value);
        } else if is_of(sample, &MEMORY_TOTAL) {
            gpu.memory_total_bytes = Some(sample.value);
        } else if is_of(sample, &PROCESSES) {
            gpu.processes = whole(sample.value);
        } else if is_of(sample, &LEASE) {
            gpu.lease = text(&sample.labels, "container");
        }
    }
    gpus.into_values().collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of processes")]
fn whole(value: f64) -> Option<u32> {
    (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

fn processes(samples: &[Sample]) -> Vec<Process> {
    let mut found = BTreeMap::<_, Process>::new();
    let metrics = [&PROCESS_VRAM, &PROCESS_CU, &PROCESS_QUEUES];
    for sample in samples.iter().filter(|sample| metrics.iter().any(|metric| is_of(sample, metric))) {
        let labels = &sample.labels;
        let Some(pid) = number(labels, "pid") else { continue };
        let (gpu, pci, partition) = (number(labels, "gpu"), text(labels, "pci"), number(labels, "partition"));
        let process = found.entry((pid, gpu, pci.clone(), partition)).or_insert_with(|| Process {
            pid,
            name: text(labels, "name"),
            gpu,
            pci,
            partition,
            container: text(labels, "container"),
            pod: pod(labels),
            unit: text(labels, "unit"),
            ..Process::default()
        });
        if is_of(sample, &PROCESS_VRAM) {
            process.vram_bytes = Some(sample.value);
        } else if is_of(sample, &PROCESS_CU) {
            process.compute_units = Some(sample.value);
        }
    }
    found.into_values().collect()
}

/// By its uid where its name is not known.
fn pod(labels: &[Label]) -> Option<String> {
    let pod = text(labels, "pod")?;
    Some(text(labels, "namespace").map_or(pod.clone(), |namespace| format!("{namespace}/{pod}")))
}
