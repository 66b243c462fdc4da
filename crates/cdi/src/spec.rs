//! What the CDI spec should say: kind `amd.com/gpu`, one device a GPU, aliases, and `all`.
//!
//! A node is given with its path, mode, group and permissions, and without type and number: the engine then takes
//! them from the node itself, and /dev/kfd's major changes from boot to boot.

use std::collections::BTreeMap;

use config::selection::Selection;
use config::{Config, Managed, NamedBy, Off};
use inventory::{DeviceNode, Gpu, Inventory};
use serde::Serialize;

/// The kind under which engines know AMD's GPUs.
pub use allocation::cdi::KIND;

/// The lowest version that the content needs: names that begin with a digit. podman 4.3 and containerd 1.7.0
/// refuse a higher one.
const VERSION: &str = "0.5.0";

/// The spec, before it is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spec {
    pub version: &'static str,
    pub kind: &'static str,
    pub devices: Vec<Device>,
    /// What every device needs: /dev/kfd.
    pub common: Vec<Node>,
}

/// A name, and the nodes that it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Device {
    pub name: String,
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Node {
    pub path: String,
    /// Permission bits of the node itself. Always written: without it some engines make nodes of mode 000.
    pub mode: u32,
    /// The node's own group. Always written: docker makes a node that names none root's alone.
    pub gid: u32,
}

/// What should be published to engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Spec(Spec),
    /// The configuration leaves AMD's GPUs alone.
    Off(Off),
    /// A container can be given none of the GPUs that the configuration means; a spec without devices is not
    /// valid.
    NoGpu,
}

/// What should be published of the selected GPUs.
#[must_use]
pub fn wanted(config: &Config, selection: &Selection<'_>, inventory: &Inventory) -> Wanted {
    match config.gpus {
        Managed::Off(why) => Wanted::Off(why),
        Managed::On(()) => spec(config, selection, inventory).map_or(Wanted::NoGpu, Wanted::Spec),
    }
}

fn spec(config: &Config, selection: &Selection<'_>, inventory: &Inventory) -> Option<Spec> {
    let kfd = node(&inventory.kfd.node)?;
    if selection.gpus.is_empty() {
        return None;
    }
    let named = |name: fn(&Gpu) -> Option<String>| {
        let device = move |gpu: &&Gpu| Some(Device { name: name(gpu)?, nodes: nodes(gpu) });
        selection.gpus.iter().filter_map(device)
    };
    let mut devices = Vec::new();
    if config.cdi.names.contains(&NamedBy::Index) {
        devices.extend(named(|gpu| Some(gpu.index?.to_string())));
    }
    let all = selection.gpus.iter().copied().flat_map(nodes).collect();
    devices.push(Device { name: "all".to_owned(), nodes: all });
    if config.cdi.names.contains(&NamedBy::Uuid) {
        devices.extend(named(|gpu| Some(gpu.uuid.as_ref().ok()?.to_string())));
        devices.extend(cards(selection, Gpu::shared_uuid));
    }
    if config.cdi.names.contains(&NamedBy::Pci) {
        devices.extend(cards(selection, |gpu| gpu.pci));
    }
    Some(Spec { version: VERSION, kind: KIND, devices, common: vec![kfd] })
}

impl Spec {
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.devices.iter().map(|device| device.name.as_str())
    }
}

/// A device for each card: `name` gives the card's name, and the device has all selected partitions of the card.
fn cards<N: Ord + ToString>(selection: &Selection<'_>, name: impl Fn(&Gpu) -> Option<N>) -> Vec<Device> {
    let mut cards = BTreeMap::<_, Vec<Node>>::new();
    for gpu in &selection.gpus {
        if let Some(name) = name(gpu) {
            cards.entry(name).or_default().extend(nodes(gpu));
        }
    }
    cards.into_iter().map(|(name, nodes)| Device { name: name.to_string(), nodes }).collect()
}

/// Card and render node; a card node that is not real is left out, since compute needs the render node alone.
#[must_use]
pub fn nodes(gpu: &Gpu) -> Vec<Node> {
    [&gpu.card, &gpu.render].into_iter().flatten().filter_map(node).collect()
}

/// A node of this machine; `None` where it is not real.
#[must_use]
pub fn node(node: &DeviceNode) -> Option<Node> {
    let meta = node.state.as_ref().ok()?;
    Some(Node { path: node.path.to_str()?.to_owned(), mode: meta.mode & 0o777, gid: meta.gid })
}
