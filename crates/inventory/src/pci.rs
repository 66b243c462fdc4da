//! What the PCI bus says of a card.

use crate::PciAddress;

/// The vendors of cards that rocworker distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Amd,
    Nvidia,
    Intel,
    Other,
}

impl Vendor {
    /// The vendor that has this PCI id.
    #[must_use]
    pub fn of(id: u16) -> Self {
        match id {
            0x1002 => Self::Amd,
            0x10de => Self::Nvidia,
            0x8086 => Self::Intel,
            _ => Self::Other,
        }
    }

    /// The spelling in JSON and tags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd => "amd",
            Self::Nvidia => "nvidia",
            Self::Intel => "intel",
            Self::Other => "other",
        }
    }
}

/// What a function is in SR-IOV (Documentation/PCI/pci-iov-howto.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sriov {
    /// A physical function that has given out `vfs` virtual ones.
    Physical { vfs: u32 },
    /// A virtual function of the card at `of`; `None` inside a guest or container that hides the link's end.
    Virtual { of: Option<PciAddress> },
}
