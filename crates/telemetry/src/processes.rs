//! Finds which processes use which GPU, and accounts for the use of each container.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use amdgpu::processes;
use inventory::processes::Use;
use inventory::published::{Pod, Published};
use inventory::readings::Fault;
use inventory::snapshot::{self, Account, GpuId};
use inventory::{Gpu, Unknown};
use root::Root;

use crate::accounting::{Accounting, Holding, Timestamp};
use crate::container::{Owner, label};

/// A GPU of the snapshot with what the kernel reports of it.
pub type ReadGpu<'a> = (GpuId, &'a Gpu);

/// The pid namespace that the kernel starts with, as /proc/PID/ns/pid names it (include/linux/proc_ns.h,
/// `PROC_PID_INIT_INO`): KFD numbers processes as it does.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The ticks a second of field 22 in /proc/PID/stat (`USER_HZ`, asm-generic/param.h).
const TICKS_A_SECOND: f64 = 100.0;

/// The most bytes that are read of a file: /proc/PID/stat, comm, and cgroup of 20 hierarchies have less.
const LIMIT: usize = 64 << 10;

/// How many processes on GPUs have series: each has three, of some 300 bytes.
const MOST: usize = 1000;

/// The state of processes between two scrapes.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    accounting: Accounting,
    /// What the last samples leave out, with the reasons.
    pub faults: Vec<Fault>,
}

/// The result of one reading of the processes.
#[derive(Debug, Default)]
pub struct Found {
    /// The number of compute processes on each GPU for which KFD reports it.
    pub counts: BTreeMap<GpuId, u64>,
    /// The processes in the order of their pids.
    pub processes: Vec<snapshot::Process>,
    pub accounts: Vec<Account>,
}

/// What a process holds of a GPU.
#[derive(Debug, Default)]
struct Row {
    vram_bytes: Option<u64>,
    compute_units: Option<u64>,
    queues: Option<u64>,
}

/// Rows by pid and the GPU's position in the list.
type Rows = BTreeMap<(u32, usize), Row>;

/// What /proc reports of a process; what it does not report is empty.
#[derive(Debug, Default)]
struct Process {
    name: String,
    owner: Owner,
    age: Option<f64>,
}

