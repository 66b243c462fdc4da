//! What an instruction does with one lane's memory, whichever memory that is.

use std::sync::Mutex;

use super::half;
use crate::wave::Wave;

/// One kernel's atomic operations exclude another stream's.
static ATOMICS: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Bytes that fill one register or several.
    Load { bytes: usize, signed: bool },
    /// Two bytes or one into a half of a register, whose other half stays.
    LoadHalf { bytes: usize, signed: bool, high: bool },
    /// Of a register's upper half where `high`.
    Store { bytes: usize, high: bool },
    /// The old value, the data and, in a comparing swap, what the old value must be.
    Atomic { bytes: usize, compares: bool, run: fn(u64, u64, u64) -> u64 },
}

impl Access {
    /// How many bytes of memory one lane touches.
    pub fn bytes(self) -> usize {
        match self {
            Access::Load { bytes, .. }
            | Access::LoadHalf { bytes, .. }
            | Access::Store { bytes, .. }
            | Access::Atomic { bytes, .. } => bytes,
        }
    }

    /// How many registers of data the instruction names.
    pub fn words(self) -> usize {
        let words = self.bytes().div_ceil(4);
        if let Access::Atomic { compares: true, .. } = self { 2 * words } else { words }
    }

    pub fn writes(self) -> bool {
        !matches!(self, Access::Load { .. } | Access::LoadHalf { .. })
    }

    /// Does it for a lane. `data` is the first register of what is written, and `to` of what is read.
    ///
    /// # Safety
    /// `memory` must be valid for [`Self::bytes`].
    pub unsafe fn run(self, memory: *mut u8, wave: &mut Wave, data: usize, to: Option<usize>, lane: usize) {
        match self {
            Access::Load { bytes, signed } => {
                let Some(to) = to else { return };
                if bytes < 4 {
                    let value = unsafe { small(memory, bytes, signed) };
                    wave.set_vector(to, lane, value);
                    return;
                }
                for word in 0..bytes / 4 {
                    let value = unsafe { memory.cast::<u32>().add(word).read_unaligned() };
                    wave.set_vector(to + word, lane, value);
                }
            }
            Access::LoadHalf { bytes, signed, high } => {
                let Some(to) = to else { return };
                let value = unsafe { small(memory, bytes, signed) } & 0xffff;
                let old = wave.vector(to, lane);
                let new = if high { old & 0xffff | value << 16 } else { old & 0xffff_0000 | value };
                wave.set_vector(to, lane, new);
            }
            Access::Store { bytes, high } => {
                if bytes < 4 {
                    let value = wave.vector(data, lane) >> if high { 16 } else { 0 };
                    match bytes {
                        1 => unsafe { memory.write(value as u8) },
                        _ => unsafe { memory.cast::<u16>().write_unaligned(value as u16) },
                    }
                    return;
                }
                for word in 0..bytes / 4 {
                    let value = wave.vector(data + word, lane);
                    unsafe { memory.cast::<u32>().add(word).write_unaligned(value) };
                }
            }
            Access::Atomic { bytes, compares, run } => {
                let words = bytes / 4;
                let new = wave.vector_words(data, words, lane);
                let expected = if compares { wave.vector_words(data + words, words, lane) } else { 0 };
                let guard = ATOMICS.lock();
                let old = if words == 2 {
                    unsafe { memory.cast::<u64>().read_unaligned() }
                } else {
                    u64::from(unsafe { memory.cast::<u32>().read_unaligned() })
                };
                let value = run(old, new, expected);
                if words == 2 {
                    unsafe { memory.cast::<u64>().write_unaligned(value) };
                } else {
                    unsafe { memory.cast::<u32>().write_unaligned(value as u32) };
                }
                drop(guard);
                if let Some(to) = to {
                    wave.set_vector_words(to, words, lane, old);
                }
            }
        }
    }
}

unsafe fn small(memory: *const u8, bytes: usize, signed: bool) -> u32 {
    unsafe {
        match (bytes, signed) {
            (1, false) => u32::from(memory.read()),
            (1, true) => memory.cast::<i8>().read() as u32,
            (_, false) => u32::from(memory.cast::<u16>().read_unaligned()),
            (_, true) => memory.cast::<i16>().read_unaligned() as u32,
        }
    }
}

pub const fn load(bytes: usize) -> Access {
    Access::Load { bytes, signed: false }
}

pub const fn load_signed(bytes: usize) -> Access {
    Access::Load { bytes, signed: true }
}

pub const fn store(bytes: usize) -> Access {
    Access::Store { bytes, high: false }
}

pub const fn word(run: fn(u64, u64, u64) -> u64) -> Access {
    Access::Atomic { bytes: 4, compares: false, run }
}

pub const fn wide(run: fn(u64, u64, u64) -> u64) -> Access {
    Access::Atomic { bytes: 8, compares: false, run }
}

pub fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

pub fn add_f32(old: u64, data: u64, _: u64) -> u64 {
    u64::from((float(old) + float(data)).to_bits())
}

pub fn add_f64(old: u64, data: u64, _: u64) -> u64 {
    (f64::from_bits(old) + f64::from_bits(data)).to_bits()
}

pub fn add_halves(old: u64, data: u64, _: u64) -> u64 {
    let add = |shift: u32| {
        u64::from(half::from_f32(half::to_f32((old >> shift) as u16) + half::to_f32((data >> shift) as u16)))
            << shift
    };
    add(0) | add(16)
}

pub fn increment(old: u64, limit: u64, _: u64) -> u64 {
    if old >= limit { 0 } else { old + 1 }
}

pub fn decrement(old: u64, limit: u64, _: u64) -> u64 {
    if old == 0 || old > limit { limit } else { old - 1 }
}
