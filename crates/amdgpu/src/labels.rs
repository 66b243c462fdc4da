//! Reads the labels of this machine as a Kubernetes node.

use std::collections::BTreeSet;

use inventory::labels::{Firmware, Labels, Property, labels};
use root::Root;

use crate::{machine, partitioning, snapshot};

/// Reads the machine. The firmware's versions are read only where labels name them.
///
/// # Errors
/// Not every GPU can be read: labels would say that it has gone.
pub fn read(root: &Root, wanted: &BTreeSet<Property>) -> Result<Labels, String> {
    let inventory = machine::read(root);
    if let Some(why) = inventory.why_incomplete() {
        return Err(why);
    }
    let cards = inventory.cards().into_iter().filter(|_| wanted.contains(&Property::Firmware));
    let firmware =
        |card: &inventory::Card<'_>| Some((card.first.pci?, snapshot::card(root, card).readings.firmware));
    let firmware: Firmware = cards.filter_map(|card| firmware(&card)).collect();
    Ok(labels(&inventory, &partitioning::read(root, &inventory), &firmware, wanted))
}
