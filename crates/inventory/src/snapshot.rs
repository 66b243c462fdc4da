//! How the AMD GPUs of a machine are at one moment, and who uses them. What is unknown is `None`, never 0.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::health::GpuHealth;
use crate::hip_worker::HipWorker;
use crate::published::{Client, Published};
use crate::readings::{CardReadings, Fault, PartitionReadings, PcieTraffic};
use crate::{Identity, PciAddress};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Seconds since 1970.
    pub taken_at: f64,
    /// How many seconds the read of the machine took.
    pub read_seconds: f64,
    /// AMD's cards in the order of their indexes.
    pub cards: Vec<Card>,
    /// The version of the kernel module amdgpu, where it says one: mainline's does not.
    pub driver_version: Option<String>,
    /// Processes in the order of their pids; a process on several GPUs occurs once for each.
    pub processes: Vec<Process>,
    /// Each container's, pod's and unit's use of each GPU since the reader of these snapshots began.
    pub accounts: Vec<Account>,
    /// Whether the wrapper keeps containers off quarantined GPUs; `None` where the policy is not known.
    pub quarantine_enforced: Option<bool>,
    /// What rocworker's daemon publishes; `None` where it publishes nothing, or its file is old.
    pub daemon: Option<Published>,
    /// What rocworker-hip-worker counts; `None` where there is none, or its file is old.
    pub hip_worker: Option<HipWorker>,
    /// Sentences on what the daemon could not judge for the machine as a whole.
    pub unjudged: Vec<String>,
    /// Sentences on gaps in the machine's list of GPUs.
    pub gaps: Vec<String>,
    /// The files that gave no value, each with the reason.
    pub faults: Vec<Fault>,
    /// How often each file gave no value since the reader of these snapshots began.
    pub failed_reads: Vec<(PathBuf, u64)>,
    /// How many reads hang; `None` where the reader does not count them.
    pub stuck_reads: Option<usize>,
}

/// A card, and what containers can get of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Card {
    pub pci: Option<PciAddress>,
    /// The kernel driver that is bound to it; `None`: no driver is, or which one is not known. Only amdgpu gives readings.
    pub driver: Option<String>,
    /// The bridges above it on the PCI bus, the root port first: a kernel's message about their links concerns the card.
    pub bridges: Vec<PciAddress>,
    pub identity: Identity,
    /// The readings; a suspended card has its power state alone.
    pub readings: CardReadings,
    /// PCIe traffic, where the reader measures it: the driver takes a second for it.
    pub traffic: Option<PcieTraffic>,
    /// The GPUs that the card gives, at least one: a whole card is its own only entry.
    pub gpus: Vec<Gpu>,
    /// The daemon's judgement, while it is fresh.
    pub health: Option<GpuHealth>,
}

/// What a container can get: a card, or a partition of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Gpu {
    /// The number that `rocworker detect` gives; `None` where a KFD node that cannot be read may come before
    /// it.
    pub index: Option<u32>,
    /// The GPU's number among the nodes of KFD's topology.
    pub kfd_node: Option<u32>,
    /// How the GPU differs from its card; `None` for a whole card.
    pub part: Option<Part>,
    pub xgmi_links: Option<u32>,
    /// The number of compute processes that KFD counts.
    pub compute_processes: Option<u64>,
    /// The container that holds it exclusively.
    pub lease: Option<String>,
    /// Why no container can use it, a sentence each.
    pub problems: Vec<String>,
}

/// A partition, or a GPU of which sysfs does not tell the card.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Part {
    /// The partition's number on its card.
    pub number: Option<u32>,
    pub identity: Identity,
    pub readings: PartitionReadings,
    pub memory_total_bytes: Option<u64>,
}

/// Names one GPU of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GpuId {
    pub index: Option<u32>,
    /// The address of the GPU's card.
    pub pci: Option<PciAddress>,
    pub partition: Option<u32>,
}

/// The owner of a process; fields that do not apply are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    pub container: Option<String>,
    /// The namespace of a Kubernetes pod whose name is known.
    pub namespace: Option<String>,
    /// The pod's name, or its uid where that is not known.
    pub pod: Option<String>,
    /// The systemd unit, where no container holds the process.
    pub unit: Option<String>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub name: Option<String>,
    pub gpu: GpuId,
    pub owner: Owner,
    pub vram_bytes: Option<u64>,
    pub compute_units: Option<u64>,
    pub queues: Option<u64>,
}

