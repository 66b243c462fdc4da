//! Who uses which GPU, and what each container has had of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use amdgpu::Gpu;
use amdgpu::processes::{self, Use};
use amdgpu::readings::Fault;
use root::Root;

use crate::accounting::{Accounting, Holding, Timestamp};
use crate::container::{Owner, label};
use crate::metric::Metric;
use crate::metrics;
use crate::published::{Pod, Published};
use crate::sample::{Label, Sample, count};

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
    left_out: usize,
    /// What the last reading could not read.
    pub(crate) faults: Vec<Fault>,
}

/// A process on a GPU.
#[derive(Debug, Default)]
struct Row {
    vram_bytes: Option<u64>,
    compute_units: Option<u64>,
    queues: Option<u64>,
}

type Value = fn(&Row) -> Option<u64>;

/// What /proc says of a process; what it does not is empty.
#[derive(Debug, Default)]
struct Process {
    name: String,
    owner: Owner,
    age: Option<f64>,
}

impl Processes {
    /// How many processes on GPUs the last samples have no series of, since more were there than have room.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

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
        let are_all_read = self.faults.is_empty();
        let uptime = uptime(root);
        let has_kfd = uses.is_some();
        let uses: Vec<Use> = uses.unwrap_or_default().into_iter().filter(Use::holds).collect();
        let is_unused = uses.is_empty();
        let is_idle = is_unused && self.accounting.accounts().next().is_none();
        let ids = if is_idle { BTreeMap::new() } else { ids(root, gpus, &mut self.faults) };
        let numbers_alike = numbers_alike(root);

        let mut rows = BTreeMap::<(u32, usize), Row>::new();
        let mut found = BTreeMap::<u32, Process>::new();
        let mut holdings = Vec::new();
        for it in uses {
            let process = found.entry(it.pid).or_insert_with(|| {
                if numbers_alike { process(root, it.pid, uptime) } else { Process::default() }
            });
            if !process.owner.is_nobody() {
                let owner = process.owner.clone();
                holdings.push(Holding {
                    owner,
                    gpu_id: it.gpu_id,
                    age: process.age,
                    vram_bytes: it.vram_bytes,
                });
            }
            if let Some(gpu) = ids.get(&it.gpu_id) {
                let Use { vram_bytes, compute_units, queues, .. } = it;
                rows.insert((it.pid, *gpu), Row { vram_bytes, compute_units, queues });
            }
        }
        self.accounting.note(Timestamp { wall: now, uptime }, holdings);
        let counts = rows.keys().fold(BTreeMap::<usize, u64>::new(), |mut counts, (_, gpu)| {
            *counts.entry(*gpu).or_default() += 1;
            counts
        });
        if numbers_alike {
            add_clients(published, gpus, &mut rows);
        }
        self.left_out = rows.len().saturating_sub(MOST);
        let rows = with_most_vram(rows);

        let pods = published.map_or(&[][..], |it| &it.pods);
        let mut samples = Vec::new();
        for (index, (gpu, labels)) in gpus.iter().enumerate() {
            let is_known = is_unused || ids.values().any(|it| *it == index);
            if has_kfd && are_all_read && is_known && gpu.kfd_node.is_some() {
                let processes = counts.get(&index).copied().unwrap_or(0);
                samples.push(sample(&metrics::PROCESSES, labels, Vec::new(), count(processes)));
            }
        }
        let values: [(&'static Metric, Value); 3] = [
            (&metrics::PROCESS_VRAM, |row| row.vram_bytes),
            (&metrics::PROCESS_CU, |row| row.compute_units),
            (&metrics::PROCESS_QUEUES, |row| row.queues),
        ];
        for (pid, _) in rows.keys() {
            found.entry(*pid).or_insert_with(|| process(root, *pid, uptime));
        }
        for (metric, value) in values {
            for ((pid, gpu), row) in &rows {
                let Some(((_, labels), process)) = gpus.get(*gpu).zip(found.get(pid)) else { continue };
                let mut own = vec![("pid", pid.to_string())];
                own.extend((!process.name.is_empty()).then(|| ("name", process.name.clone())));
                own.extend(of_owner(&process.owner, pods));
                samples.extend(value(row).map(|value| sample(metric, labels, own, count(value))));
            }
        }
        samples.extend(self.of_owners(gpus, &ids, pods));
        samples
    }

    /// The series of owners. Two that are called alike are one: a series must not come twice.
    fn of_owners(&self, gpus: &[LabelledGpu<'_>], ids: &BTreeMap<u32, usize>, pods: &[Pod]) -> Vec<Sample> {
        let mut series = BTreeMap::<(usize, Vec<Label>), (f64, Option<u64>)>::new();
        for (owner, gpu_id, account) in self.accounting.accounts() {
            let Some(gpu) = ids.get(&gpu_id) else { continue };
            let (seconds, peak) = series.entry((*gpu, of_owner(owner, pods))).or_default();
            *seconds += account.seconds;
            *peak = (*peak).max(account.vram_peak_bytes);
        }
        let labels = |gpu: usize| gpus.get(gpu).map_or(&[][..], |(_, labels)| labels);
        let seconds = series.iter().map(|((gpu, own), (seconds, _))| {
            sample(&metrics::CONTAINER_GPU_SECONDS, labels(*gpu), own.clone(), *seconds)
        });
        let peaks = series.iter().filter_map(|((gpu, own), (_, peak))| {
            Some(sample(&metrics::CONTAINER_VRAM_PEAK, labels(*gpu), own.clone(), count((*peak)?)))
        });
        seconds.chain(peaks).collect()
    }
}

/// Adds the VRAM of DRM clients where KFD says none. Their fdinfo names a card: of one that is partitioned it is not known
/// which partition is meant.
fn add_clients(
    published: Option<&Published>,
    gpus: &[LabelledGpu<'_>],
    rows: &mut BTreeMap<(u32, usize), Row>,
) {
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

/// At most [`MOST`] of them.
fn with_most_vram(rows: BTreeMap<(u32, usize), Row>) -> BTreeMap<(u32, usize), Row> {
    if rows.len() <= MOST {
        return rows;
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| Reverse(row.vram_bytes));
    rows.into_iter().take(MOST).collect()
}

/// Which GPU has which of KFD's ids.
fn ids(root: &Root, gpus: &[LabelledGpu<'_>], faults: &mut Vec<Fault>) -> BTreeMap<u32, usize> {
    let id = |(index, (gpu, _)): (usize, &LabelledGpu<'_>)| {
        Some((processes::gpu_id(root, gpu.kfd_node?, faults)?, index))
    };
    gpus.iter().enumerate().filter_map(id).collect()
}

/// Whether /proc numbers processes as KFD does. A captured machine does not say, as its files are of one machine.
fn numbers_alike(root: &Root) -> bool {
    is_first_pid_namespace(root).unwrap_or(true)
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

/// A GPU's sample. What the metric itself says of a label of the same name counts.
pub(crate) fn sample(metric: &'static Metric, of_gpu: &[Label], own: Vec<Label>, value: f64) -> Sample {
    let of_gpu = of_gpu.iter().filter(|(name, _)| !metric.labels.contains(name)).cloned();
    Sample { metric, labels: of_gpu.chain(own).collect(), value }
}