impl Processes {
    /// Reads the processes once. `now`: seconds since 1970. `published`: what the daemon adds, where that is fresh.
    pub fn read(
        &mut self,
        root: &Root,
        now: f64,
        gpus: &[ReadGpu<'_>],
        published: Option<&Published>,
    ) -> Found {
        self.faults.clear();
        let uses = processes::uses(root, &mut self.faults);
        let are_all_read = uses.is_some() && self.faults.is_empty();
        let uses: Vec<Use> = uses.unwrap_or_default().into_iter().filter(Use::holds).collect();
        let is_idle = uses.is_empty() && self.accounting.accounts().next().is_none();
        let ids = if is_idle { BTreeMap::new() } else { ids(root, gpus, &mut self.faults) };
        let mut proc = Proc::new(root);
        self.account(now, &uses, &mut proc);

        let mut found = Found::default();
        let mut rows = rows(&uses, &ids);
        if are_all_read {
            let is_known = |gpu: usize| uses.is_empty() || ids.values().any(|it| *it == gpu);
            found.counts = counts(gpus, &rows, is_known);
        }
        if proc.numbers_alike {
            add_clients(published, gpus, &mut rows);
        }
        let rows = self.with_most_vram(rows);
        let pods = published.map_or(&[][..], |it| &it.pods);
        found.processes = of_processes(gpus, &rows, &mut proc, pods);
        found.accounts = self.accounts(gpus, &ids, pods);
        found
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

    /// Keeps the [`MOST`] rows with the most VRAM.
    fn with_most_vram(&mut self, rows: Rows) -> Rows {
        let Some(left_out @ 1..) = rows.len().checked_sub(MOST) else { return rows };
        let reason = format!("{left_out} processes have no series: only those with the most VRAM have");
        let file = PathBuf::from("/sys/class/kfd/kfd/proc");
        self.faults.push(Fault { file, reason: Unknown::because(reason) });
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|(_, row)| Reverse(row.vram_bytes));
        rows.into_iter().take(MOST).collect()
    }

    /// The owners' accounts. Owners of equal names are added up, because a series must not occur twice.
    fn accounts(&self, gpus: &[ReadGpu<'_>], ids: &BTreeMap<u32, usize>, pods: &[Pod]) -> Vec<Account> {
        let mut sums = BTreeMap::<(usize, snapshot::Owner), (f64, Option<u64>)>::new();
        for (owner, gpu_id, account) in self.accounting.accounts() {
            let Some(gpu) = ids.get(&gpu_id) else { continue };
            let (seconds, peak) = sums.entry((*gpu, named(owner, pods))).or_default();
            *seconds += account.seconds;
            *peak = (*peak).max(account.vram_peak_bytes);
        }
        let account = |((gpu, owner), (seconds, vram_peak_bytes))| {
            let (gpu, _) = *gpus.get::<usize>(gpu)?;
            Some(Account { owner, gpu, seconds, vram_peak_bytes })
        };
        sums.into_iter().filter_map(account).collect()
    }
}

/// A row for each process on each GPU whose KFD id is known.
fn rows(uses: &[Use], ids: &BTreeMap<u32, usize>) -> Rows {
    let row = |it: &Use| {
        let Use { vram_bytes, compute_units, queues, .. } = *it;
        Some(((it.pid, *ids.get(&it.gpu_id)?), Row { vram_bytes, compute_units, queues }))
    };
    uses.iter().filter_map(row).collect()
}

/// The number of processes on each GPU that KFD knows.
fn counts(gpus: &[ReadGpu<'_>], rows: &Rows, is_known: impl Fn(usize) -> bool) -> BTreeMap<GpuId, u64> {
    let mut counts = BTreeMap::<usize, u64>::new();
    rows.keys().for_each(|(_, gpu)| *counts.entry(*gpu).or_default() += 1);
    let known =
        gpus.iter().enumerate().filter(|(place, (_, gpu))| gpu.kfd_node.is_some() && is_known(*place));
    known.map(|(place, (id, _))| (*id, counts.get(&place).copied().unwrap_or(0))).collect()
}

fn of_processes(
    gpus: &[ReadGpu<'_>],
    rows: &Rows,
    proc: &mut Proc<'_>,
    pods: &[Pod],
) -> Vec<snapshot::Process> {
    let process = |((pid, gpu), row): (&(u32, usize), &Row)| {
        let (gpu, _) = *gpus.get(*gpu)?;
        let process = proc.process(*pid);
        let Row { vram_bytes, compute_units, queues } = *row;
        let name = Some(process.name.clone()).filter(|name| !name.is_empty());
        let owner = named(&process.owner, pods);
        Some(snapshot::Process { pid: *pid, name, gpu, owner, vram_bytes, compute_units, queues })
    };
    rows.iter().filter_map(process).collect()
}

/// Adds the VRAM of DRM clients where KFD says none. Their fdinfo names a card: of one that is partitioned it is not known
/// which partition is meant.
fn add_clients(published: Option<&Published>, gpus: &[ReadGpu<'_>], rows: &mut Rows) {
    let mut cards = BTreeMap::<String, Option<usize>>::new();
    for (index, (_, gpu)) in gpus.iter().enumerate() {
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

/// The position of each GPU by KFD's id.
fn ids(root: &Root, gpus: &[ReadGpu<'_>], faults: &mut Vec<Fault>) -> BTreeMap<u32, usize> {
    let id = |(index, (_, gpu)): (usize, &ReadGpu<'_>)| {
        Some((processes::gpu_id(root, gpu.kfd_node?, faults)?, index))
    };
    gpus.iter().enumerate().filter_map(id).collect()
}

/// What /proc reports of processes; each process is read once.
struct Proc<'r> {
    root: &'r Root,
    uptime: Option<f64>,
    /// Whether /proc numbers processes as KFD does. A captured machine has no namespace link, but all its
    /// files are of one machine.
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

/// Whether /proc shows every process of the machine under the pid that KFD uses; `None` where /proc does not
/// tell.
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

/// The process's start in seconds since the boot, from /proc/PID/stat.
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

/// An owner by its names. A pod is called by its uid where its name is not known.
fn named(owner: &Owner, pods: &[Pod]) -> snapshot::Owner {
    let pod = pods.iter().find(|pod| pod.uid == owner.pod_uid && !pod.uid.is_empty());
    let named = |name: &str| (!name.is_empty()).then(|| label(name));
    snapshot::Owner {
        container: named(&owner.container),
        namespace: pod.and_then(|pod| named(&pod.namespace)),
        pod: named(pod.map_or(&owner.pod_uid, |pod| &pod.name)),
        unit: named(&owner.unit),
    }
}
