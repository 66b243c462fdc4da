//! How the GPUs of a machine are linked: KFD's links between its nodes, and the PCI bus.

mod links;
mod path;

use std::collections::BTreeMap;

use root::Root;

use crate::attribute::{Reading, Unknown};
use crate::{Address, Gpu, Machine};
use links::Links;

pub use path::{Card, Nearest};

/// Cards, and a link for each pair of AMD's GPUs.
#[derive(Debug)]
pub struct Topology {
    /// Of every vendor, in the order of their addresses.
    pub cards: Vec<Card>,
    /// Of each pair of GPUs once: 0 and 1, 0 and 2, …, 1 and 2, ….
    pub links: Vec<Link>,
    /// Why not all links are known that KFD names.
    pub problems: Vec<String>,
}

/// How one GPU reaches another.
#[derive(Debug, Clone)]
pub struct Link {
    /// The indexes of the two; the first is less.
    pub gpus: (u32, u32),
    pub kind: Reading<Kind>,
    /// What PCIe traffic between them goes through. `None` for two partitions of one card.
    pub nearest: Option<Reading<Nearest>>,
    /// KFD's measure of how far they are from each other, for comparisons alone.
    pub weight: Option<u64>,
    /// In megabytes (10⁶) a second: of one of the link's lines, and of all that they have. KFD's figure, not measured.
    pub min_bandwidth: Option<u64>,
    pub max_bandwidth: Option<u64>,
    /// Whether KFD lets each use the other's memory. `None` where it does not say.
    pub peer_access: Option<bool>,
}

/// What a link goes over.
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

impl Topology {
    /// Reads how the GPUs of `machine` are linked, beneath the Root that it was read from. Wakes no card. Never fails: what
    /// is not known is said where it is missing.
    #[must_use]
    pub fn read(root: &Root, machine: &Machine) -> Self {
        let cards = cards(root, machine);
        let is_one_node = path::is_one_node(root);
        let mut nearest = BTreeMap::new();
        for (at, card) in cards.iter().enumerate() {
            for other in cards.iter().skip(at + 1) {
                nearest.insert((card.address, other.address), card.nearest(other, is_one_node));
            }
        }
        let between = |a: &Gpu, b: &Gpu| match (a.pci, b.pci) {
            (Some(a), Some(b)) => nearest.get(&(a.min(b), a.max(b))).cloned(),
            _ => Some(Err(Unknown::because("the card of one of them is not known"))),
        };
        let mut links = Vec::new();
        let known = Links::read(root, machine);
        let numbered = || machine.gpus.iter().filter_map(|gpu| Some((gpu.index?, gpu)));
        for (index, gpu) in numbered() {
            for (other, peer) in numbered().filter(|(other, _)| *other > index) {
                links.push(known.link((index, gpu), (other, peer), between(gpu, peer)));
            }
        }
        Self { cards, links, problems: known.problems }
    }
}

fn cards(root: &Root, machine: &Machine) -> Vec<Card> {
    let mut cards = BTreeMap::<Address, Card>::new();
    for (place, gpu) in machine.gpus.iter().enumerate() {
        let Some(address) = gpu.pci else { continue };
        let card = cards.entry(address).or_insert_with(|| Card::read(root, gpu, address));
        card.gpus.push(place);
    }
    cards.into_values().collect()
}
