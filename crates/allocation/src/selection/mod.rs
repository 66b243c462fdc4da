//! Which GPUs a request gets.

mod inventory;
mod pack;

use std::fmt;

use crate::health::withheld::{Card, Withheld};
use ::inventory::PciAddress;

use crate::Render;

pub use inventory::Inventory;

/// Something that a container can be given: a GPU, or a partition of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// As `rocworker detect` counts: in KFD's node order.
    pub index: u32,
    /// None where only a CDI spec says what there is, and it has no PCI address for it.
    pub pci: Option<PciAddress>,
    pub render: Render,
    /// Its own, not one that partitions share.
    pub uuid: Option<String>,
    /// A partition's card's, which all its partitions share.
    pub card_uuid: Option<String>,
    /// The card that it is a part of. Partitions of one card have the same.
    pub card: Option<PciAddress>,
    /// The XGMI hive of the card.
    pub hive: Option<String>,
    /// The graphics of a processor beside a card: a count takes it last.
    pub integrated: bool,
}

impl Gpu {
    /// What keeps its card from containers, if anything does.
    #[must_use]
    pub fn withheld<'w>(&self, by: &'w Withheld) -> Option<&'w Card> {
        by.card(self.card.or(self.pci)?)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pci {
            Some(pci) => write!(f, "{} ({pci}, {})", self.index, self.render),
            None => write!(f, "{} ({})", self.index, self.render),
        }
    }
}

/// A GPU that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'i> {
    pub gpu: &'i Gpu,
    /// Its place in [`crate::cdi::Outline::devices`].
    pub device: usize,
}
