//! Which combinations of modes the kernel allows.

use super::{Compute, Memory};
use crate::Gfx;

/// What the kernel decides a card's modes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub generation: Generation,
    /// How many XCDs the card has; the kernel calls them XCCs.
    pub xcds: u32,
}

/// The generations of chips with partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// MI300 and MI325: GC 9.4.3 and 9.4.4.
    Mi300,
    /// MI350 and MI355: GC 9.5.0.
    Mi350,
    /// MI400: GC 12.1.
    Mi400,
}

impl Generation {
    /// The generation of an instruction set; `None` where its chips have no partitions.
    #[must_use]
    pub fn of(gfx: Gfx) -> Option<Self> {
        match gfx.to_string().as_str() {
            "gfx942" => Some(Self::Mi300),
            "gfx950" => Some(Self::Mi350),
            "gfx1250" => Some(Self::Mi400),
            _ => None,
        }
    }
}

impl Rules {
    /// The compute modes of the card, under one memory mode or another (amdgpu_xcp.c,
    /// `amdgpu_xcp_update_supported_modes`).
    #[must_use]
    pub fn compute_modes(self) -> &'static [Compute] {
        use Compute::{Cpx, Dpx, Qpx, Spx, Tpx};
        match self.xcds {
            8 => &[Spx, Dpx, Qpx, Cpx],
            6 => &[Spx, Tpx, Cpx],
            4 => &[Spx, Dpx, Cpx],
            2 => &[Spx, Cpx],
            1 => &[Spx],
            _ => &[],
        }
    }

    /// The memory modes under which the driver lets the card be in a compute mode (aqua_vanjaram.c,
    /// `__aqua_vanjaram_get_px_mode_info`; soc_v1_0.c, `soc_v1_0_get_xcp_res_info` and `__soc_v1_0_is_valid_mode`).
    #[must_use]
    pub fn memory_modes(self, compute: Compute) -> &'static [Memory] {
        use Compute::{Cpx, Dpx, Qpx, Spx, Tpx};
        use Generation::{Mi350, Mi400};
        match (compute, self.generation) {
            _ if !self.compute_modes().contains(&compute) => &[],
            (Spx, _) | (Dpx | Tpx, Mi400) => &[Memory::NPS1],
            (Dpx, _) => &[Memory::NPS1, Memory::NPS2],
            (Qpx | Cpx, Mi350) => &[Memory::NPS1, Memory::NPS2, Memory::NPS4],
            // Four domains need four devices at least, of equal size.
            (Cpx, Mi400) if !self.xcds.is_multiple_of(4) => &[Memory::NPS1],
            (Tpx | Qpx | Cpx, _) => &[Memory::NPS1, Memory::NPS4],
        }
    }

    /// Whether the driver lets the card be in both modes.
    #[must_use]
    pub fn allow(self, compute: Compute, memory: Memory) -> bool {
        self.memory_modes(compute).contains(&memory)
    }

    /// The compute mode that the driver picks when it is loaded and finds the card in a memory mode (aqua_vanjaram.c,
    /// `__aqua_vanjaram_get_auto_mode`; soc_v1_0.c, `__soc_v1_0_get_auto_mode`). `None` where it finds none.
    #[must_use]
    pub fn after_load(self, memory: Memory, is_apu: bool) -> Option<Compute> {
        let is_mi400 = self.generation == Generation::Mi400;
        match memory.domains() {
            1 => Some(Compute::Spx),
            domains if domains == self.xcds => Some(Compute::Cpx),
            domains if domains == self.xcds / 2 && !is_mi400 => {
                Some(if is_apu { Compute::Tpx } else { Compute::Cpx })
            }
            2 if !is_apu || is_mi400 => Some(Compute::Dpx),
            _ => None,
        }
    }
}
