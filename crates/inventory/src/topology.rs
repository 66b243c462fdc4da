//! How the GPUs of a machine are linked.

use std::collections::BTreeMap;

use crate::{Gpu, Inventory, PciAddress, Reading, Unknown, Vendor};

/// Cards, and a link for each pair of AMD's GPUs.
#[derive(Debug)]
pub struct Topology {
    /// Every vendor's cards, in the order of their addresses.
    pub cards: Vec<Card>,
    /// One link for each pair of GPUs: 0 and 1, 0 and 2, …, 1 and 2, ….
    pub links: Vec<Link>,
    /// Why not all links are known that KFD names.
    pub problems: Vec<String>,
}

/// A machine with its links: what `topology` prints.
#[derive(Debug, Clone, Copy)]
pub struct Linked<'m> {
    pub inventory: &'m Inventory,
    /// The links between the GPUs of `inventory`.
    pub topology: &'m Topology,
}

/// Cards that XGMI links, which a reset takes down together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hive {
    pub id: u64,
    /// Indexes, ascending.
    pub gpus: Vec<u32>,
    /// The hive's cards in the order of their addresses.
    pub cards: Vec<PciAddress>,
}

/// How one GPU reaches another.
#[derive(Debug, Clone)]
pub struct Link {
    /// The indexes of the two; the first is less.
    pub gpus: (u32, u32),
    pub kind: Reading<Kind>,
    /// What PCIe traffic between the two GPUs goes through. `None` for two partitions of one card.
    pub nearest: Option<Reading<Nearest>>,
    /// KFD's measure of how far they are from each other, for comparisons alone.
    pub weight: Option<u64>,
    /// The bandwidth of one of the link's lines in megabytes (10⁶) a second; `max_bandwidth` is that of all
    /// lines. KFD computes both and measures neither.
    pub min_bandwidth: Option<u64>,
    pub max_bandwidth: Option<u64>,
    /// Whether KFD lets each GPU use the other's memory. `None` where KFD does not say.
    pub peer_access: Option<bool>,
}

/// The hardware that a link goes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Two partitions of one card.
    Card,
    /// XGMI, with the number of links in a row.
    Xgmi {
        hops: Reading<u32>,
    },
    Pcie,
}

/// What two cards' traffic over PCIe goes through, in nvidia-smi's words: the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearest {
    /// At most one PCIe switch.
    Pix,
    /// Several PCIe switches, and no host bridge.
    Pxb,
    /// The host bridge that both are below.
    Phb,
    /// Host bridges of one NUMA node.
    Node,
    /// The connection between NUMA nodes.
    Sys,
}

impl Nearest {
    /// The word of three or four capitals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        }
    }
}

/// A PCI function with a GPU, of any vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    pub address: PciAddress,
    pub vendor: Vendor,
    /// The host bridge as sysfs names it: `pci0000:00`. `None` where sysfs does not tell.
    pub host_bridge: Option<String>,
    /// The bridges above it, the root port first.
    pub bridges: Vec<PciAddress>,
    /// How many of `bridges`, at the end, are on the card itself: the switch that AMD's cards have.
    pub own_bridges: usize,
    pub numa_node: Reading<u32>,
    /// The CPUs of that node, as the kernel lists them: `0-15,64-79`.
    pub local_cpus: Reading<String>,
    /// The link of the card to the machine, in transfers a second. Of another vendor's card it is not read.
    pub speed: Reading<f64>,
    /// The lanes of that link.
    pub width: Reading<u32>,
    /// The places in [`crate::Inventory::gpus`] of what this card gives.
    pub gpus: Vec<usize>,
}

impl Card {
    /// The bridges between the card and its host bridge.
    fn bridges_off_card(&self) -> &[PciAddress] {
        self.bridges.get(..self.bridges.len().saturating_sub(self.own_bridges)).unwrap_or_default()
    }

    /// What traffic between two cards goes through. `is_one_node`: the machine has only one NUMA node, so
    /// that a card belongs to it even where the kernel names none.
    ///
    /// # Errors
    /// The reason why sysfs leaves it open.
    pub fn nearest(&self, other: &Self, is_one_node: bool) -> Reading<Nearest> {
        let no_place = |card: &Self| {
            Unknown::because(format!("sysfs does not say where {} is on the bus", card.address))
        };
        let host = self.host_bridge.as_ref().ok_or_else(|| no_place(self))?;
        let others = other.host_bridge.as_ref().ok_or_else(|| no_place(other))?;
        if host != others {
            return match (&self.numa_node, &other.numa_node) {
                (Ok(node), Ok(others)) if node != others => Ok(Nearest::Sys),
                (Ok(_), Ok(_)) => Ok(Nearest::Node),
                _ if is_one_node => Ok(Nearest::Node),
                (Err(why), _) | (_, Err(why)) => {
                    Err(Unknown::because(format!("NODE or SYS, which is not known: {why}")))
                }
            };
        }
        let (above, others) = (self.bridges_off_card(), other.bridges_off_card());
        let shared = above.iter().zip(others).take_while(|(a, b)| a == b).count();
        Ok(match (shared, above.len().max(others.len()).saturating_sub(shared)) {
            (0, _) => Nearest::Phb,
            (_, 0 | 1) => Nearest::Pix,
            _ => Nearest::Pxb,
        })
    }
}

/// A hive's name: 16 hexadecimal digits.
#[must_use]
pub fn hive_name(id: u64) -> String {
    format!("{id:016x}")
}

impl<'m> Linked<'m> {
    /// AMD's GPUs that have an index, in its order.
    pub fn gpus(self) -> impl Iterator<Item = (u32, &'m Gpu)> {
        self.inventory.gpus.iter().filter_map(|gpu| Some((gpu.index?, gpu)))
    }

    /// The CPUs near a GPU, as the kernel lists them.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn local_cpus(self, gpu: &Gpu) -> Reading<&'m str> {
        let card = self.topology.cards.iter().find(|card| Some(card.address) == gpu.pci);
        let card = card.ok_or_else(|| Unknown::because("sysfs does not name the GPU's card"))?;
        card.local_cpus.as_deref().map_err(Clone::clone)
    }

    /// Why a GPU's place is not known, by the name of the JSON's field.
    #[must_use]
    pub fn unknown(self, gpu: &Gpu) -> BTreeMap<&'static str, String> {
        let reasons =
            [("numa_node", gpu.numa_node.clone().err()), ("local_cpus", self.local_cpus(gpu).err())];
        reasons.into_iter().filter_map(|(field, why)| Some((field, why?.to_string()))).collect()
    }

    /// The hives in the order of their first GPUs.
    #[must_use]
    pub fn hives(self) -> Vec<Hive> {
        let mut hives: Vec<Hive> = Vec::new();
        for (index, gpu) in self.gpus() {
            let Some(id) = gpu.hive_id else { continue };
            match hives.iter_mut().find(|hive| hive.id == id) {
                Some(hive) => {
                    hive.gpus.push(index);
                    hive.cards.extend(gpu.pci);
                }
                None => hives.push(Hive { id, gpus: vec![index], cards: gpu.pci.into_iter().collect() }),
            }
        }
        for hive in &mut hives {
            hive.cards.sort();
            hive.cards.dedup();
        }
        hives
    }

    /// Sentences on what is wrong with the machine, and on links that KFD names and that are not known.
    #[must_use]
    pub fn problems(self) -> Vec<String> {
        [self.inventory.problems(), self.topology.problems.clone()].concat()
    }
}
