//! Memory that each lane reaches by an address of its own (FLAT, GLOBAL).

use super::Around;
use super::access::{self, Access, wide, word};
use super::buffer;
use super::loads_and_stores::{LOADS_AND_STORES, Row, row};
use super::local;
use super::operand::{PRIVATE_APERTURE, SHARED_APERTURE, scalar_text, vector_text};
use crate::fault::Fault;
use crate::wave::{Wave, lanes};

/// atomic_add_f32 and atomic_pk_add_f16 have no flat form on gfx90a.
fn is_global_only(row: &Row) -> bool {
    matches!(row.code, 0x4d | 0x4e)
}

fn swap(_: u64, data: u64, _: u64) -> u64 {
    data
}

fn compare(old: u64, data: u64, expected: u64) -> u64 {
    if old == expected { data } else { old }
}

fn signed(smaller: bool, a: i64, b: i64) -> u64 {
    (if smaller { a.min(b) } else { a.max(b) }) as u64
}

fn signed32(smaller: bool, a: u64, b: u64) -> u64 {
    signed(smaller, i64::from(a as i32), i64::from(b as i32)) & 0xffff_ffff
}

static ATOMICS: &[Row] = &[
    row(0x40, "atomic_swap", word(swap)),
    row(0x41, "atomic_cmpswap", Access::Atomic { bytes: 4, compares: true, run: compare }),
    row(0x42, "atomic_add", word(|old, data, _| old.wrapping_add(data))),
    row(0x43, "atomic_sub", word(|old, data, _| old.wrapping_sub(data))),
    row(0x44, "atomic_smin", word(|old, data, _| signed32(true, old, data))),
    row(0x45, "atomic_umin", word(|old, data, _| old.min(data))),
    row(0x46, "atomic_smax", word(|old, data, _| signed32(false, old, data))),
    row(0x47, "atomic_umax", word(|old, data, _| old.max(data))),
    row(0x48, "atomic_and", word(|old, data, _| old & data)),
    row(0x49, "atomic_or", word(|old, data, _| old | data)),
    row(0x4a, "atomic_xor", word(|old, data, _| old ^ data)),
    row(0x4b, "atomic_inc", word(access::increment)),
    row(0x4c, "atomic_dec", word(access::decrement)),
    row(0x4d, "atomic_add_f32", word(access::add_f32)),
    row(0x4e, "atomic_pk_add_f16", word(access::add_halves)),
    row(0x4f, "atomic_add_f64", wide(access::add_f64)),
    row(0x50, "atomic_min_f64", wide(|old, data, _| f64::from_bits(old).min(f64::from_bits(data)).to_bits())),
    row(0x51, "atomic_max_f64", wide(|old, data, _| f64::from_bits(old).max(f64::from_bits(data)).to_bits())),
    row(0x60, "atomic_swap_x2", wide(swap)),
    row(0x61, "atomic_cmpswap_x2", Access::Atomic { bytes: 8, compares: true, run: compare }),
    row(0x62, "atomic_add_x2", wide(|old, data, _| old.wrapping_add(data))),
    row(0x63, "atomic_sub_x2", wide(|old, data, _| old.wrapping_sub(data))),
    row(0x64, "atomic_smin_x2", wide(|old, data, _| signed(true, old as i64, data as i64))),
    row(0x65, "atomic_umin_x2", wide(|old, data, _| old.min(data))),
    row(0x66, "atomic_smax_x2", wide(|old, data, _| signed(false, old as i64, data as i64))),
    row(0x67, "atomic_umax_x2", wide(|old, data, _| old.max(data))),
    row(0x68, "atomic_and_x2", wide(|old, data, _| old & data)),
    row(0x69, "atomic_or_x2", wide(|old, data, _| old | data)),
    row(0x6a, "atomic_xor_x2", wide(|old, data, _| old ^ data)),
    row(0x6b, "atomic_inc_x2", wide(access::increment)),
    row(0x6c, "atomic_dec_x2", wide(access::decrement)),
];

