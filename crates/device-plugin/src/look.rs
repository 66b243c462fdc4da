//! Reads the machine: its GPUs when they may have changed, and at each look what keeps one from containers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use allocation::cdi::{KIND, Spec};
use allocation::withheld::Withheld;
use inventory::Inventory;
use inventory::health::{Health, PATH};
use root::Root;
use telemetry::daemon_file;
use telemetry::processes::is_first_pid_namespace;

use crate::device::Device;

const SPEC: &str = "/etc/cdi/amd.json";

/// The most bytes that are read of a file.
const LIMIT: usize = 1 << 20;

/// udev makes nodes, and rocworker the CDI spec, soon after KFD has changed its topology.
const SETTLES: Duration = Duration::from_secs(5);

/// What no generation announces, such as a node in /dev that comes late, is seen after so long.
const EVERY: Duration = Duration::from_secs(10);

/// What one look has read.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) gpus: Arc<Gpus>,
    /// The cards that the daemon's health.json keeps from containers.
    pub(crate) withheld: Withheld,
    /// Who uses which GPU. `None`: it is not known.
    pub(crate) users: Option<Vec<User>>,
    /// Sentences on what could not be read.
    pub(crate) problems: Vec<String>,
}

/// The machine's GPUs.
#[derive(Debug, Clone)]
pub(crate) struct Gpus {
    pub(crate) devices: Vec<Device>,
    /// KFD's generation before the GPUs were read. `None`: there is no KFD, or it cannot be read.
    pub(crate) generation: Option<u64>,
    spec: Option<String>,
    /// When the generation was first seen, and when the GPUs were read.
    since: Instant,
    at: Instant,
    problems: Vec<String>,
}

/// A process that has memory or queues on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    pub(crate) pid: u32,
    pub(crate) kfd_node: u32,
    pub(crate) is: Is,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Is {
    /// A pod's, by its cgroup.
    OfPod,
    OfHost,
    /// Ended: KFD still has it, and /proc does not.
    Gone,
}

/// Looks at the machine. `last`: the look before. `with_spec`: whether containers get GPUs by CDI.
pub(crate) fn look(root: &Root, last: Option<&Look>, with_spec: bool) -> Look {
    let mut problems = Vec::new();
    let generation = generation(root).map_err(|problem| problems.push(problem)).ok().flatten();
    let spec = with_spec.then(|| spec(root, &mut problems)).flatten();
    let now = Instant::now();
    let gpus = match last.map(|last| &last.gpus) {
        Some(last) if last.generation == generation && last.spec == spec && !last.is_due(now) => {
            Arc::clone(last)
        }
        last => Arc::new(Gpus::read(root, last.map(Arc::as_ref), generation, spec)),
    };
    problems.extend(gpus.problems.iter().cloned());
    let withheld = withheld(root).unwrap_or_else(|problem| {
        problems.push(problem);
        last.map(|last| last.withheld.clone()).unwrap_or_default()
    });
    let users = users(root, &gpus.devices).map_err(|problem| problems.push(problem)).ok();
    Look { gpus, withheld, users, problems }
}

/// KFD's generation; `None` without KFD.
///
/// # Errors
/// A sentence on why it is not known.
pub(crate) fn generation(root: &Root) -> Result<Option<u64>, String> {
    match amdgpu::topology_generation(root) {
        Err(why) if why.is_absent() => Ok(None),
        read => read
            .map(Some)
            .map_err(|why| format!("KFD's generation is not known, so that no pod gets a GPU: {why}")),
    }
}

impl Gpus {
    fn is_due(&self, now: Instant) -> bool {
        now < self.since + SETTLES || now >= self.at + EVERY
    }

    /// Reads the GPUs. While not every GPU can be read, those of the last look stay, and so does the generation of which
    /// they are: none is given to a container meanwhile if that has changed.
    fn read(root: &Root, last: Option<&Self>, generation: Option<u64>, spec: Option<String>) -> Self {
        let at = Instant::now();
        let inventory = amdgpu::read(root);
        let unread = inventory.why_incomplete();
        if let Some((last, problem)) = last.zip(unread.clone()) {
            return Self { at, problems: vec![problem], ..last.clone() };
        }
        let (devices, mut problems) = devices(root, &inventory, spec.as_deref());
        problems.extend(unread);
        let since = last.filter(|last| last.generation == generation).map_or(at, |last| last.since);
        Self { devices, generation, spec, since, at, problems }
    }
}

