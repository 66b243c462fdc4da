//! `topology --output json`: how the GPUs are linked. Documented in docs/json.md.

pub(crate) mod matrix;
pub(crate) mod tree;

use std::collections::BTreeMap;

use inventory::Inventory;
use inventory::topology::{Card, Link};
use root::Root;
use serde::Serialize;

use tree::Branch;

/// The whole answer. Absent is null, never 0.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) schema_version: u32,
    /// AMD's, by index.
    pub(crate) gpus: Vec<Entry>,
    /// One for each pair of them.
    pub(crate) links: Vec<Link>,
    pub(crate) hives: Vec<Hive>,
    /// NUMA nodes, what is below each, and at the end the cards, of every vendor.
    pub(crate) tree: Vec<Branch>,
    /// What is wrong with the machine, and why not all links are known that KFD names.
    pub(crate) problems: Vec<String>,
    /// Whether what cannot be read leaves open which GPUs there are.
    #[serde(skip)]
    pub(crate) may_lack: bool,
}

/// Where one GPU is.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) index: u32,
    pub(crate) pci: Option<String>,
    /// Its number among its card's partitions.
    pub(crate) partition: Option<u32>,
    pub(crate) kfd_node: Option<u32>,
    /// 16 hexadecimal digits.
    pub(crate) hive: Option<String>,
    pub(crate) numa_node: Option<u32>,
    /// As the kernel lists them: `0-15,64-79`.
    pub(crate) local_cpus: Option<String>,
    /// Why a field above is null, where there is a reason worth telling.
    pub(crate) unknown: BTreeMap<&'static str, String>,
}

/// The cards that XGMI links, which a reset takes down together.
#[derive(Debug, Serialize)]
pub(crate) struct Hive {
    /// 16 hexadecimal digits.
    pub(crate) id: String,
    pub(crate) gpus: Vec<u32>,
    /// The addresses of its cards.
    pub(crate) cards: Vec<String>,
}

impl Answer {
    /// Reads how the GPUs of `inventory` are linked, beneath the Root that it was read from.
    pub(crate) fn read(root: &Root, inventory: &Inventory) -> Self {
        let topology = amdgpu::topology(root, inventory);
        let mut problems = inventory.problems.clone();
        problems.extend(topology.problems);
        Self {
            schema_version: 1,
            gpus: entries(inventory, &topology.cards),
            links: topology.links,
            hives: hives(inventory),
            tree: tree::of(&topology.cards, inventory),
            problems,
            may_lack: inventory.may_lack_gpus(),
        }
    }
}

fn entries(inventory: &Inventory, cards: &[Card]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for gpu in &inventory.gpus {
        let Some(index) = gpu.index else { continue };
        let card = cards.iter().find(|card| Some(card.address) == gpu.pci);
        let mut unknown = BTreeMap::new();
        let numa_node = gpu.numa_node.as_ref();
        let numa_node = numa_node.inspect_err(|why| drop(unknown.insert("numa_node", why.to_string())));
        let local_cpus = match card {
            Some(card) => card.local_cpus.clone().map_err(|why| why.to_string()),
            None => Err("sysfs does not name the GPU's card".to_owned()),
        };
        let local_cpus = local_cpus.map_err(|why| unknown.insert("local_cpus", why));
        entries.push(Entry {
            index,
            pci: gpu.pci.map(|address| address.to_string()),
            partition: gpu.partition.as_ref().map(|partition| partition.id),
            kfd_node: gpu.kfd_node,
            hive: gpu.hive_id.map(hive_name),
            numa_node: numa_node.ok().copied(),
            local_cpus: local_cpus.ok(),
            unknown,
        });
    }
    entries
}

/// A hive's name, as `explain` writes it too.
fn hive_name(id: u64) -> String {
    format!("{id:016x}")
}

/// In the order of their first GPU.
fn hives(inventory: &Inventory) -> Vec<Hive> {
    let mut hives: Vec<Hive> = Vec::new();
    for gpu in &inventory.gpus {
        let (Some(index), Some(id)) = (gpu.index, gpu.hive_id.map(hive_name)) else { continue };
        let card = gpu.pci.map(|address| address.to_string());
        match hives.iter_mut().find(|hive| hive.id == id) {
            Some(hive) => {
                hive.gpus.push(index);
                hive.cards.extend(card);
            }
            None => hives.push(Hive { id, gpus: vec![index], cards: card.into_iter().collect() }),
        }
    }
    for hive in &mut hives {
        hive.cards.sort();
        hive.cards.dedup();
    }
    hives
}
