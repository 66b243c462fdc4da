use std::fmt;

use crate::Address;
use crate::attribute::{Reading, Unknown};
use crate::generation::NeverComputes;
use crate::node::DeviceNode;
use crate::partition::Partition;
use crate::pci::{Sriov, Vendor};
use crate::problem::Problem;

/// What a container can be given: a card, or one partition of a card.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// AMD's GPUs are numbered in KFD node order, which HIP uses; those that KFD does not know follow in
    /// PCI order. Other vendors' have no number.
    pub index: Option<u32>,
    pub vendor: Vendor,
    /// PCI ids; those of a partition are its card's.
    pub vendor_id: Option<u16>,
    pub device_id: Option<u16>,
    /// The card's address, the same for all its partitions.
    pub pci: Option<Address>,
    pub sriov: Option<Sriov>,
    /// The driver's own name for the product; consumer cards have none.
    pub product_name: Reading<String>,
    pub driver: Option<String>,
    pub gfx: Reading<Gfx>,
    pub uuid: Reading<Uuid>,
    /// The unique id of this GPU's card, by which all its partitions are known. Before ROCm 7.0.1 they have no other.
    pub card_uuid: Option<Uuid>,
    pub card: Option<DeviceNode>,
    pub render: Option<DeviceNode>,
    pub kfd_node: Option<u32>,
    pub hive_id: Option<u64>,
    pub numa_node: Reading<u32>,
    /// Whether it is the graphics of a processor (an APU), with few compute units and the system's memory. An MI300A is
    /// none: its GPU is an accelerator's. Known of what KFD knows.
    pub is_integrated: bool,
    /// The GPU's own memory in bytes: a card's VRAM, or the frame buffer that KFD gives a partition.
    pub vram_bytes: Reading<u64>,
    pub partition: Option<Partition>,
    /// Why a container cannot use it; empty when it can.
    pub problems: Vec<Problem>,
}

impl Gpu {
    /// One of which nothing was read, for this reason.
    pub(crate) fn unread(vendor: Vendor, why: &str) -> Self {
        let unknown = || Unknown::because(why);
        Self {
            index: None,
            vendor,
            vendor_id: None,
            device_id: None,
            pci: None,
            sriov: None,
            product_name: Err(unknown()),
            driver: None,
            gfx: Err(unknown()),
            uuid: Err(unknown()),
            card_uuid: None,
            card: None,
            render: None,
            kfd_node: None,
            hive_id: None,
            numa_node: Err(unknown()),
            is_integrated: false,
            vram_bytes: Err(unknown()),
            partition: None,
            problems: Vec::new(),
        }
    }

    /// Whether a container can use it: nothing is wrong with it. No other code decides this.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.problems.is_empty()
    }

    /// Why no kernel lets it compute, if that is so.
    #[must_use]
    pub fn never_computes(&self) -> Option<NeverComputes> {
        self.problems.iter().find_map(|problem| match problem {
            Problem::NeverComputes(never) => Some(*never),
            _ => None,
        })
    }

    /// The uuid that this GPU shares with its card's other partitions: it names the card.
    #[must_use]
    pub fn shared_uuid(&self) -> Option<Uuid> {
        self.card_uuid.filter(|uuid| self.uuid.as_ref().ok() != Some(uuid))
    }
}

/// A GPU's instruction set, as compilers name it: `gfx942`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gfx {
    major: u32,
    minor: u32,
    stepping: u32,
}

impl Gfx {
    /// From KFD's `gfx_target_version`: major * 10000 + minor * 100 + stepping (kfd_device.c). `None` where minor or
    /// stepping is more than the one hexadecimal digit that it has in the name.
    #[must_use]
    pub fn from_target_version(version: u32) -> Option<Self> {
        let gfx = Self { major: version / 10_000, minor: version / 100 % 100, stepping: version % 100 };
        (gfx.major < 100 && gfx.minor < 16 && gfx.stepping < 16).then_some(gfx)
    }

    /// Whether only processors have it: what the kernel sets `AMD_IS_APU` for (amdgpu_discovery_set_ip_blocks() in
    /// amdgpu_discovery.c, and `pciidlist` in amdgpu_drv.c), by the names that kgd2kfd_probe() in kfd_device.c gives them.
    #[must_use]
    pub fn is_integrated(self) -> bool {
        matches!(
            (self.major, self.minor, self.stepping),
            (7, 0, 0)
                | (8, 0, 1)
                | (9, 0, 2 | 12)
                | (10, 1, 3)
                | (10, 3, 3 | 5 | 6)
                | (11, 0, 3)
                | (11, 5 | 7, _)
        )
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }
}

/// A GPU's unique id in the form that ROCr and HIP take: `GPU-` and 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u64);

impl Uuid {
    /// `None` for 0, by which the driver says that it has none.
    #[must_use]
    pub fn new(unique_id: u64) -> Option<Self> {
        (unique_id != 0).then_some(Self(unique_id))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU-{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_that_only_processors_have_is_integrated() {
        let integrated = |version| Gfx::from_target_version(version).is_some_and(Gfx::is_integrated);
        // Kaveri, Carrizo, Raven, Renoir, Van Gogh, Rembrandt, Raphael, Phoenix, Strix Point, Strix Halo, Krackan.
        for version in
            [70_000, 80_001, 90_002, 90_012, 100_303, 100_305, 100_306, 110_003, 110_500, 110_501, 110_502]
        {
            assert!(integrated(version), "{version}");
        }
        // Hawaii, Polaris, Vega 10, Vega 12, Vega 20, MI210, MI300A, Navi 21 and 24, Navi 31 and 32, Navi 48, MI400.
        for version in [
            70_001, 80_003, 90_000, 90_004, 90_006, 90_010, 90_402, 100_300, 100_304, 110_000, 110_001,
            120_001, 120_500,
        ] {
            assert!(!integrated(version), "{version}");
        }
    }

    #[test]
    fn architectures_are_named_as_compilers_name_them() {
        for (version, name) in [
            (90_402, "gfx942"),
            (90_010, "gfx90a"),
            (90_500, "gfx950"),
            (100_303, "gfx1033"),
            (110_003, "gfx1103"),
            (120_001, "gfx1201"),
        ] {
            assert_eq!(Gfx::from_target_version(version).map(|gfx| gfx.to_string()).as_deref(), Some(name));
        }
    }
}
