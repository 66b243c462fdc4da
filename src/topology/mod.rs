//! `topology --output json`: how the GPUs are linked. Documented in docs/json.md.

pub mod matrix;
pub mod tree;

use std::collections::BTreeMap;

use amdgpu::Machine;
use amdgpu::topology::{Card, Kind, Topology};
use root::Root;
use serde::Serialize;

use tree::Branch;

/// The whole answer. Absent is null, never 0.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema_version: u32,
    /// AMD's, by index.
    pub gpus: Vec<Entry>,
    /// One for each pair of them.
    pub links: Vec<Link>,
    pub hives: Vec<Hive>,
    /// NUMA nodes, what is below each, and at the end the cards, of every vendor.
    pub tree: Vec<Branch>,
    /// What is wrong, with the machine or with the links that KFD names.
    pub problems: Vec<String>,
}

/// Where one GPU is.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub index: u32,
    pub pci: Option<String>,
    /// Its number among its card's partitions.
    pub partition: Option<u32>,
    pub kfd_node: Option<u32>,
    /// 16 hexadecimal digits.
    pub hive: Option<String>,
    pub numa_node: Option<u32>,
    /// As the kernel lists them: `0-15,64-79`.
    pub local_cpus: Option<String>,
    /// Why a field above is null, where there is a reason worth telling.
    pub unknown: BTreeMap<&'static str, String>,
}

/// How two GPUs reach each other.
#[derive(Debug, Serialize)]
pub struct Link {
    /// Their indexes.
    pub gpus: (u32, u32),
    /// `card`, `xgmi` or `pcie`.
    pub kind: Option<&'static str>,
    /// Of XGMI.
    pub hops: Option<u32>,
    /// `PIX`, `PXB`, `PHB`, `NODE` or `SYS`, whatever the kind; null for partitions of one card.
    pub pcie: Option<&'static str>,
    pub weight: Option<u64>,
    pub min_megabytes_per_second: Option<u64>,
    pub max_megabytes_per_second: Option<u64>,
    pub peer_access: Option<bool>,
    /// Why kind, hops or pcie is null, where it should not be.
    pub unknown: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
pub struct Hive {
    /// 16 hexadecimal digits.
    pub id: String,
    pub gpus: Vec<u32>,
    /// The addresses of its cards.
    pub cards: Vec<String>,
}

impl Answer {
    /// Reads how the GPUs of `machine` are linked, beneath the Root that it was read from.
    #[must_use]
    pub fn read(root: &Root, machine: &Machine) -> Self {
        let topology = Topology::read(root, machine);
        let mut problems = machine.problems.clone();
        problems.extend(topology.problems);
        Self {
            schema_version: 1,
            gpus: entries(machine, &topology.cards),
            links: topology.links.into_iter().map(Link::new).collect(),
            hives: topology.hives.iter().map(|hive| Hive::new(hive, machine)).collect(),
            tree: tree::of(&topology.cards, machine),
            problems,
        }
    }
}

fn entries(machine: &Machine, cards: &[Card]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for gpu in &machine.gpus {
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

impl Hive {
    fn new(hive: &amdgpu::topology::Hive, machine: &Machine) -> Self {
        let mut cards: Vec<String> = Vec::new();
        for gpu in &machine.gpus {
            if gpu.index.is_some_and(|index| hive.gpus.contains(&index)) {
                cards.extend(gpu.pci.map(|address| address.to_string()));
            }
        }
        cards.sort();
        cards.dedup();
        Self { id: hive_name(hive.id), gpus: hive.gpus.clone(), cards }
    }
}

impl Link {
    fn new(link: amdgpu::topology::Link) -> Self {
        let mut unknown = BTreeMap::new();
        let (kind, hops) = match link.kind {
            Ok(Kind::Card) => (Some("card"), None),
            Ok(Kind::Xgmi { hops }) => {
                (Some("xgmi"), hops.map_err(|why| unknown.insert("hops", why.to_string())).ok())
            }
            Ok(Kind::Pcie(_)) => (Some("pcie"), None),
            Err(why) => {
                unknown.insert("kind", why.to_string());
                (None, None)
            }
        };
        let nearest = link.nearest.transpose();
        let pcie = nearest.map_err(|why| unknown.insert("pcie", why.to_string())).ok().flatten();
        Self {
            gpus: link.gpus,
            kind,
            hops,
            pcie: pcie.map(amdgpu::topology::Nearest::word),
            weight: link.weight,
            min_megabytes_per_second: link.min_bandwidth,
            max_megabytes_per_second: link.max_bandwidth,
            peer_access: link.peer_access,
            unknown,
        }
    }
}
