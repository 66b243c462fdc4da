//! The form of vector instructions that takes its first source from other lanes (DPP).

use crate::wave::LANES;

/// From which lane DPP takes the first source.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    pub control: u32,
    pub row_mask: u32,
    pub bank_mask: u32,
    /// Whether a lane that has no lane to take from gets 0.
    pub zero: bool,
}

impl Dpp {
    pub fn takes_part(self, lane: usize) -> bool {
        self.row_mask >> (lane / 16) & 1 == 1 && self.bank_mask >> (lane / 4 % 4) & 1 == 1
    }

    /// The lane to take from, where there is one.
    pub fn lane(self, lane: usize) -> Option<usize> {
        let (row, place) = (lane & !15, lane & 15);
        let step = (self.control & 15) as usize;
        match self.control {
            0x000..=0x0ff => Some(lane & !3 | (self.control as usize >> (lane % 4 * 2) & 3)),
            0x101..=0x10f => (place + step < 16).then(|| lane + step),
            0x111..=0x11f => (place >= step).then(|| lane - step),
            0x121..=0x12f => Some(row + (place + 16 - step) % 16),
            0x130 => (lane < 63).then_some(lane + 1),
            0x134 => Some((lane + 1) % LANES),
            0x138 => lane.checked_sub(1),
            0x13c => Some((lane + LANES - 1) % LANES),
            0x140 => Some(row + 15 - place),
            0x141 => Some(lane ^ 7),
            0x142 => row.checked_sub(1),
            0x143 => (lane >= 32).then_some(31),
            0x150..=0x15f => Some(row + step),
            _ => None,
        }
    }

    pub fn text(self) -> String {
        let step = self.control & 15;
        let control = match self.control {
            0x000..=0x0ff => {
                let lanes: Vec<_> = (0..4).map(|i| (self.control >> (2 * i) & 3).to_string()).collect();
                format!("quad_perm:[{}]", lanes.join(","))
            }
            0x101..=0x10f => format!("row_shl:{step}"),
            0x111..=0x11f => format!("row_shr:{step}"),
            0x121..=0x12f => format!("row_ror:{step}"),
            0x130 => "wave_shl:1".into(),
            0x134 => "wave_rol:1".into(),
            0x138 => "wave_shr:1".into(),
            0x13c => "wave_ror:1".into(),
            0x140 => "row_mirror".into(),
            0x141 => "row_half_mirror".into(),
            0x142 => "row_bcast:15".into(),
            0x143 => "row_bcast:31".into(),
            _ => format!("row_newbcast:{step}"),
        };
        let zero = if self.zero { " bound_ctrl:1" } else { "" };
        format!(" {control} row_mask:{:#x} bank_mask:{:#x}{zero}", self.row_mask, self.bank_mask)
    }
}
