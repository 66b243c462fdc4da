//! The GPUs where they are: NUMA node, host bridge, bridges, card, partitions.

use std::collections::VecDeque;

use inventory::topology::Card;
use inventory::{Gpu, Inventory, names};
use serde::Serialize;

use super::hive_name;

/// A place, and what is below it.
#[derive(Debug, Serialize)]
pub(crate) struct Branch {
    #[serde(flatten)]
    pub(crate) place: Place,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Branch>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Place {
    /// `numa_node` is null where the kernel names none for a card.
    NumaNode {
        numa_node: Option<u32>,
        local_cpus: Option<String>,
    },
    /// `name` is null where sysfs does not tell.
    HostBridge {
        name: Option<String>,
    },
    /// `on_card`: it belongs to the card below it.
    Bridge {
        pci: String,
        on_card: bool,
    },
    Card(CardEntry),
}

/// A card, of any vendor.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct CardEntry {
    /// Null for GPUs of which sysfs does not tell the card.
    pub(crate) pci: Option<String>,
    pub(crate) vendor: &'static str,
    pub(crate) name: Option<String>,
    /// The PCIe link between the card and the machine as it is now.
    pub(crate) link_transfers_per_second: Option<f64>,
    pub(crate) link_lanes: Option<u32>,
    pub(crate) hive: Option<String>,
    /// What a container can get of it; none of another vendor's card.
    pub(crate) gpus: Vec<Part>,
    /// Why the card or its link is not known.
    pub(crate) unknown: Option<String>,
}

/// A GPU of a card.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) index: u32,
    /// Its number among the card's partitions.
    pub(crate) partition: Option<u32>,
}

/// The tree of a machine's cards. Those without a NUMA node come last, and then GPUs without a card.
pub(super) fn of(cards: &[Card], inventory: &Inventory) -> Vec<Branch> {
    let mut cards: Vec<&Card> = cards.iter().collect();
    cards.sort_by_key(|card| (card.numa_node.is_err(), card.numa_node.clone().ok(), card.address));
    let mut tree = grow(cards.iter().map(|card| path(card, &cards, inventory)).collect());
    let places = inventory.gpus.iter().enumerate();
    let without_card: Vec<usize> =
        places.filter(|(_, gpu)| gpu.pci.is_none()).map(|(place, _)| place).collect();
    let gpus = parts(&without_card, inventory);
    if !gpus.is_empty() {
        let place = Place::Card(CardEntry {
            pci: None,
            vendor: "amd",
            name: None,
            link_transfers_per_second: None,
            link_lanes: None,
            hive: None,
            gpus,
            unknown: Some("sysfs does not name the card of these GPUs".to_owned()),
        });
        tree.push(Branch { place, children: Vec::new() });
    }
    tree
}

/// Joins paths that begin alike.
fn grow(paths: Vec<VecDeque<Place>>) -> Vec<Branch> {
    let mut groups: Vec<(Place, Vec<VecDeque<Place>>)> = Vec::new();
    for mut path in paths {
        let Some(place) = path.pop_front() else { continue };
        match groups.iter_mut().find(|(known, _)| *known == place) {
            Some((_, rests)) => rests.push(path),
            None => groups.push((place, vec![path])),
        }
    }
    groups.into_iter().map(|(place, rests)| Branch { place, children: grow(rests) }).collect()
}

/// From the NUMA node to the card.
fn path(card: &Card, cards: &[&Card], inventory: &Inventory) -> VecDeque<Place> {
    let numa_node = card.numa_node.clone().ok();
    let neighbours = cards.iter().filter(|other| other.numa_node.clone().ok() == numa_node);
    let mut lists = neighbours.filter_map(|other| other.local_cpus.as_ref().ok());
    // Cards of which no node is known may be near different CPUs.
    let local_cpus = lists.next().filter(|first| lists.all(|list| list == *first)).cloned();
    let off_card = card.bridges.len().saturating_sub(card.own_bridges);
    let bridge = |(at, address): (usize, &inventory::PciAddress)| Place::Bridge {
        pci: address.to_string(),
        on_card: at >= off_card,
    };
    let mut path = VecDeque::from([
        Place::NumaNode { numa_node, local_cpus },
        Place::HostBridge { name: card.host_bridge.clone() },
    ]);
    path.extend(card.bridges.iter().enumerate().map(bridge));
    path.push_back(Place::Card(entry(card, inventory)));
    path
}

fn entry(card: &Card, inventory: &Inventory) -> CardEntry {
    let gpu = card.gpus.first().and_then(|place| inventory.gpus.get(*place));
    let unknown = card.speed.as_ref().err().or(card.width.as_ref().err());
    CardEntry {
        pci: Some(card.address.to_string()),
        vendor: card.vendor.name(),
        name: gpu.and_then(names::of),
        link_transfers_per_second: card.speed.clone().ok(),
        link_lanes: card.width.clone().ok(),
        hive: gpu.and_then(|gpu| gpu.hive_id).map(hive_name),
        gpus: parts(&card.gpus, inventory),
        unknown: unknown.map(ToString::to_string),
    }
}

fn parts(places: &[usize], inventory: &Inventory) -> Vec<Part> {
    let gpus = places.iter().filter_map(|place| inventory.gpus.get(*place));
    let part = |gpu: &Gpu| {
        Some(Part { index: gpu.index?, partition: gpu.partition.as_ref().map(|partition| partition.id) })
    };
    gpus.filter_map(part).collect()
}
