//! The chips that have partitions.

use super::{Compute, Generation, Memory, Rules};
use crate::Model;

/// A chip, by what its PCI device id says. What a card itself reports comes first; a chip fills in what a kernel without
/// amdgpu's partition files leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// AMD's short name, as in `MI300X`.
    pub name: &'static str,
    /// How many XCDs it has; the kernel calls them XCCs.
    pub xcds: u32,
    /// HBM in bytes.
    pub memory_bytes: u64,
    /// Whether its memory is the processor's too: amdgpu refuses a memory mode then.
    pub is_apu: bool,
    /// The combinations that AMD has validated on bare metal.
    validated: &'static [(Compute, u32)],
}

use Compute::{Cpx, Dpx, Qpx, Spx};

/// AMD SMI's page on partitions for ROCm 10.2. AMD's compatibility matrix and the Device Config Manager name fewer:
/// SPX with NPS1, DPX with NPS2, CPX with NPS4.
const MI300X: &[(Compute, u32)] = &[(Spx, 1), (Dpx, 1), (Dpx, 2), (Qpx, 1), (Qpx, 4), (Cpx, 1), (Cpx, 4)];
/// AMD's compatibility matrix (amdgpu-docs, gpu-partitioning).
const MI350: &[(Compute, u32)] = &[(Spx, 1), (Dpx, 2)];
const WHOLE: &[(Compute, u32)] = &[(Spx, 1)];

impl Chip {
    /// The chip with this PCI device id of AMD's. A virtual function's id is another one than its card's.
    #[must_use]
    pub fn of(device_id: u16) -> Option<Self> {
        let (xcds, is_apu, validated) = match device_id {
            0x74a0 => (6, true, WHOLE),
            0x74a1 | 0x74a9 => (8, false, MI300X),
            0x74a2 | 0x74a8 => (4, false, WHOLE),
            0x74a5 => (8, false, WHOLE),
            0x75a0 | 0x75a3 => (8, false, MI350),
            _ => return None,
        };
        let model = Model::of(device_id)?;
        let name = model.name.trim_start_matches("AMD Instinct ");
        Some(Self { name, xcds, memory_bytes: model.memory_bytes, is_apu, validated })
    }

    /// The chip of a product; `None` where it has no partitions.
    #[must_use]
    pub fn of_model(model: &Model) -> Option<Self> {
        model.device_ids.iter().find_map(|id| Self::of(*id))
    }

    /// The compute modes in which a card with this chip is several devices, with their number.
    pub fn divided(self) -> impl Iterator<Item = (Compute, u32)> {
        // The modes go by the number of XCDs in every generation.
        let modes = Rules { generation: Generation::Mi300, xcds: self.xcds }.compute_modes().iter();
        modes.map(move |mode| (*mode, mode.devices(self.xcds))).filter(|(_, devices)| *devices > 1)
    }

    /// Whether AMD has validated the combination on bare metal.
    #[must_use]
    pub fn has_validated(self, compute: Compute, memory: Memory) -> bool {
        self.validated.contains(&(compute, memory.domains()))
    }
}
