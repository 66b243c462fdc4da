//! The GPUs where they are: NUMA node, host bridge, bridges, card, partitions.

use std::collections::VecDeque;

use crate::PciAddress;
use crate::topology::{Card, Linked};

/// A place, and what is below it.
#[derive(Debug)]
pub struct Branch<'m> {
    pub place: Place<'m>,
    pub children: Vec<Branch<'m>>,
}

#[derive(Debug, PartialEq)]
pub enum Place<'m> {
    /// `number` is `None` where the kernel names none for a card.
    NumaNode { number: Option<u32>, local_cpus: Option<&'m str> },
    /// `None` where sysfs does not tell its name.
    HostBridge(Option<&'m str>),
    /// `is_on_card`: it belongs to the card below it.
    Bridge { address: PciAddress, is_on_card: bool },
    /// A card, of any vendor.
    Card(&'m Card),
    /// GPUs of which sysfs does not tell the card: their places in [`crate::Inventory::gpus`].
    NoCard(Vec<usize>),
}

impl<'m> Linked<'m> {
    /// NUMA nodes, what is below each, and at the end the cards. Those without a NUMA node come last, and then GPUs without
    /// a card.
    #[must_use]
    pub fn tree(self) -> Vec<Branch<'m>> {
        let mut cards: Vec<&Card> = self.topology.cards.iter().collect();
        cards.sort_by_key(|card| (card.numa_node.is_err(), card.numa_node.clone().ok(), card.address));
        let mut tree = grow(cards.iter().map(|card| path(card, &cards)).collect());
        let gpus = self.inventory.gpus.iter().enumerate();
        let without_card = gpus.filter(|(_, gpu)| gpu.pci.is_none() && gpu.index.is_some());
        let without_card: Vec<usize> = without_card.map(|(place, _)| place).collect();
        if !without_card.is_empty() {
            tree.push(Branch { place: Place::NoCard(without_card), children: Vec::new() });
        }
        tree
    }

    /// The GPUs of a place that have an index, each with its number among its card's partitions. None of a place that is no
    /// card.
    #[must_use]
    pub fn gpus_at(self, place: &Place<'_>) -> Vec<(u32, Option<u32>)> {
        let places = match place {
            Place::Card(card) => card.gpus.as_slice(),
            Place::NoCard(places) => places.as_slice(),
            _ => &[],
        };
        let gpus = places.iter().filter_map(|place| self.inventory.gpus.get(*place));
        gpus.filter_map(|gpu| Some((gpu.index?, gpu.partition.as_ref().map(|it| it.id)))).collect()
    }
}

/// Joins paths that begin alike.
fn grow(paths: Vec<VecDeque<Place<'_>>>) -> Vec<Branch<'_>> {
    let mut groups: Vec<(Place<'_>, Vec<VecDeque<Place<'_>>>)> = Vec::new();
    for mut path in paths {
        let Some(place) = path.pop_front() else { continue };
        match groups.iter_mut().find(|(known, _)| *known == place) {
            Some((_, rests)) => rests.push(path),
            None => groups.push((place, vec![path])),
        }
    }
    groups.into_iter().map(|(place, rests)| Branch { place, children: grow(rests) }).collect()
}

/// The places from the NUMA node down to the card.
fn path<'m>(card: &'m Card, cards: &[&'m Card]) -> VecDeque<Place<'m>> {
    let number = card.numa_node.clone().ok();
    let neighbours = cards.iter().filter(|other| other.numa_node.clone().ok() == number);
    let mut lists = neighbours.filter_map(|other| other.local_cpus.as_deref().ok());
    // Cards of which no node is known may be near different CPUs.
    let local_cpus = lists.next().filter(|first| lists.all(|list| list == *first));
    let off_card = card.bridges.len().saturating_sub(card.own_bridges);
    let bridge =
        |(at, address): (usize, &PciAddress)| Place::Bridge { address: *address, is_on_card: at >= off_card };
    let mut path = VecDeque::from([
        Place::NumaNode { number, local_cpus },
        Place::HostBridge(card.host_bridge.as_deref()),
    ]);
    path.extend(card.bridges.iter().enumerate().map(bridge));
    path.push_back(Place::Card(card));
    path
}
