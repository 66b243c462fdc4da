//! Local memory, which the lanes of a group share, and exchanges between lanes (DS).

use super::Around;
use super::access::{self, Access, load, load_signed, store, wide, word};
use super::operand::vector_text;
use crate::fault::Fault;
use crate::wave::{LANES, Wave, lanes};

#[derive(Clone, Copy, Debug)]
enum Run {
    One(Access),
    /// An atomic operation that gives back the old value.
    Return(Access),
    /// Two places, whose offsets count in units of so many bytes.
    Two(Access, usize),
    /// Each lane gives its data to the lane that its address names.
    Push,
    /// Each lane takes the data of the lane that its address names.
    Pull,
    Swizzle,
    Nothing,
}

struct Row {
    code: u32,
    name: &'static str,
    run: Run,
}

const fn row(code: u32, name: &'static str, run: Run) -> Row {
    Row { code, name, run }
}

fn signed(run: fn(i32, i32) -> i32, old: u64, data: u64) -> u64 {
    u64::from(run(old as i32, data as i32) as u32)
}

const ADD: Access = word(|old, data, _| old.wrapping_add(data));
const SUB: Access = word(|old, data, _| old.wrapping_sub(data));
const RSUB: Access = word(|old, data, _| data.wrapping_sub(old));
const MIN_I: Access = word(|old, data, _| signed(i32::min, old, data));
const MAX_I: Access = word(|old, data, _| signed(i32::max, old, data));
const MIN_U: Access = word(|old, data, _| old.min(data));
const MAX_U: Access = word(|old, data, _| old.max(data));
const AND: Access = word(|old, data, _| old & data);
const OR: Access = word(|old, data, _| old | data);
const XOR: Access = word(|old, data, _| old ^ data);
const SWAP: Access = word(|_, data, _| data);

/// The first data is what the memory must hold, and the second what it gets.
const COMPARE: Access = Access::Atomic {
    bytes: 4,
    compares: true,
    run: |old, expected, data| if old == expected { data } else { old },
};

const fn half(bytes: usize, high: bool) -> Access {
    Access::LoadHalf { bytes, signed: false, high }
}

