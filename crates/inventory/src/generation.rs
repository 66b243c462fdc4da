//! Cards whose generation never computes, whichever driver is bound to them.
//!
//! Generations differ by PCI device id, as amdgpu_drv.c lists them: `pciidlist` has each chip of GCN
//! 1 and GCN 2, `amdgpu_unsupported_pciidlist` has the older ones. Of all these chips KFD knows Kaveri and
//! Hawaii alone (kgd2kfd_probe() in kfd_device.c). No id between the ends of a range belongs to a newer chip.

use std::fmt;

/// Why no kernel lets a card compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeverComputes {
    /// A server's display chip.
    Es1000,
    /// R100 to Northern Islands: radeon's alone.
    BeforeGcn,
    /// Southern Islands: Tahiti, Pitcairn, Cape Verde, Oland, Hainan.
    Gcn1,
    /// The chips of Sea Islands that KFD does not know: Bonaire, Kabini, Mullins.
    Gcn2,
}

impl fmt::Display for NeverComputes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Es1000 => "an ES1000 is a server's display chip",
            Self::BeforeGcn => "this card is older than GCN, and amdgpu does not drive it",
            Self::Gcn1 => "this card is of GCN 1 (Southern Islands), which no kernel's KFD knows",
            Self::Gcn2 => "this chip of GCN 2 (Sea Islands) is none that a kernel's KFD knows",
        })
    }
}

/// A chip of Sea Islands that KFD knows. Older kernels leave it to radeon, if no parameter says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeaIslands {
    Kaveri,
    Hawaii,
}

impl SeaIslands {
    #[must_use]
    pub fn of(device_id: u16) -> Option<Self> {
        match device_id {
            0x1304..=0x131d => Some(Self::Kaveri),
            0x67a0..=0x67be => Some(Self::Hawaii),
            _ => None,
        }
    }

    /// The kernel command line's parameters with which KFD takes the chip. KFD calls Hawaii experimental
    /// (kgd2kfd_probe() in kfd_device.c).
    #[must_use]
    pub fn parameters(self) -> &'static str {
        match self {
            Self::Kaveri => "radeon.cik_support=0 amdgpu.cik_support=1",
            Self::Hawaii => "radeon.cik_support=0 amdgpu.cik_support=1 amdgpu.exp_hw_support=1",
        }
    }
}

impl NeverComputes {
    /// Why the AMD device with this PCI id never computes; `None` where its generation computes.
    #[must_use]
    pub fn of(device_id: u16) -> Option<Self> {
        match device_id {
            0x515e | 0x5969 => Some(Self::Es1000),
            0x6600..=0x6631 | 0x6660..=0x666f | 0x6780..=0x679f | 0x6800..=0x683f | 0x684c => {
                Some(Self::Gcn1)
            }
            0x6640..=0x665f | 0x9830..=0x983f | 0x9850..=0x985f => Some(Self::Gcn2),
            0x3150..=0x5f57
            | 0x6700..=0x677b
            | 0x6840..=0x684b
            | 0x6850..=0x6859
            | 0x6880..=0x68fe
            | 0x7100..=0x72b3
            | 0x7834..=0x980a
            | 0x9900..=0x99a4 => Some(Self::BeforeGcn),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_never_computes_is_known_by_its_device_id() {
        use NeverComputes::{BeforeGcn, Es1000, Gcn1, Gcn2};
        for (id, chip, never) in [
            (0x515e, "ES1000", Some(Es1000)),
            (0x6811, "Pitcairn", Some(Gcn1)),
            (0x6798, "Tahiti", Some(Gcn1)),
            (0x6660, "Hainan", Some(Gcn1)),
            (0x6658, "Bonaire", Some(Gcn2)),
            (0x9830, "Kabini", Some(Gcn2)),
            (0x68b8, "Juniper, an Evergreen", Some(BeforeGcn)),
            (0x6818, "Pitcairn XT", Some(Gcn1)),
            (0x6719, "Cayman, a Northern Island", Some(BeforeGcn)),
            (0x9999, "Trinity, an APU", Some(BeforeGcn)),
            (0x5159, "RV100", Some(BeforeGcn)),
            (0x67b0, "Hawaii", None),
            (0x1313, "Kaveri", None),
            (0x67df, "Polaris 10", None),
            (0x6860, "Vega 10", None),
            (0x66a1, "Vega 20", None),
            (0x6938, "Tonga", None),
            (0x7300, "Fiji", None),
            (0x9874, "Carrizo", None),
            (0x98e4, "Stoney", None),
            (0x15bf, "Phoenix", None),
            (0x73bf, "Navi 21", None),
            (0x74a1, "MI300X", None),
        ] {
            assert_eq!(NeverComputes::of(id), never, "{id:04x}, {chip}");
        }
        assert_eq!(SeaIslands::of(0x67b0), Some(SeaIslands::Hawaii));
        assert_eq!(SeaIslands::of(0x130f), Some(SeaIslands::Kaveri));
        assert_eq!(SeaIslands::of(0x6658), None, "KFD does not know Bonaire");
    }
}