/// What an owner has used of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub owner: Owner,
    pub gpu: GpuId,
    /// How many seconds a process of the owner has held the GPU.
    pub seconds: f64,
    pub vram_peak_bytes: Option<u64>,
}

/// The readings of a card that people look at first and that are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing<'c> {
    /// Readings whose files gave no value.
    pub failed: Vec<&'static str>,
    /// The files that gave no value for [`Self::failed`].
    pub faults: Vec<&'c Fault>,
    /// Readings that no file of this card has: see [`Card::why_absent`].
    pub absent: Vec<&'static str>,
}

impl Snapshot {
    /// [`Self::taken_at`] in whole seconds.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is no time counts as 1970"
    )]
    pub fn taken_at_seconds(&self) -> u64 {
        self.taken_at as u64
    }

    /// Whether cards may be missing: the machine's devices could not all be read.
    #[must_use]
    pub fn may_lack_cards(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Whether the daemon judges any card.
    #[must_use]
    pub fn publishes_health(&self) -> bool {
        self.cards.iter().any(|card| card.health.is_some())
    }

    /// Sentences on everything that could not be read or judged.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        let unread = self.faults.iter().map(|fault| fault.reason.to_string());
        self.gaps.iter().cloned().chain(unread).chain(self.unjudged.iter().cloned()).collect()
    }

    /// The sentence for an empty list of cards.
    #[must_use]
    pub fn no_card(&self) -> &'static str {
        match self.may_lack_cards() {
            true => "Which GPUs this machine has is not known.",
            false => "No AMD GPU was found.",
        }
    }

    /// The sentence for an empty list of processes.
    #[must_use]
    pub fn no_process(&self) -> &'static str {
        let gpus = || self.cards.iter().flat_map(|card| card.gpus.iter().map(move |gpu| (card, gpu)));
        if self.may_lack_cards() || gpus().any(|(_, gpu)| gpu.compute_processes.is_none()) {
            "Which processes use the GPUs is not known."
        } else if gpus().any(|(card, gpu)| self.counts_only_compute(card, gpu)) {
            "No compute process uses a GPU."
        } else {
            "No process uses a GPU."
        }
    }

    /// How many processes use the GPU: KFD's count, or the number that is listed where that is more.
    #[must_use]
    pub fn process_count(&self, card: &Card, gpu: &Gpu) -> Option<u64> {
        let listed = self.on(card, gpu).count();
        gpu.compute_processes.map(|count| count.max(u64::try_from(listed).unwrap_or(u64::MAX)))
    }

    /// Whether [`Self::process_count`] counts compute processes alone, because clients that draw or decode
    /// are not all listed.
    #[must_use]
    pub fn counts_only_compute(&self, card: &Card, gpu: &Gpu) -> bool {
        // On a partitioned card, a client's entry names no partition.
        let Some(daemon) = self.daemon.as_ref().filter(|_| !card.is_partitioned()) else { return true };
        let is_its = |client: &&Client| card.pci.is_some_and(|pci| client.pci == pci.to_string());
        let is_listed = |client: &Client| {
            client.vram_bytes == Some(0) || self.on(card, gpu).any(|process| process.pid == client.pid)
        };
        !daemon.clients.iter().filter(is_its).all(is_listed)
    }

    /// The processes that are listed of a GPU.
    fn on<'s>(&'s self, card: &Card, gpu: &Gpu) -> impl Iterator<Item = &'s Process> + use<'s> {
        let id = card.id_of(gpu);
        self.processes.iter().filter(move |process| process.gpu.is(id))
    }
}

impl Gpu {
    /// The partition's number on its card; `None` for a whole card.
    #[must_use]
    pub fn partition(&self) -> Option<u32> {
        self.part.as_ref()?.number
    }
}

impl GpuId {
    /// Whether both name one GPU: their indexes are equal, or neither has one and their places are equal.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        match (self.index, other.index) {
            (None, None) => (self.pci, self.partition) == (other.pci, other.partition),
            (one, other) => one == other,
        }
    }
}

impl Card {
    #[must_use]
    pub fn is_driven_by_amdgpu(&self) -> bool {
        self.driver.as_deref() == Some("amdgpu")
    }

