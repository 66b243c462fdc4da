//! Who uses which GPU, and what each container has had of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use amdgpu::processes::{self, Use};
use amdgpu::readings::Fault;
use amdgpu::{Gpu, Unknown};
use root::Root;

use crate::accounting::{Accounting, Holding, Timestamp};
use crate::container::{Owner, label};
use crate::metrics;
use crate::published::{Pod, Published};
use crate::sample::{Label, Labelled, Sample, count};

/// A GPU, and the labels by which all of its series name it.
pub type LabelledGpu<'a> = (&'a Gpu, &'a [Label]);

/// The pid namespace that the kernel starts with, as /proc/PID/ns/pid names it (include/linux/proc_ns.h,
/// `PROC_PID_INIT_INO`): KFD numbers processes as it does.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What field 22 of /proc/PID/stat counts in (`USER_HZ`, asm-generic/param.h).
const TICKS_A_SECOND: f64 = 100.0;

/// More than /proc/PID/stat, comm and cgroup of 20 hierarchies have.
const LIMIT: usize = 64 << 10;

/// How many processes on GPUs have series of their own: three each, of some 300 bytes.
const MOST: usize = 1000;

/// What is kept of processes between two scrapes.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    accounting: Accounting,
    /// What the last samples leave out, and why.
    pub faults: Vec<Fault>,
}

/// A process on a GPU.
#[derive(Debug, Default)]
struct Row {
    vram_bytes: Option<u64>,
    compute_units: Option<u64>,
    queues: Option<u64>,
}

/// By the process' number and the GPU's place.
type Rows = BTreeMap<(u32, usize), Row>;

/// What /proc says of a process; what it does not is empty.
#[derive(Debug, Default)]
struct Process {
    name: String,
    owner: Owner,
    age: Option<f64>,
}

impl Processes {
    /// Reads the processes once. `now`: seconds since 1970. `published`: what the daemon adds, where that is fresh.
    pub fn samples(
        &mut self,
        root: &Root,
        now: f64,
        gpus: &[LabelledGpu<'_>],
        published: Option<&Published>,
    ) -> Vec<Sample> {
        self.faults.clear();
        let uses = processes::uses(root, &mut self.faults);
        let are_all_read = uses.is_some() && self.faults.is_empty();
        let uses: Vec<Use> = uses.unwrap_or_default().into_iter().filter(Use::holds).collect();
        let is_idle = uses.is_empty() && self.accounting.accounts().next().is_none();
        let ids = if is_idle { BTreeMap::new() } else { ids(root, gpus, &mut self.faults) };
        let mut proc = Proc::new(root);
        self.account(now, &uses, &mut proc);

        let mut samples = Vec::new();
        let mut rows = rows(&uses, &ids);
        if are_all_read {
            let is_known = |gpu: usize| uses.is_empty() || ids.values().any(|it| *it == gpu);
            counts(gpus, &rows, is_known, &mut samples);
        }
        if proc.numbers_alike {
            add_clients(published, gpus, &mut rows);
        }
        let rows = self.with_most_vram(rows);
        let pods = published.map_or(&[][..], |it| &it.pods);
        of_processes(gpus, &rows, &mut proc, pods, &mut samples);
        self.of_owners(gpus, &ids, pods, &mut samples);
        samples
    }

    /// Notes what each owner holds now.
    fn account(&mut self, now: f64, uses: &[Use], proc: &mut Proc<'_>) {
        let mut holdings = Vec::new();
        for it in uses {
            let Process { owner, age, .. } = proc.process(it.pid);
            if !owner.is_nobody() {
                let (owner, age) = (owner.clone(), *age);
                holdings.push(Holding { owner, gpu_id: it.gpu_id, age, vram_bytes: it.vram_bytes });
            }
        }
        self.accounting.note(Timestamp { wall: now, uptime: proc.uptime }, holdings);
    }

    /// At most [`MOST`] of them.
    fn with_most_vram(&mut self, rows: Rows) -> Rows {
        let Some(left_out @ 1..) = rows.len().checked_sub(MOST) else { return rows };
        let reason = format!("{left_out} processes have no series: only those with the most VRAM have");
        let file = PathBuf::from("/sys/class/kfd/kfd/proc");
        self.faults.push(Fault { file, reason: Unknown::because(reason) });
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|(_, row)| Reverse(row.vram_bytes));
        rows.into_iter().take(MOST).collect()
    }

