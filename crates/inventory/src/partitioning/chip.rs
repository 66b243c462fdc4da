//! The chips that have partitions.

use super::{Compute, Memory};

/// A chip, by what its PCI device id says. What a card itself reports comes first; a chip fills in what a kernel without
/// amdgpu's partition files leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// AMD's name, as in `AMD Instinct MI300X`.
    pub name: &'static str,
    /// How many XCDs it has; the kernel calls them XCCs.
    pub xcds: u32,
    /// HBM in GiB.
    pub memory_gib: u64,
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
        let chip = |name, xcds, memory_gib, validated| {
            Some(Self { name, xcds, memory_gib, is_apu: false, validated })
        };
        match device_id {
            0x74a0 => Some(Self { name: "MI300A", xcds: 6, memory_gib: 128, is_apu: true, validated: WHOLE }),
            0x74a1 | 0x74a9 => chip("MI300X", 8, 192, MI300X),
            0x74a2 | 0x74a8 => chip("MI308X", 4, 192, WHOLE),
            0x74a5 => chip("MI325X", 8, 256, WHOLE),
            0x75a0 => chip("MI350X", 8, 288, MI350),
            0x75a3 => chip("MI355X", 8, 288, MI350),
            _ => None,
        }
    }

    /// Whether AMD has validated the combination on bare metal.
    #[must_use]
    pub fn has_validated(self, compute: Compute, memory: Memory) -> bool {
        self.validated.contains(&(compute, memory.domains()))
    }
}
