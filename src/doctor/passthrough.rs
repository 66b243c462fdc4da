//! How a node gets into a container: whether it did, and what to say to whoever made the container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use amdgpu::is_partition;
use check::{About, Check, Remedy};
use inventory::{Around, Gpu, NodeFault, PciAddress, Problem};
use lxd::command::{Client, Container, PLACEHOLDER};
use lxd::on_host::OnHost;

use super::machine::{Subject, gpus, lacks_kfd};

const DRM: &str = "/sys/class/drm";

/// A missing passthrough, apart from a missing driver: with the driver in sysfs, only the node can be missing. `name`:
/// the component that it is a check of.
pub(super) fn check(name: &'static str, subject: &Subject<'_>) -> Option<Check> {
    if !subject.in_container() {
        return None;
    }
    // The driver's check reports a GPU without a render node, which no host could pass into a container.
    let is_driven = |gpu: &&Gpu| gpu.is_driven_by_amdgpu() && gpu.render.is_some() && !lacks_kfd(gpu);
    let driven: Vec<&Gpu> = subject.facts.amd().filter(is_driven).collect();
    if driven.is_empty() {
        return None;
    }
    let about = About::one(name, "passthrough");
    let outside: Vec<&Gpu> = driven.iter().copied().filter(|gpu| subject.is_left_outside(gpu)).collect();
    let inside = driven.len() - outside.len();
    let outside = Outside { driven: &driven, gpus: outside, hidden: hidden_partitions(subject) };
    let shown = format!("{} of amdgpu in sysfs", gpus(driven.len() + outside.hidden));
    let kfd = &subject.facts.inventory.kfd.node;
    let lacks_kfd = matches!(kfd.state, Err(NodeFault::Missing(_)));
    Some(match (inside, outside.gpus.len() + outside.hidden) {
        (0, _) => about.failed(format!("{shown}, none passed in"), of_gpus(subject, &outside, lacks_kfd)),
        (_, _) if lacks_kfd => about.failed(
            format!("{shown}, {inside} of them passed in without /dev/kfd, which computing goes through"),
            of_node(subject, &kfd.path),
        ),
        (_, 0) => about.ok(format!("{shown}, {inside} of them passed in")),
        // Whoever passed in two of eight may have meant it.
        (_, others) => about.warning(
            format!(
                "{shown}, {inside} of them passed in: right, if the other {others} are not for this container"
            ),
            of_gpus(subject, &outside, false),
        ),
    })
}

/// The nodes that were not passed into this container.
struct Outside<'a> {
    /// All GPUs that amdgpu drives, passed in or not: a device's name has the card's place among these.
    driven: &'a [&'a Gpu],
    gpus: Vec<&'a Gpu>,
    /// How many further partitions exist of which this container shows nothing else.
    hidden: usize,
}

/// KFD shows no node of a GPU that the device cgroup keeps out (kfd_devcgroup_check_permission), as LXD's does what it
/// was not set to pass. A card is found without it; a further partition is not, and counts among the hidden nodes.
fn hidden_partitions(subject: &Subject<'_>) -> usize {
    let is_hidden = |gpu: &&Gpu| gpu.problems.contains(&Problem::HiddenByKfd);
    subject.facts.inventory.kfd.hidden_nodes.saturating_sub(subject.facts.amd().filter(is_hidden).count())
}

/// The render nodes that a hidden partition may have: those of partitions that KFD names nowhere and that are not here.
/// A card that is cut into fewer parts than it could be has some to spare, and `lxd advise` passes them as well.
fn nodes_of_hidden(subject: &Subject<'_>) -> Vec<PathBuf> {
    let known: Vec<&Path> =
        subject.facts.amd().filter_map(|gpu| Some(gpu.render.as_ref()?.path.as_path())).collect();
    let names = subject.root.list(DRM).unwrap_or_default();
    let numbers: BTreeSet<u32> =
        names.iter().filter_map(|name| name.to_str()?.strip_prefix("renderD")?.parse().ok()).collect();
    let is_partition = |name: &str| is_partition(subject.root, &Path::new(DRM).join(name).join("device"));
    let names = numbers.iter().map(|number| format!("renderD{number}")).filter(|name| is_partition(name));
    let paths = names.map(|name| Path::new("/dev/dri").join(name));
    paths.filter(|path| !known.contains(&path.as_path()) && !subject.root.exists(path)).collect()
}

/// What passes each of them: for LXD and Incus on the host, with the container's own gid of render, for without `gid=`
/// a node would be root's, which no user in a nested user namespace can open.
fn of_gpus(subject: &Subject<'_>, outside: &Outside<'_>, with_kfd: bool) -> Remedy {
    let kfd = &subject.facts.inventory.kfd.node.path;
    let hidden = if outside.hidden > 0 { nodes_of_hidden(subject) } else { Vec::new() };
    let render = |gpu: &Gpu| gpu.render.as_ref().map(|node| node.path.clone());
    let Some(container) = container(subject) else {
        let nodes = outside.gpus.iter().copied().filter_map(render).chain(hidden);
        let manager = Manager::of(subject);
        let lists_all = matches!(manager, Manager::Engine | Manager::Nspawn);
        let kfd = (with_kfd || lists_all).then(|| kfd.clone());
        return manager.pass(subject, &kfd.into_iter().chain(nodes).collect::<Vec<_>>()).into();
    };
    let places: BTreeSet<PciAddress> = outside.driven.iter().copied().filter_map(address).collect();
    let wanted: BTreeSet<PciAddress> = outside.gpus.iter().copied().filter_map(address).collect();
    let cards = places.iter().enumerate().filter(|(_, card)| wanted.contains(card));
    let cards = cards.map(|(place, card)| container.add_gpu(&format!("gpu{place}"), *card));
    let further = outside.gpus.iter().copied().filter(|gpu| address(gpu).is_none());
    let further = further.filter_map(render).chain(hidden).map(|path| container.add_node(&path));
    let of_kfd = with_kfd.then(|| container.add_node(kfd));
    OnHost::new(&container, of_kfd.into_iter().chain(cards).chain(further).collect()).into()
}

