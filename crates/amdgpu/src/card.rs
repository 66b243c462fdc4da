//! Which card a KFD node is a partition of.
//!
//! A card's first KFD node has its render node on the PCI device itself, so sysfs names the card. The nodes
//! of its other partitions have their render nodes on platform devices without a parent (amdgpu_xcp_drv.c registers
//! them with none), so sysfs alone does not. `location_id` is no address there: the low bits carry the
//! partition on some kernels and a virtual function's number on all. What holds is that KFD copies the
//! card's location into each of its nodes and adds them one after the other (kgd2kfd_device_init). So a
//! partition is compared with the first nodes of cards, never computed.

use std::collections::BTreeMap;

use inventory::PciAddress;

use crate::drm::Parent;
use crate::kfd::Node;

/// Resolves each KFD node, by its number, to its card.
pub(crate) fn resolve(
    nodes: &[Node],
    parent_of: impl Fn(&Node) -> Option<Parent>,
    amd: &[PciAddress],
) -> BTreeMap<u32, PciAddress> {
    let mut cards = BTreeMap::new();
    let mut firsts: Vec<(&Node, PciAddress)> = Vec::new();
    let mut partitions = Vec::new();
    for node in nodes {
        match parent_of(node) {
            Some(Parent::Pci(address)) => {
                firsts.push((node, address));
                cards.insert(node.id, address);
            }
            Some(Parent::Partition(_)) => partitions.push(node),
            Some(Parent::Other) | None => {}
        }
    }
    for node in partitions {
        if let Some(address) = first_of(node, &firsts).or_else(|| only_card_at(node, amd)) {
            cards.insert(node.id, address);
        }
    }
    cards
}

fn first_of(node: &Node, firsts: &[(&Node, PciAddress)]) -> Option<PciAddress> {
    let near = || firsts.iter().filter(|(first, _)| same_place(first, node));
    // Virtual functions of one card are at one place too. Those that share the unique id are closer, and of
    // those the last that KFD added before this one.
    let same_id = |first: &Node| node.unique_id.is_some() && first.unique_id == node.unique_id;
    let has_same = near().any(|(first, _)| same_id(first));
    let closest: Vec<_> = near().filter(|(first, _)| !has_same || same_id(first)).collect();
    let before = closest.iter().rfind(|(first, _)| first.id < node.id);
    before.or(closest.first()).map(|(_, address)| *address)
}

/// A container may see a partition whose card's first node KFD hides: then a card at the node's place
/// settles it, when it is the only one there.
fn only_card_at(node: &Node, amd: &[PciAddress]) -> Option<PciAddress> {
    let location = node.location_id?;
    let at_place = |address: &&PciAddress| {
        u32::from(address.bus) == (location >> 8) & 0xff
            && u32::from(address.device) == (location >> 3) & 0x1f
            && node.domain.is_none_or(|domain| domain == address.domain)
    };
    let mut there = amd.iter().filter(at_place);
    match (there.next(), there.next()) {
        (Some(address), None) => Some(*address),
        _ => None,
    }
}

/// Bus and device alike, and the domain where the kernel names it. Bits above 15 hold the partition on newer
/// kernels, bits 2:0 on older ones.
fn same_place(a: &Node, b: &Node) -> bool {
    let place = |node: &Node| node.location_id.map(|location| (location & 0xffff) >> 3);
    place(a).is_some() && place(a) == place(b) && a.domain == b.domain
}