static ROWS: &[Row] = &[
    row(0x00, "ds_add_u32", Run::One(ADD)),
    row(0x01, "ds_sub_u32", Run::One(SUB)),
    row(0x02, "ds_rsub_u32", Run::One(RSUB)),
    row(0x03, "ds_inc_u32", Run::One(word(access::increment))),
    row(0x04, "ds_dec_u32", Run::One(word(access::decrement))),
    row(0x05, "ds_min_i32", Run::One(MIN_I)),
    row(0x06, "ds_max_i32", Run::One(MAX_I)),
    row(0x07, "ds_min_u32", Run::One(MIN_U)),
    row(0x08, "ds_max_u32", Run::One(MAX_U)),
    row(0x09, "ds_and_b32", Run::One(AND)),
    row(0x0a, "ds_or_b32", Run::One(OR)),
    row(0x0b, "ds_xor_b32", Run::One(XOR)),
    row(0x0d, "ds_write_b32", Run::One(store(4))),
    row(0x0e, "ds_write2_b32", Run::Two(store(4), 4)),
    row(0x0f, "ds_write2st64_b32", Run::Two(store(4), 256)),
    row(0x14, "ds_nop", Run::Nothing),
    row(0x15, "ds_add_f32", Run::One(word(access::add_f32))),
    row(0x1e, "ds_write_b8", Run::One(store(1))),
    row(0x1f, "ds_write_b16", Run::One(store(2))),
    row(0x20, "ds_add_rtn_u32", Run::Return(ADD)),
    row(0x21, "ds_sub_rtn_u32", Run::Return(SUB)),
    row(0x23, "ds_inc_rtn_u32", Run::Return(word(access::increment))),
    row(0x24, "ds_dec_rtn_u32", Run::Return(word(access::decrement))),
    row(0x25, "ds_min_rtn_i32", Run::Return(MIN_I)),
    row(0x26, "ds_max_rtn_i32", Run::Return(MAX_I)),
    row(0x27, "ds_min_rtn_u32", Run::Return(MIN_U)),
    row(0x28, "ds_max_rtn_u32", Run::Return(MAX_U)),
    row(0x29, "ds_and_rtn_b32", Run::Return(AND)),
    row(0x2a, "ds_or_rtn_b32", Run::Return(OR)),
    row(0x2b, "ds_xor_rtn_b32", Run::Return(XOR)),
    row(0x2d, "ds_wrxchg_rtn_b32", Run::Return(SWAP)),
    row(0x30, "ds_cmpst_rtn_b32", Run::Return(COMPARE)),
    row(0x35, "ds_add_rtn_f32", Run::Return(word(access::add_f32))),
    row(0x36, "ds_read_b32", Run::One(load(4))),
    row(0x37, "ds_read2_b32", Run::Two(load(4), 4)),
    row(0x38, "ds_read2st64_b32", Run::Two(load(4), 256)),
    row(0x39, "ds_read_i8", Run::One(load_signed(1))),
    row(0x3a, "ds_read_u8", Run::One(load(1))),
    row(0x3b, "ds_read_i16", Run::One(load_signed(2))),
    row(0x3c, "ds_read_u16", Run::One(load(2))),
    row(0x3d, "ds_swizzle_b32", Run::Swizzle),
    row(0x3e, "ds_permute_b32", Run::Push),
    row(0x3f, "ds_bpermute_b32", Run::Pull),
    row(0x40, "ds_add_u64", Run::One(wide(|old, data, _| old.wrapping_add(data)))),
    row(0x4d, "ds_write_b64", Run::One(store(8))),
    row(0x4e, "ds_write2_b64", Run::Two(store(8), 8)),
    row(0x4f, "ds_write2st64_b64", Run::Two(store(8), 512)),
    row(0x54, "ds_write_b8_d16_hi", Run::One(Access::Store { bytes: 1, high: true })),
    row(0x55, "ds_write_b16_d16_hi", Run::One(Access::Store { bytes: 2, high: true })),
    row(0x56, "ds_read_u8_d16", Run::One(half(1, false))),
    row(0x57, "ds_read_u8_d16_hi", Run::One(half(1, true))),
    row(0x5a, "ds_read_u16_d16", Run::One(half(2, false))),
    row(0x5b, "ds_read_u16_d16_hi", Run::One(half(2, true))),
    row(0x5c, "ds_add_f64", Run::One(wide(access::add_f64))),
    row(0x76, "ds_read_b64", Run::One(load(8))),
    row(0x77, "ds_read2_b64", Run::Two(load(8), 8)),
    row(0x78, "ds_read2st64_b64", Run::Two(load(8), 512)),
    row(0xde, "ds_write_b96", Run::One(store(12))),
    row(0xdf, "ds_write_b128", Run::One(store(16))),
    row(0xfe, "ds_read_b96", Run::One(load(12))),
    row(0xff, "ds_read_b128", Run::One(load(16))),
];