fn rows() -> impl Iterator<Item = &'static Row> {
    LOADS_AND_STORES.iter().chain(ATOMICS)
}

#[derive(Clone)]
pub struct Flat {
    row: &'static Row,
    global: bool,
    address: usize,
    data: usize,
    to: usize,
    /// The pair of registers whose value is added to each lane's offset of 32 bits.
    base: Option<usize>,
    offset: i32,
    glc: bool,
    slc: bool,
}

impl std::fmt::Debug for Flat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Flat {
    pub fn decode(first: u32, second: u32) -> Option<Self> {
        let row = rows().find(|row| row.code == first >> 18 & 0x7f)?;
        let global = match first >> 14 & 3 {
            0 => false,
            2 => true,
            _ => return None,
        };
        if !global && is_global_only(row) {
            return None;
        }
        // What goes to local memory, or is coherent with the host, is none that hipcc makes here.
        if first >> 13 & 1 == 1 || first >> 25 & 1 == 1 {
            return None;
        }
        let file = if second >> 23 & 1 == 1 { 256 } else { 0 };
        let base = (second >> 16 & 0x7f) as usize;
        Some(Self {
            row,
            global,
            address: (second & 0xff) as usize,
            data: (second >> 8 & 0xff) as usize + file,
            to: (second >> 24) as usize + file,
            base: (global && base != 0x7f).then_some(base),
            offset: if global { (first << 19) as i32 >> 19 } else { (first & 0xfff) as i32 },
            glc: first >> 16 & 1 == 1,
            slc: first >> 17 & 1 == 1,
        })
    }

    pub fn execute(&self, wave: &mut Wave, around: &mut Around<'_>) -> Result<(), Fault> {
        let access = self.row.access;
        let returns = !access.writes() || (self.glc && matches!(access, Access::Atomic { .. }));
        for lane in lanes(wave.exec()) {
            let address = match self.base {
                Some(base) => wave.scalar(base, 2).wrapping_add(u64::from(wave.vector(self.address, lane))),
                None => wave.vector_words(self.address, 2, lane),
            };
            let address = address.wrapping_add_signed(i64::from(self.offset));
            let to = returns.then_some(self.to);
            if !self.global && (address >> 32) as u32 == PRIVATE_APERTURE {
                buffer::private(access, wave, address as u32 as usize, self.data, to, lane)?;
                continue;
            }
            let memory = if !self.global && (address >> 32) as u32 == SHARED_APERTURE {
                local::inside(around.local, address as u32 as usize, access.bytes())?
            } else {
                around.view.reach(address, access.bytes())?
            };
            unsafe { access.run(memory, wave, self.data, to, lane) };
        }
        Ok(())
    }

    pub fn text(&self) -> String {
        let access = self.row.access;
        let words = if self.base.is_some() { 1 } else { 2 };
        let address = vector_text(self.address as u32, words);
        let data = vector_text(self.data as u32, access.words());
        let to = vector_text(self.to as u32, access.bytes().div_ceil(4));
        let mut operands = match access {
            Access::Load { .. } | Access::LoadHalf { .. } => vec![to, address],
            Access::Store { .. } => vec![address, data],
            Access::Atomic { .. } if self.glc => vec![to, address, data],
            Access::Atomic { .. } => vec![address, data],
        };
        match self.base {
            Some(base) => operands.push(scalar_text(base as u32, 2)),
            None if self.global => operands.push("off".into()),
            None => {}
        }
        let mut text = format!(
            "{}_{} {}",
            if self.global { "global" } else { "flat" },
            self.row.name,
            operands.join(", ")
        );
        if self.offset != 0 {
            text += &format!(" offset:{}", self.offset);
        }
        for (set, name) in [(self.glc, " glc"), (self.slc, " slc")] {
            if set {
                text += name;
            }
        }
        text
    }
}

pub fn names() -> impl Iterator<Item = String> {
    let flat = rows().filter(|row| !is_global_only(row)).map(|row| format!("flat_{}", row.name));
    flat.chain(rows().map(|row| format!("global_{}", row.name)))
}
