//! The instructions of gfx90a: their words, their text as LLVM writes it, and what they do.
//!
//! The encodings are those of AMD's "Instinct MI200" ISA guide. A test compares each row of the tables with llvm-mc.

mod access;
mod buffer;
mod compare;
mod dpp;
mod flat;
mod half;
mod loads_and_stores;
mod local;
mod numbers;
pub mod operand;
mod packed;
mod scalar;
mod scalar_memory;
mod scalar_table;
mod sdwa;
mod vector;
mod vector_table;

use crate::fault::Fault;
use crate::memory::View;
use crate::wave::Wave;

/// What the lanes of a group share, and the memory that they reach.
pub struct Around<'a> {
    pub view: View<'a>,
    pub local: &'a mut [u8],
}

/// What a wave does after an instruction. A branch has set the wave's pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Next,
    Barrier,
    End,
}

#[derive(Clone, Debug)]
pub enum Body {
    Scalar(scalar::Scalar),
    ScalarMemory(scalar_memory::ScalarMemory),
    Vector(vector::Vector),
    Packed(packed::Packed),
    Local(local::Local),
    Flat(flat::Flat),
    Buffer(buffer::Buffer),
}

#[derive(Clone, Debug)]
pub struct Instruction {
    /// In bytes.
    pub size: u64,
    pub body: Body,
}

impl Instruction {
    /// The instruction at the beginning of the words, where the tables have it.
    pub fn decode(words: &[u32]) -> Option<Self> {
        let first = *words.first()?;
        let second = words.get(1).copied().unwrap_or(0);
        let (long, body) = match first >> 26 {
            0b11_0000 => (true, Body::ScalarMemory(scalar_memory::ScalarMemory::decode(first, second)?)),
            0b11_0100 if first >> 23 == 0b1_1010_0111 => {
                (true, Body::Packed(packed::Packed::decode(first, second)?))
            }
            0b11_0100 => (true, Body::Vector(vector::Vector::decode_long(first, second)?)),
            0b11_0110 => (true, Body::Local(local::Local::decode(first, second)?)),
            0b11_0111 => (true, Body::Flat(flat::Flat::decode(first, second)?)),
            0b11_1000 => (true, Body::Buffer(buffer::Buffer::decode(first, second)?)),
            0b10_0000..=0b10_1111 => {
                let (scalar, long) = scalar::Scalar::decode(first, second)?;
                (long, Body::Scalar(scalar))
            }
            0b00_0000..=0b01_1111 => {
                let (vector, long) = vector::Vector::decode(first, second)?;
                (long, Body::Vector(vector))
            }
            _ => return None,
        };
        if long && words.len() < 2 {
            return None;
        }
        Some(Self { size: if long { 8 } else { 4 }, body })
    }

    pub fn text(&self) -> String {
        match &self.body {
            Body::Scalar(body) => body.text(),
            Body::ScalarMemory(body) => body.text(),
            Body::Vector(body) => body.text(),
            Body::Packed(body) => body.text(),
            Body::Local(body) => body.text(),
            Body::Flat(body) => body.text(),
            Body::Buffer(body) => body.text(),
        }
    }

    pub fn execute(&self, wave: &mut Wave, around: &mut Around<'_>) -> Result<Step, Fault> {
        match &self.body {
            Body::Scalar(body) => return Ok(body.execute(wave)),
            Body::ScalarMemory(body) => body.execute(wave, around)?,
            Body::Vector(body) => body.execute(wave)?,
            Body::Packed(body) => body.execute(wave)?,
            Body::Local(body) => body.execute(wave, around)?,
            Body::Flat(body) => body.execute(wave, around)?,
            Body::Buffer(body) => body.execute(wave, around)?,
        }
        Ok(Step::Next)
    }
}

/// The names of all instructions that the tables have, without the suffix of an encoding.
pub fn names() -> Vec<String> {
    let fixed = scalar_table::names()
        .chain(scalar_memory::names())
        .chain(vector_table::names())
        .chain(packed::names())
        .chain(local::names());
    fixed.map(str::to_string).chain(buffer::names()).chain(compare::names()).chain(flat::names()).collect()
}