/// The PCI address by which LXD and Incus pass a card with its first partition. A further partition has no PCI
/// function: it is passed by its node.
fn address(gpu: &Gpu) -> Option<PciAddress> {
    let is_further = gpu.partition.as_ref().is_some_and(|partition| partition.id > 0);
    gpu.pci.filter(|_| !is_further)
}

/// The remedy that passes one node to this container by its path.
pub(super) fn of_node(subject: &Subject<'_>, path: &Path) -> Remedy {
    match container(subject) {
        Some(container) => OnHost::new(&container, vec![container.add_node(path)]).into(),
        None => Manager::of(subject).pass(subject, &[path.to_owned()]).into(),
    }
}

/// The remedy that changes the owner and mode of a node that was passed in.
pub(super) fn of_rights(subject: &Subject<'_>) -> String {
    match container(subject) {
        Some(container) => {
            let set = OnHost::new(&container, vec![container.set_rights("DEVICE")]);
            format!("{set}, with the device that passes it in")
        }
        None => Manager::of(subject).of_rights(subject),
    }
}

/// What made a container that is none of LXD's or Incus's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    /// LXC under Proxmox VE, whose kernels are called so.
    Proxmox,
    Lxc,
    Nspawn,
    /// docker, podman, and what takes their words.
    Engine,
}

impl Manager {
    fn of(subject: &Subject<'_>) -> Self {
        let release = subject.root.read_text("/proc/sys/kernel/osrelease", 256).unwrap_or_default();
        match subject.facts.inventory.virtualization.as_ref().map(Around::name) {
            Some("lxc") if release.trim().ends_with("-pve") => Self::Proxmox,
            Some("lxc") => Self::Lxc,
            Some("systemd-nspawn") => Self::Nspawn,
            _ => Self::Engine,
        }
    }

    /// How this manager passes nodes: a line or an option for each.
    fn pass(self, subject: &Subject<'_>, nodes: &[PathBuf]) -> String {
        let each = |of: &dyn Fn(std::path::Display<'_>) -> String| {
            nodes.iter().map(|path| of(path.display())).collect::<Vec<_>>().join(" ")
        };
        match self {
            // pct.conf(5): `gid` is the group inside; Proxmox VE 8.2 and later have it.
            Self::Proxmox => {
                let gid = inner_gid(subject);
                let set = each(&|path| format!("-devN {path},gid={gid}"));
                format!(
                    "on the Proxmox host: pct set ID {set}, with this container's ID and for each N a number that \
                     pct config ID does not list; then pct reboot ID"
                )
            }
            // lxc.container.conf(5).
            Self::Lxc => {
                let entry = |path: std::path::Display<'_>| {
                    let inside = path.to_string();
                    let inside = inside.trim_start_matches('/');
                    format!("lxc.mount.entry = {path} {inside} none bind,create=file")
                };
                let lines: Vec<String> = nodes.iter().map(|path| entry(path.display())).collect();
                format!(
                    "on the host, into this container's configuration: {}, and for each its numbers (ls -l there) as \
                     lxc.cgroup2.devices.allow = c MAJOR:MINOR rw; then start it again",
                    lines.join(", ")
                )
            }
            // systemd-nspawn(1); DeviceAllow= is systemd.resource-control(5)'s.
            Self::Nspawn => {
                let set = each(&|path| format!("--bind={path} --property=DeviceAllow={path}"));
                format!("on the host: systemd-nspawn {set} …, as it was started otherwise")
            }
            Self::Engine => format!("start it with {}", each(&|path| format!("--device {path}"))),
        }
    }

    fn of_rights(self, subject: &Subject<'_>) -> String {
        match self {
            Self::Proxmox => format!(
                "on the Proxmox host: pct set ID -devN NODE,gid={}, with N as pct config ID lists the node; then pct reboot ID",
                inner_gid(subject)
            ),
            Self::Lxc | Self::Nspawn | Self::Engine => {
                "give the node group render and mode 0660 on the host: a container shows it as it is there"
                    .to_owned()
            }
        }
    }
}

/// The number of render inside, or what takes its place until there is one.
fn inner_gid(subject: &Subject<'_>) -> String {
    let gid = subject.groups.gid("render");
    gid.map_or_else(|| "GID-OF-RENDER-IN-THE-CONTAINER".to_owned(), |gid| gid.to_string())
}

fn container<'a>(subject: &'a Subject<'_>) -> Option<Container<'a>> {
    let around = subject.facts.inventory.virtualization.as_ref().map(Around::name)?;
    let client = Client::of_container(around)?;
    let name = subject.likely_name.as_deref().unwrap_or(PLACEHOLDER);
    Some(Container { client, name, gid: subject.groups.gid("render") })
}
