use std::path::{Path, PathBuf};

use check::{About, Check, Remedy};
use config::Config;
use host::facts::Facts;
use host::groups::Groups;
use host::timestamp::Timestamp;
use inventory::{Around, DeviceNode, Gpu, NodeFault, PciAddress, Problem};
use reconcile::command::Programs;
use root::Root;

/// What is examined, and what several checks need to know of it.
pub(crate) struct Subject<'a> {
    pub(crate) root: &'a Root,
    pub(crate) config: &'a Config,
    pub(crate) facts: &'a Facts,
    pub(crate) groups: Groups,
    /// What this container is likely called on its host.
    pub(crate) likely_name: Option<String>,
    /// `None` beneath another Root than `/`, where no command is run.
    pub(crate) programs: Option<&'a Programs>,
    /// The path of the wrapper's program that an apply would copy.
    pub(crate) beside: Option<&'a Path>,
    /// The time by the machine's clock.
    pub(crate) now: Timestamp,
}

/// What a node is for. Computing takes KFD and the render node; the card node is for displays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Kfd,
    Render,
    Card,
}

impl Role {
    /// A check of a container that cannot use it.
    pub(crate) fn unusable(self, about: About, evidence: String, remedy: impl Into<Remedy>) -> Check {
        let is_for_computing = self != Self::Card;
        if is_for_computing { about.failed(evidence, remedy) } else { about.warning(evidence, remedy) }
    }

    /// The node's device in sysfs: what udevadm takes for this node and no other.
    pub(crate) fn in_sysfs(self, node: &DeviceNode) -> PathBuf {
        let class = if self == Self::Kfd { "/sys/class/kfd" } else { "/sys/class/drm" };
        Path::new(class).join(node.path.file_name().unwrap_or_default())
    }
}

impl<'a> Subject<'a> {
    pub(crate) fn in_container(&self) -> bool {
        matches!(self.facts.inventory.virtualization, Some(Around::Container(_)))
    }

    pub(crate) fn has_amd(&self) -> bool {
        self.facts.has_amd()
    }

    /// A check of a machine that has nothing to offer.
    pub(crate) fn lacks(&self, about: About, evidence: &str, remedy: &str) -> Check {
        match self.config.needs_gpu {
            true => about.failed(format!("{evidence}, and compute-runtime is rocm"), remedy),
            false => about.warning(evidence, remedy),
        }
    }

    /// Skips what only a machine with an AMD GPU has.
    pub(crate) fn needs_amd(&self, about: About, why: &str) -> Result<(), Check> {
        match self.has_amd() {
            true => Ok(()),
            false if !self.facts.inventory.may_lack_gpus() => Err(about.skipped(why)),
            false => Err(about.skipped("which GPUs this machine has is not known")),
        }
    }

    /// Skips what the host decides for a container.
    pub(crate) fn needs_host(&self, about: About, why: &str) -> Result<(), Check> {
        if self.in_container() { Err(about.skipped(why)) } else { Ok(()) }
    }

    /// Skips what no container needs of a machine of whose GPUs KFD has none: only what the check kfd says changes
    /// that.
    pub(crate) fn needs_kfd(&self, about: About) -> Result<(), Check> {
        if self.kfd_lacks_all() {
            Err(about.skipped("KFD has no GPU of this machine: the check kfd says why"))
        } else {
            Ok(())
        }
    }

    /// Whether amdgpu drives GPUs that can compute, and KFD has none of them.
    fn kfd_lacks_all(&self) -> bool {
        let is_driven = |gpu: &&Gpu| gpu.kfd_node.is_some() || gpu.is_driven_by_amdgpu();
        let mut computing =
            self.facts.amd().filter(is_driven).filter(|gpu| gpu.never_computes().is_none()).peekable();
        computing.peek().is_some() && computing.all(lacks_kfd)
    }

    /// AMD's cards whose places sysfs tells, each with its first GPU.
    pub(crate) fn cards(&self) -> impl Iterator<Item = (PciAddress, &'a Gpu)> {
        self.facts.inventory.cards().into_iter().filter_map(|card| Some((card.first.pci?, card.first)))
    }

    /// AMD's nodes without duplicates: KFD's, then the render nodes, then the card nodes.
    pub(crate) fn nodes(&self) -> Vec<(Role, &'a DeviceNode)> {
        if self.facts.amd().next().is_none() || self.kfd_lacks_all() {
            return Vec::new();
        }
        let mut nodes = vec![(Role::Kfd, &self.facts.inventory.kfd.node)];
        let computes = || self.facts.amd().filter(|gpu| gpu.never_computes().is_none() && !lacks_kfd(gpu));
        let inside = || computes().filter(|gpu| !self.is_left_outside(gpu));
        let renders = inside().filter_map(|gpu| Some((Role::Render, gpu.render.as_ref()?)));
        let cards = inside().filter_map(|gpu| Some((Role::Card, gpu.card.as_ref()?)));
        for (role, node) in renders.chain(cards) {
            if !nodes.iter().any(|(_, known)| known.path == node.path) {
                nodes.push((role, node));
            }
        }
        nodes
    }

    /// Whether this is a container to which the host's driver shows a GPU in sysfs without its node having
    /// been passed in. That is the operator's choice, not a fault of the GPU.
    pub(crate) fn is_left_outside(&self, gpu: &Gpu) -> bool {
        let missing = |node: &DeviceNode| matches!(node.state, Err(NodeFault::Missing(_)));
        self.in_container() && gpu.is_driven_by_amdgpu() && gpu.render.as_ref().is_some_and(missing)
    }
}

/// Whether KFD alone keeps a GPU from containers: no right to its nodes changes that.
pub(crate) fn lacks_kfd(gpu: &Gpu) -> bool {
    gpu.problems.iter().any(Problem::is_of_kfd_alone)
}

/// `1 GPU`, `8 GPUs`.
pub(crate) fn gpus(count: usize) -> String {
    if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") }
}

/// What a GPU is called where a sentence is about it.
pub(super) fn name_of(gpu: &Gpu) -> String {
    match (gpu.index, gpu.pci) {
        (Some(index), _) => format!("GPU {index}"),
        (None, Some(address)) => address.to_string(),
        (None, None) => "a GPU".to_owned(),
    }
}