#[derive(Clone)]
pub struct Local {
    row: &'static Row,
    address: usize,
    data: [usize; 2],
    to: usize,
    offsets: [usize; 2],
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Local {
    pub fn decode(first: u32, second: u32) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code == first >> 17 & 0xff)?;
        if first >> 16 & 1 == 1 {
            return None;
        }
        // One bit says that all data is in accumulation registers.
        let file = if first >> 25 & 1 == 1 { 256 } else { 0 };
        let byte = |shift: u32| (second >> shift & 0xff) as usize;
        Some(Self {
            row,
            address: byte(0),
            data: [byte(8) + file, byte(16) + file],
            to: byte(24) + file,
            offsets: [(first & 0xff) as usize, (first >> 8 & 0xff) as usize],
        })
    }

    fn offset(&self) -> usize {
        self.offsets[0] | self.offsets[1] << 8
    }

    pub fn execute(&self, wave: &mut Wave, around: &mut Around<'_>) -> Result<(), Fault> {
        let exec = wave.exec();
        match self.row.run {
            Run::One(access) | Run::Return(access) => {
                let reads = !access.writes() || matches!(self.row.run, Run::Return(_));
                for lane in lanes(exec) {
                    let at = wave.vector(self.address, lane) as usize + self.offset();
                    let memory = inside(around.local, at, access.bytes())?;
                    if matches!(access, Access::Atomic { compares: true, .. }) {
                        // DS names the two data registers apart; nothing else does.
                        let [expected, new] = self.data.map(|register| wave.vector(register, lane));
                        let memory = memory.cast::<u32>();
                        let old = unsafe { memory.read_unaligned() };
                        if old == expected {
                            unsafe { memory.write_unaligned(new) };
                        }
                        wave.set_vector(self.to, lane, old);
                        continue;
                    }
                    unsafe { access.run(memory, wave, self.data[0], reads.then_some(self.to), lane) };
                }
            }
            Run::Two(access, unit) => {
                for lane in lanes(exec) {
                    let base = wave.vector(self.address, lane) as usize;
                    let [first, second] = self.offsets.map(|offset| base + offset * unit);
                    let [first, second] = [
                        inside(around.local, first, access.bytes())?,
                        inside(around.local, second, access.bytes())?,
                    ];
                    let [a, b] = self.data;
                    unsafe {
                        access.run(first, wave, a, Some(self.to), lane);
                        access.run(second, wave, b, Some(self.to + access.words()), lane);
                    }
                }
            }
            Run::Pull => {
                let data: Vec<u32> = (0..LANES).map(|lane| wave.vector(self.data[0], lane)).collect();
                for lane in lanes(exec) {
                    let from = (wave.vector(self.address, lane) as usize + self.offset()) / 4 % LANES;
                    // A lane that does not run gives 0.
                    let value = if exec >> from & 1 == 1 { data[from] } else { 0 };
                    wave.set_vector(self.to, lane, value);
                }
            }
            Run::Push => {
                let mut data = [0; LANES];
                for lane in lanes(exec) {
                    let to = (wave.vector(self.address, lane) as usize + self.offset()) / 4 % LANES;
                    data[to] = wave.vector(self.data[0], lane);
                }
                for lane in lanes(exec) {
                    wave.set_vector(self.to, lane, data[lane]);
                }
            }
            Run::Swizzle => {
                let data: Vec<u32> = (0..LANES).map(|lane| wave.vector(self.address, lane)).collect();
                let pattern = self.offset();
                for lane in lanes(exec) {
                    let from = if pattern & 0x8000 != 0 {
                        lane & !3 | pattern >> (lane % 4 * 2) & 3
                    } else {
                        let [and, or, xor] = [pattern, pattern >> 5, pattern >> 10].map(|mask| mask & 31);
                        lane & 32 | ((lane & and) | or) ^ xor
                    };
                    let value = if exec >> from & 1 == 1 { data[from] } else { 0 };
                    wave.set_vector(self.to, lane, value);
                }
            }
            Run::Nothing => {}
        }
        Ok(())
    }

    pub fn text(&self) -> String {
        let name = self.row.name;
        let register = |register: usize, words: usize| vector_text(register as u32, words);
        let address = register(self.address, 1);
        let data = |access: Access| {
            if let Access::Atomic { compares: true, .. } = access {
                format!("{}, {}", register(self.data[0], 1), register(self.data[1], 1))
            } else {
                register(self.data[0], access.words())
            }
        };
        let (operands, two) = match self.row.run {
            Run::One(access) if access.writes() => (format!("{address}, {}", data(access)), false),
            Run::One(access) => (format!("{}, {address}", register(self.to, access.words())), false),
            Run::Return(access) => (format!("{}, {address}, {}", register(self.to, 1), data(access)), false),
            Run::Two(access, _) if access.writes() => {
                let [a, b] = self.data.map(|first| register(first, access.words()));
                (format!("{address}, {a}, {b}"), true)
            }
            Run::Two(access, _) => (format!("{}, {address}", register(self.to, 2 * access.words())), true),
            Run::Pull | Run::Push => {
                (format!("{}, {address}, {}", register(self.to, 1), register(self.data[0], 1)), false)
            }
            Run::Swizzle => {
                return format!("{name} {}, {address} offset:{}", register(self.to, 1), self.offset());
            }
            Run::Nothing => return name.to_string(),
        };
        let offset = match (two, self.offsets) {
            (true, [0, 0]) => String::new(),
            (true, [a, 0]) => format!(" offset0:{a}"),
            (true, [0, b]) => format!(" offset1:{b}"),
            (true, [a, b]) => format!(" offset0:{a} offset1:{b}"),
            (false, [0, 0]) => String::new(),
            (false, _) => format!(" offset:{}", self.offset()),
        };
        format!("{name} {operands}{offset}")
    }
}

/// A place in local memory.
pub fn inside(local: &mut [u8], at: usize, bytes: usize) -> Result<*mut u8, Fault> {
    let has = local.len();
    match local.get_mut(at..at.saturating_add(bytes)) {
        Some(place) => Ok(place.as_mut_ptr()),
        None => Err(Fault::Local { offset: at as u64, bytes, has }),
    }
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}
