//! How the GPUs of a machine are linked: KFD's links between its nodes, and the PCI bus.

mod links;
mod path;

use std::collections::BTreeMap;

use inventory::topology::{Card, Topology};
use inventory::{Gpu, Inventory, PciAddress, Unknown};
use root::Root;

use links::Links;

/// Reads how the GPUs of `inventory` are linked, beneath the Root from which the inventory was read. Wakes no
/// card. Never fails: where a link is not known, its reason stands in its place.
#[must_use]
pub fn read(root: &Root, inventory: &Inventory) -> Topology {
    let cards = cards(root, inventory);
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
    let known = Links::read(root, inventory);
    let numbered = || inventory.gpus.iter().filter_map(|gpu| Some((gpu.index?, gpu)));
    for (index, gpu) in numbered() {
        for (other, peer) in numbered().filter(|(other, _)| *other > index) {
            links.push(known.link((index, gpu), (other, peer), between(gpu, peer)));
        }
    }
    Topology { cards, links, problems: known.problems }
}

fn cards(root: &Root, inventory: &Inventory) -> Vec<Card> {
    let mut cards = BTreeMap::<PciAddress, Card>::new();
    for (place, gpu) in inventory.gpus.iter().enumerate() {
        let Some(address) = gpu.pci else { continue };
        let card = cards.entry(address).or_insert_with(|| path::card(root, gpu, address));
        card.gpus.push(place);
    }
    cards.into_values().collect()
}