    /// The series of owners. Two that are called alike are one: a series must not come twice.
    fn of_owners(
        &self,
        gpus: &[LabelledGpu<'_>],
        ids: &BTreeMap<u32, usize>,
        pods: &[Pod],
        samples: &mut Vec<Sample>,
    ) {
        let mut series = BTreeMap::<(usize, Vec<Label>), (f64, Option<u64>)>::new();
        for (owner, gpu_id, account) in self.accounting.accounts() {
            let Some(gpu) = ids.get(&gpu_id) else { continue };
            let (seconds, peak) = series.entry((*gpu, of_owner(owner, pods))).or_default();
            *seconds += account.seconds;
            *peak = (*peak).max(account.vram_peak_bytes);
        }
        for ((gpu, own), (seconds, peak)) in series {
            let Some((_, labels)) = gpus.get(gpu) else { continue };
            let mut to = Labelled::new(labels, samples);
            to.add_with_all(&metrics::CONTAINER_GPU_SECONDS, own.clone(), seconds);
            to.add_with_all(&metrics::CONTAINER_VRAM_PEAK, own, peak.map(count));
        }
    }
}

/// What KFD says: a row for each process on each GPU that has a number.
fn rows(uses: &[Use], ids: &BTreeMap<u32, usize>) -> Rows {
    let row = |it: &Use| {
        let Use { vram_bytes, compute_units, queues, .. } = *it;
        Some(((it.pid, *ids.get(&it.gpu_id)?), Row { vram_bytes, compute_units, queues }))
    };
    uses.iter().filter_map(row).collect()
}

/// How many processes are on each GPU that KFD knows.
fn counts(
    gpus: &[LabelledGpu<'_>],
    rows: &Rows,
    is_known: impl Fn(usize) -> bool,
    samples: &mut Vec<Sample>,
) {
    let mut counts = BTreeMap::<usize, u64>::new();
    rows.keys().for_each(|(_, gpu)| *counts.entry(*gpu).or_default() += 1);
    for (index, (gpu, labels)) in gpus.iter().enumerate() {
        if gpu.kfd_node.is_some() && is_known(index) {
            let processes = counts.get(&index).copied().unwrap_or(0);
            Labelled::new(labels, samples).add(&metrics::PROCESSES, count(processes));
        }
    }
}

/// The series of processes.
fn of_processes(
    gpus: &[LabelledGpu<'_>],
    rows: &Rows,
    proc: &mut Proc<'_>,
    pods: &[Pod],
    samples: &mut Vec<Sample>,
) {
    for ((pid, gpu), row) in rows {
        let Some((_, labels)) = gpus.get(*gpu) else { continue };
        let process = proc.process(*pid);
        let mut own = vec![("pid", pid.to_string())];
        own.extend((!process.name.is_empty()).then(|| ("name", process.name.clone())));
        own.extend(of_owner(&process.owner, pods));
        let mut to = Labelled::new(labels, samples);
        to.add_with_all(&metrics::PROCESS_VRAM, own.clone(), row.vram_bytes.map(count));
        to.add_with_all(&metrics::PROCESS_CU, own.clone(), row.compute_units.map(count));
        to.add_with_all(&metrics::PROCESS_QUEUES, own, row.queues.map(count));
    }
}

/// Adds the VRAM of DRM clients where KFD says none. Their fdinfo names a card: of one that is partitioned it is not known
/// which partition is meant.
fn add_clients(published: Option<&Published>, gpus: &[LabelledGpu<'_>], rows: &mut Rows) {
    let mut cards = BTreeMap::<String, Option<usize>>::new();
    for (index, (gpu, _)) in gpus.iter().enumerate() {
        if let Some(pci) = gpu.pci {
            cards.entry(pci.to_string()).and_modify(|it| *it = None).or_insert(Some(index));
        }
    }
    for client in published.iter().flat_map(|it| &it.clients) {
        let bytes = client.vram_bytes.filter(|bytes| *bytes > 0);
        if let (Some(Some(gpu)), Some(bytes)) = (cards.get(&client.pci), bytes) {
            rows.entry((client.pid, *gpu)).or_default().vram_bytes.get_or_insert(bytes);
        }
    }
}

/// Which GPU has which of KFD's ids.
fn ids(root: &Root, gpus: &[LabelledGpu<'_>], faults: &mut Vec<Fault>) -> BTreeMap<u32, usize> {
    let id = |(index, (gpu, _)): (usize, &LabelledGpu<'_>)| {
        Some((processes::gpu_id(root, gpu.kfd_node?, faults)?, index))
    };
    gpus.iter().enumerate().filter_map(id).collect()
}

/// What /proc says of processes, each read once.
struct Proc<'r> {
    root: &'r Root,
    uptime: Option<f64>,
    /// Whether /proc numbers processes as KFD does. A captured machine has no such link; its files are of one machine.
    numbers_alike: bool,
    found: BTreeMap<u32, Process>,
}

impl<'r> Proc<'r> {
    fn new(root: &'r Root) -> Self {
        let numbers_alike = is_first_pid_namespace(root).unwrap_or(true);
        Self { root, uptime: uptime(root), numbers_alike, found: BTreeMap::new() }
    }

    fn process(&mut self, pid: u32) -> &Process {
        let Self { root, uptime, numbers_alike, found } = self;
        let read = || if *numbers_alike { process(root, pid, *uptime) } else { Process::default() };
        found.entry(pid).or_insert_with(read)
    }
}

/// Whether /proc shows every process of the machine, numbered as KFD numbers them; `None` where it does not say.
#[must_use]
pub fn is_first_pid_namespace(root: &Root) -> Option<bool> {
    let namespace = root.read_link("/proc/self/ns/pid").ok()?;
    Some(namespace.as_os_str() == FIRST_PID_NAMESPACE)
}

fn process(root: &Root, pid: u32, uptime: Option<f64>) -> Process {
    let read = |file: &str| {
        let bytes = root.read(format!("/proc/{pid}/{file}"), LIMIT).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let name = read("comm");
    Process {
        name: label(name.strip_suffix('\n').unwrap_or(&name)),
        owner: Owner::of_cgroup(&read("cgroup")),
        age: started(&read("stat")).zip(uptime).map(|(started, uptime)| uptime - started),
    }
}

/// When a process started, in seconds since the boot, by /proc/PID/stat.
fn started(stat: &str) -> Option<f64> {
    // The second field is the program's name in parentheses, which may hold anything at all.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: f64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(ticks / TICKS_A_SECOND)
}

fn uptime(root: &Root) -> Option<f64> {
    let text = root.read_text("/proc/uptime", LIMIT).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().filter(|uptime: &f64| uptime.is_finite())
}

/// An owner's labels. A pod is called by its uid where its name is not known.
fn of_owner(owner: &Owner, pods: &[Pod]) -> Vec<Label> {
    let pod = pods.iter().find(|pod| pod.uid == owner.pod_uid && !pod.uid.is_empty());
    let named = |(name, value): (&'static str, &str)| (!value.is_empty()).then(|| (name, label(value)));
    let values = [
        ("container", owner.container.as_str()),
        ("namespace", pod.map_or("", |pod| &pod.namespace)),
        ("pod", pod.map_or(&owner.pod_uid, |pod| &pod.name)),
        ("unit", &owner.unit),
    ];
    values.into_iter().filter_map(named).collect()
}