    /// Whether containers get the card's partitions, not the card.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        self.gpus.iter().any(|gpu| gpu.partition().is_some())
    }

    #[must_use]
    pub fn id_of(&self, gpu: &Gpu) -> GpuId {
        GpuId { index: gpu.index, pci: self.pci, partition: gpu.partition() }
    }

    /// How busy one of the card's GPUs is, in per cent.
    #[must_use]
    pub fn busy_percent_of(&self, gpu: &Gpu) -> Option<f64> {
        gpu.part.as_ref().map_or(self.readings.busy_percent, |part| part.readings.busy_percent)
    }

    /// The size of the memory that one of the card's GPUs works in.
    #[must_use]
    pub fn memory_total_bytes_of(&self, gpu: &Gpu) -> Option<u64> {
        let own = || self.readings.own_memory().and_then(|memory| memory.total_bytes);
        gpu.part.as_ref().map_or_else(own, |part| part.memory_total_bytes)
    }

    /// The first and the last index of its GPUs.
    #[must_use]
    pub fn indexes(&self) -> Option<(u32, u32)> {
        Some((self.gpus.first()?.index?, self.gpus.last()?.index?))
    }

    /// `None` where the kernel does not say. Nothing is read of a suspended card.
    #[must_use]
    pub fn is_suspended(&self) -> Option<bool> {
        self.readings.power_state.as_ref().map(|_| self.readings.is_suspended())
    }

    /// Sensors and °C.
    pub fn temperatures(&self) -> impl Iterator<Item = (&str, f64)> {
        let known = |it: &&crate::readings::Temperature| it.celsius.is_some_and(f64::is_finite);
        self.readings
            .temperatures
            .iter()
            .filter(known)
            .filter_map(|it| Some((it.sensor.as_str(), it.celsius?)))
    }

    /// The temperature by which a card limits itself, in °C: of its hottest spot where the driver tells it.
    #[must_use]
    pub fn limiting_celsius(&self) -> Option<f64> {
        let of = |name: &str| self.temperatures().find(|(sensor, _)| *sensor == name);
        of("junction")
            .or_else(|| of("edge"))
            .or_else(|| self.temperatures().next())
            .map(|(_, celsius)| celsius)
    }

    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        self.readings.power.watts
    }

    #[must_use]
    pub fn watts_limit(&self) -> Option<f64> {
        self.readings.power.cap_watts
    }

    /// Which of the readings that people look at first are unknown; none of a suspended card, which nobody reads.
    #[must_use]
    pub fn missing(&self) -> Missing<'_> {
        let memory: &[&str] = match self.readings.is_apu {
            Some(true) => &["mem_info_gtt_used"],
            Some(false) => &["mem_info_vram_used"],
            // These two tell an APU from a card, and so which memory counts.
            None => &["mem_info_vram_total", "gpu_metrics"],
        };
        let used = self.readings.own_memory().and_then(|memory| memory.used_bytes);
        let readings: [(&str, bool, &[&str]); 4] = [
            ("busy", self.readings.busy_percent.is_none(), &["gpu_busy_percent", "gpu_metrics"]),
            ("memory in use", used.is_none(), memory),
            ("power", self.watts().is_none(), &["power1_average", "power1_input", "hwmon*", "gpu_metrics"]),
            ("temperature", self.temperatures().next().is_none(), &["temp*_input", "hwmon*", "gpu_metrics"]),
        ];
        let mut missing = Missing::default();
        for (name, is_unknown, files) in readings {
            if !is_unknown || self.is_suspended() == Some(true) {
                continue;
            }
            let faults = || self.readings.faults.iter().filter(|fault| fault.explains(files));
            let names = if faults().next().is_some() { &mut missing.failed } else { &mut missing.absent };
            names.push(name);
            for fault in faults() {
                if !missing.faults.contains(&fault) {
                    missing.faults.push(fault);
                }
            }
        }
        missing
    }

    /// Why no file has a reading, to stand behind the reading's name.
    #[must_use]
    pub fn why_absent(&self) -> String {
        match self.driver.as_deref() {
            Some("amdgpu") => "amdgpu reports none".to_owned(),
            Some(driver) => format!("{driver} drives the card, and only amdgpu reports it"),
            None => "no driver is known to drive the card".to_owned(),
        }
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

impl Owner {
    /// `namespace/name` of a Kubernetes pod; its uid where they are not known.
    #[must_use]
    pub fn pod_path(&self) -> Option<String> {
        let pod = self.pod.as_ref()?;
        Some(self.namespace.as_ref().map_or(pod.clone(), |namespace| format!("{namespace}/{pod}")))
    }
}
