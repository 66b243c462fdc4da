//! Instructions on two numbers of each lane at once, and on accumulation registers (VOP3P).

use super::half;
use super::operand::{Source, Type, vector_text};
use crate::fault::Fault;
use crate::wave::{Wave, lanes};

#[derive(Clone, Copy)]
enum Run {
    /// Pairs of words.
    Floats(fn(f32, f32, f32) -> f32),
    /// Takes a word of each source.
    Move,
    /// Pairs of halves as floats.
    Halves(fn(f32, f32, f32) -> f32),
    /// Pairs of halves as whole numbers.
    Shorts(fn(u16, u16, u16) -> u16),
    ReadAccumulator,
    WriteAccumulator,
}

struct Row {
    code: u32,
    name: &'static str,
    sources: usize,
    run: Run,
}

const fn row(code: u32, name: &'static str, sources: usize, run: Run) -> Row {
    Row { code, name, sources, run }
}

static ROWS: &[Row] = &[
    row(0x00, "v_pk_mad_i16", 3, Run::Shorts(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
    row(0x01, "v_pk_mul_lo_u16", 2, Run::Shorts(|a, b, _| a.wrapping_mul(b))),
    row(0x02, "v_pk_add_i16", 2, Run::Shorts(|a, b, _| a.wrapping_add(b))),
    row(0x03, "v_pk_sub_i16", 2, Run::Shorts(|a, b, _| a.wrapping_sub(b))),
    row(0x04, "v_pk_lshlrev_b16", 2, Run::Shorts(|a, b, _| b << (a & 15))),
    row(0x05, "v_pk_lshrrev_b16", 2, Run::Shorts(|a, b, _| b >> (a & 15))),
    row(0x06, "v_pk_ashrrev_i16", 2, Run::Shorts(|a, b, _| (b as i16 >> (a & 15)) as u16)),
    row(0x07, "v_pk_max_i16", 2, Run::Shorts(|a, b, _| (a as i16).max(b as i16) as u16)),
    row(0x08, "v_pk_min_i16", 2, Run::Shorts(|a, b, _| (a as i16).min(b as i16) as u16)),
    row(0x09, "v_pk_mad_u16", 3, Run::Shorts(|a, b, c| a.wrapping_mul(b).wrapping_add(c))),
    row(0x0a, "v_pk_add_u16", 2, Run::Shorts(|a, b, _| a.wrapping_add(b))),
    row(0x0b, "v_pk_sub_u16", 2, Run::Shorts(|a, b, _| a.wrapping_sub(b))),
    row(0x0c, "v_pk_max_u16", 2, Run::Shorts(|a, b, _| a.max(b))),
    row(0x0d, "v_pk_min_u16", 2, Run::Shorts(|a, b, _| a.min(b))),
    row(0x0e, "v_pk_fma_f16", 3, Run::Halves(f32::mul_add)),
    row(0x0f, "v_pk_add_f16", 2, Run::Halves(|a, b, _| a + b)),
    row(0x10, "v_pk_mul_f16", 2, Run::Halves(|a, b, _| a * b)),
    row(0x11, "v_pk_min_f16", 2, Run::Halves(|a, b, _| a.min(b))),
    row(0x12, "v_pk_max_f16", 2, Run::Halves(|a, b, _| a.max(b))),
    row(0x30, "v_pk_fma_f32", 3, Run::Floats(f32::mul_add)),
    row(0x31, "v_pk_mul_f32", 2, Run::Floats(|a, b, _| a * b)),
    row(0x32, "v_pk_add_f32", 2, Run::Floats(|a, b, _| a + b)),
    row(0x33, "v_pk_mov_b32", 2, Run::Move),
    row(0x58, "v_accvgpr_read_b32", 1, Run::ReadAccumulator),
    row(0x59, "v_accvgpr_write_b32", 1, Run::WriteAccumulator),
];

#[derive(Clone)]
pub struct Packed {
    row: &'static Row,
    to: usize,
    sources: [Source; 3],
    /// A bit for each source: whether the low result takes its upper part.
    low: u32,
    /// A bit for each source: whether the high result takes its upper part.
    high: u32,
    negative_low: u32,
    negative_high: u32,
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Packed {
    pub fn decode(first: u32, second: u32) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code == first >> 16 & 0x7f)?;
        let sources = [second, second >> 9, second >> 18].map(|code| Source::of(code & 0x1ff, 0));
        let known = sources[..row.sources].iter().all(|source| source.is_known() && source.code != 255);
        if !known || first >> 15 & 1 == 1 {
            return None;
        }
        Some(Self {
            row,
            to: (first & 0xff) as usize,
            sources,
            low: first >> 11 & 7,
            high: second >> 27 & 3 | (first >> 14 & 1) << 2,
            negative_low: second >> 29,
            negative_high: first >> 8 & 7,
        })
    }

    pub fn execute(&self, wave: &mut Wave) -> Result<(), Fault> {
        for lane in lanes(wave.exec()) {
            match self.row.run {
                Run::ReadAccumulator => {
                    let Some(from) = self.sources[0].register() else { continue };
                    let value = wave.vector(from | 256, lane);
                    wave.set_vector(self.to, lane, value);
                }
                Run::WriteAccumulator => {
                    let value = self.whole(wave, 0, lane, Type::B32) as u32;
                    wave.set_vector(self.to + 256, lane, value);
                }
                Run::Floats(run) => {
                    let [low, high] = [(self.low, self.negative_low), (self.high, self.negative_high)].map(
                        |(upper, negative)| {
                            let [a, b, c] = [0, 1, 2].map(|i| {
                                let bits = self.word(wave, i, lane, upper >> i & 1 == 1);
                                let value = f32::from_bits(bits);
                                if negative >> i & 1 == 1 { -value } else { value }
                            });
                            run(a, b, c).to_bits()
                        },
                    );
                    wave.set_vector(self.to, lane, low);
                    wave.set_vector(self.to + 1, lane, high);
                }
                Run::Move => {
                    let low = self.word(wave, 0, lane, self.low & 1 == 1);
                    let high = self.word(wave, 1, lane, self.low >> 1 & 1 == 1);
                    wave.set_vector(self.to, lane, low);
                    wave.set_vector(self.to + 1, lane, high);
                }
                Run::Halves(_) | Run::Shorts(_) => {
                    let part = |upper: u32, negative: u32| {
                        let sources = [0, 1, 2].map(|i| {
                            let word = self.whole(wave, i, lane, self.half_type()) as u32;
                            let half = (if upper >> i & 1 == 1 { word >> 16 } else { word }) as u16;
                            if negative >> i & 1 == 1 { half ^ 0x8000 } else { half }
                        });
                        match self.row.run {
                            Run::Shorts(run) => run(sources[0], sources[1], sources[2]),
                            Run::Halves(run) => {
                                let [a, b, c] = sources.map(half::to_f32);
                                half::from_f32(run(a, b, c))
                            }
                            _ => 0,
                        }
                    };
                    let [low, high] =
                        [part(self.low, self.negative_low), part(self.high, self.negative_high)];
                    wave.set_vector(self.to, lane, u32::from(low) | u32::from(high) << 16);
                }
            }
        }
        Ok(())
    }

    fn half_type(&self) -> Type {
        // A constant of a float instruction is a half float, and has nothing in its upper half.
        if matches!(self.row.run, Run::Halves(_)) { Type::F16 } else { Type::B32 }
    }

    fn whole(&self, wave: &Wave, i: usize, lane: usize, kind: Type) -> u64 {
        match self.sources[i].register() {
            Some(_) if i >= self.row.sources => 0,
            Some(register) => wave.vector_words(register, kind.words(), lane),
            None => self.sources[i].scalar(wave, kind),
        }
    }

    /// The lower or the upper word of a source of two. Constants have one word, which is both.
    fn word(&self, wave: &Wave, i: usize, lane: usize, upper: bool) -> u32 {
        if i >= self.row.sources {
            return 0;
        }
        let register = self.sources[i].code < 128 || self.sources[i].register().is_some();
        if register {
            (self.whole(wave, i, lane, Type::B64) >> if upper { 32 } else { 0 }) as u32
        } else {
            self.whole(wave, i, lane, Type::F32) as u32
        }
    }

    pub fn text(&self) -> String {
        let kind = match self.row.run {
            Run::Floats(_) | Run::Move => Type::B64,
            Run::Halves(_) => Type::F16,
            _ => Type::B32,
        };
        let to = self.to as u32 + if matches!(self.row.run, Run::WriteAccumulator) { 256 } else { 0 };
        let mut operands = vec![vector_text(to, kind.words())];
        let reads = matches!(self.row.run, Run::ReadAccumulator);
        operands.extend((0..self.row.sources).map(|i| match self.sources[i].register() {
            Some(register) if reads => vector_text(register as u32 | 256, 1),
            _ => self.sources[i].text(kind),
        }));
        let mut text = format!("{} {}", self.row.name, operands.join(", "));
        if matches!(self.row.run, Run::ReadAccumulator | Run::WriteAccumulator) {
            return text;
        }
        let all = (1 << self.row.sources) - 1;
        for (name, bits, usual) in [
            ("op_sel", self.low, 0),
            ("op_sel_hi", self.high & all, all),
            ("neg_lo", self.negative_low & all, 0),
            ("neg_hi", self.negative_high & all, 0),
        ] {
            if bits & all != usual {
                let bits: Vec<_> = (0..self.row.sources).map(|i| (bits >> i & 1).to_string()).collect();
                text += &format!(" {name}:[{}]", bits.join(","));
            }
        }
        text
    }
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}
