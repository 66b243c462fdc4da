//! The form of vector instructions that takes and writes parts of registers (SDWA).

/// A part of a register that SDWA takes or writes: a byte, a half or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub u32);

impl Part {
    pub const WHOLE: Part = Part(6);

    pub fn shift_and_bits(self) -> (u32, u32) {
        match self.0 {
            byte @ 0..=3 => (byte * 8, 8),
            word @ 4..=5 => ((word - 4) * 16, 16),
            _ => (0, 32),
        }
    }

    pub fn take(self, value: u32, signed: bool) -> u32 {
        let (shift, bits) = self.shift_and_bits();
        let top = value << (32 - bits - shift);
        if signed { (top as i32 >> (32 - bits)) as u32 } else { top >> (32 - bits) }
    }

    pub fn text(self) -> String {
        match self.0 {
            byte @ 0..=3 => format!("BYTE_{byte}"),
            word @ 4..=5 => format!("WORD_{}", word - 4),
            _ => "DWORD".into(),
        }
    }
}

/// Which parts of the registers SDWA takes, and what becomes of the rest of the destination.
#[derive(Clone, Copy, Debug)]
pub struct Sdwa {
    pub to: Part,
    /// 0: the rest is zero; 1: the rest is the sign; 2: the rest stays.
    pub unused: u32,
    pub from: [Part; 2],
    pub signed: [bool; 2],
}
