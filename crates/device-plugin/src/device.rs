//! What the kubelet can give to a container: a GPU with its nodes.

use std::collections::BTreeSet;

use allocation::Render;
use allocation::cdi::{KIND, Spec};
use allocation::gpu::Node;
use inventory::partitioning::{Compute, Memory};
use inventory::{Gpu, kubelet};

/// A GPU that a container can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// [`kubelet::id`].
    pub(crate) id: String,
    /// The modes of a card that can be divided: `cpx_nps4`.
    pub(crate) modes: Modes,
    /// The GPU as GPUs are chosen by: card, hive, NUMA node.
    pub(crate) gpu: allocation::gpu::Gpu,
    /// KFD's node of the GPU, by which its processes are found.
    pub(crate) kfd_node: Option<u32>,
    /// The name in /etc/cdi/amd.json that gives exactly this GPU, where there is one.
    pub(crate) cdi: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Modes {
    /// The card cannot be divided.
    None,
    Are(String),
    /// The driver does not say, as while it resets the card.
    Unread(String),
}

impl Device {
    /// `None` of a GPU that a container cannot use. `spec`: /etc/cdi/amd.json, if it counts.
    pub(crate) fn of(gpu: &Gpu, spec: Option<&Spec>) -> Option<Self> {
        if !gpu.usable() {
            return None;
        }
        let path = |node: &inventory::DeviceNode| node.path.to_str().map(str::to_owned);
        let is_real = |node: &&inventory::DeviceNode| node.state.is_ok();
        let nodes = [&gpu.card, &gpu.render].into_iter().flatten().filter(is_real);
        let nodes: Vec<Node> = nodes.filter_map(path).map(Node::at).collect();
        let render = Render::parse(gpu.render.as_ref()?.path.to_str()?)?;
        let of_choice = allocation::gpu::Gpu {
            index: gpu.index?,
            names: Vec::new(),
            card: gpu.pci,
            compute: None,
            render,
            hive: gpu.hive_id.map(|hive| hive.to_string()),
            numa_node: gpu.numa_node.as_ref().ok().copied(),
            integrated: gpu.is_integrated,
            nodes,
        };
        Some(Self {
            id: kubelet::id(gpu)?,
            modes: modes(gpu),
            kfd_node: gpu.kfd_node,
            cdi: spec.and_then(|spec| name_in(spec, &of_choice)),
            gpu: of_choice,
        })
    }
}

fn modes(gpu: &Gpu) -> Modes {
    let Some(partition) = &gpu.partition else { return Modes::None };
    match (&partition.compute, &partition.memory) {
        (Ok(compute), Ok(memory)) => match (Compute::parse(compute), Memory::parse(memory)) {
            (Ok(compute), Ok(memory)) => Modes::Are(format!("{compute}_{memory}").to_lowercase()),
            // amdgpu has a word for a mode that it does not know.
            _ => Modes::Unread(format!("the driver says {compute} and {memory}")),
        },
        (Err(why), _) | (_, Err(why)) if !why.is_absent() => Modes::Unread(why.to_string()),
        _ => Modes::None,
    }
}

/// The first name whose nodes are the GPU's and no others: where the spec has indexes, the GPU's index.
fn name_in(spec: &Spec, gpu: &allocation::gpu::Gpu) -> Option<String> {
    let wanted: BTreeSet<&str> = gpu.nodes.iter().map(|node| node.path.as_str()).collect();
    let gives = |device: &&allocation::cdi::Device| {
        let given: BTreeSet<&str> = device.edits.device_nodes.iter().map(|node| node.host()).collect();
        given == wanted
    };
    let named = spec.devices.iter().filter(gives).map(|device| &device.name);
    // A spec of one GPU also has `all`, which is another GPU's name as soon as there are two.
    let name = named.filter(|name| *name != "all").min_by_key(|name| **name != gpu.index.to_string())?;
    Some(format!("{KIND}={name}"))
}