/// The usable GPUs, and what is wrong with the spec. A machine with cards offers no processor's own graphics: a pod that
/// asks for a GPU means a card.
fn devices(root: &Root, inventory: &Inventory, spec: Option<&str>) -> (Vec<Device>, Vec<String>) {
    let (spec, problem) = match spec.map(parsed).transpose() {
        Ok(spec) => (spec, None),
        Err(why) => (None, Some(format!("{}: {why}", root.shown(SPEC).display()))),
    };
    let devices: Vec<Device> = inventory.amd().filter_map(|gpu| Device::of(gpu, spec.as_ref())).collect();
    let has_cards = devices.iter().any(|device| !device.gpu.integrated);
    let devices = devices.into_iter().filter(|device| !(has_cards && device.gpu.integrated));
    (devices.collect(), problem.into_iter().collect())
}

/// # Errors
/// What is wrong with the spec.
fn parsed(text: &str) -> Result<Spec, String> {
    let spec = Spec::parse(text).map_err(|error| error.to_string())?;
    match spec.faults().first() {
        Some(fault) => Err(fault.to_string()),
        None if spec.kind != KIND => Err(format!("its kind is not {KIND}")),
        None => Ok(spec),
    }
}

fn spec(root: &Root, problems: &mut Vec<String>) -> Option<String> {
    let bytes = root.read_trusted(SPEC, LIMIT);
    bytes
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| problems.push(error.to_string()))
        .ok()
}

/// Reads which cards the daemon keeps from containers. No file: none.
///
/// # Errors
/// A sentence on why the file does not count.
fn withheld(root: &Root) -> Result<Withheld, String> {
    let Some(health) = daemon_file::last::<Health>(root)? else {
        let folder = Path::new(PATH).parent().unwrap_or(Path::new("/"));
        // A pod's mount keeps a folder that the host has removed, and sees no other one in its place.
        return match root.hard_links(folder) {
            Some(0) => Err(format!(
                "{} was removed on the host: delete this pod, so that a new one sees it again",
                root.shown(folder).display()
            )),
            _ => Ok(Withheld::default()),
        };
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let boot_id = || Some(root.read_text("/proc/sys/kernel/random/boot_id", 64).ok()?.trim().to_owned());
    // An old file still counts for its quarantines.
    Ok(Withheld::of(&health, now, boot_id).0)
}

/// # Errors
/// A sentence on why it is not known.
fn users(root: &Root, devices: &[Device]) -> Result<Vec<User>, String> {
    let mut faults = Vec::new();
    let uses = amdgpu::processes::uses_without_units(root, &mut faults).unwrap_or_default();
    let uses: Vec<_> = uses.into_iter().filter(inventory::processes::Use::holds).collect();
    if !uses.is_empty() && is_first_pid_namespace(root) != Some(true) {
        return Err(format!("{NOT_KNOWN}: /proc does not number processes as KFD does; set hostPID: true"));
    }
    let nodes = devices.iter().filter(|_| !uses.is_empty()).filter_map(|device| device.kfd_node);
    let ids: BTreeMap<u32, u32> =
        nodes.filter_map(|node| Some((amdgpu::processes::gpu_id(root, node, &mut faults)?, node))).collect();
    if let Some(fault) = faults.first() {
        return Err(format!("{NOT_KNOWN}: {}", fault.reason));
    }
    // A GPU that is not offered has no verdict.
    let on = |it: &inventory::processes::Use| Some((it.pid, *ids.get(&it.gpu_id)?));
    let on = uses.iter().filter_map(on);
    on.map(|(pid, kfd_node)| Ok(User { pid, kfd_node, is: kind(root, pid)? })).collect()
}

const NOT_KNOWN: &str = "what pods leave on GPUs is not known";

/// # Errors
/// A sentence on why the process's cgroup is not known.
fn kind(root: &Root, pid: u32) -> Result<Is, String> {
    match root.read(format!("/proc/{pid}/cgroup"), LIMIT) {
        Ok(cgroups) => {
            // A container may name a cgroup of its own by any bytes.
            let cgroups = String::from_utf8_lossy(&cgroups);
            Ok(if cgroups.split(['/', '\n']).any(is_kubepods) { Is::OfPod } else { Is::OfHost })
        }
        Err(_) if !root.exists(format!("/proc/{pid}")) => Ok(Is::Gone),
        Err(error) => Err(format!("{NOT_KNOWN}: {error}")),
    }
}

/// Whether a cgroup is the one beneath which the kubelet has its pods, by cgroupfs or systemd, and beneath a
/// `--cgroup-root`: `kubepods`, `kubepods.slice`, `kubelet-kubepods.slice` (pkg/kubelet/cm/cgroup_manager_linux.go).
fn is_kubepods(name: &str) -> bool {
    let name = name.strip_suffix(".slice").unwrap_or(name);
    name == "kubepods" || name.ends_with("-kubepods")
}
