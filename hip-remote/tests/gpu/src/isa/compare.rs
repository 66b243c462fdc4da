//! Comparisons of lanes (VOPC): their codes are made of a type and a condition.

use super::half;
use super::operand::Type;

const FLOAT: [&str; 16] =
    ["f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru"];
const WHOLE: [&str; 8] = ["f", "lt", "eq", "le", "gt", "ne", "ge", "t"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Class(Type),
    Float(Type),
    Signed(Type),
    Unsigned(Type),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    kind: Kind,
    condition: usize,
    /// Whether the lanes that run are the outcome as well.
    pub narrows: bool,
}

impl Comparison {
    pub fn decode(code: u32) -> Option<Self> {
        let code = code as usize;
        let class = [Type::F32, Type::F64, Type::F16];
        let (kind, condition, narrows) = match code {
            0x10..=0x15 => (Kind::Class(class[(code - 0x10) / 2]), 0, code & 1 == 1),
            0x20..=0x3f => (Kind::Float(Type::F16), code & 15, code & 16 != 0),
            0x40..=0x5f => (Kind::Float(Type::F32), code & 15, code & 16 != 0),
            0x60..=0x7f => (Kind::Float(Type::F64), code & 15, code & 16 != 0),
            0xa0..=0xff => {
                let kind = [Type::B16, Type::B32, Type::B64][(code - 0xa0) / 32];
                let kind = if code & 8 == 0 { Kind::Signed(kind) } else { Kind::Unsigned(kind) };
                (kind, code & 7, code & 16 != 0)
            }
            _ => return None,
        };
        Some(Self { kind, condition, narrows })
    }

    pub fn types(self) -> [Type; 2] {
        match self.kind {
            Kind::Class(kind) => [kind, Type::B32],
            Kind::Float(kind) | Kind::Signed(kind) | Kind::Unsigned(kind) => [kind; 2],
        }
    }

    pub fn name(self) -> String {
        let prefix = if self.narrows { "v_cmpx" } else { "v_cmp" };
        let bits = self.types()[0].sign().trailing_zeros() + 1;
        match self.kind {
            Kind::Class(_) => format!("{prefix}_class_f{bits}"),
            Kind::Float(_) => format!("{prefix}_{}_f{bits}", FLOAT[self.condition]),
            Kind::Signed(_) => format!("{prefix}_{}_i{bits}", WHOLE[self.condition]),
            Kind::Unsigned(_) => format!("{prefix}_{}_u{bits}", WHOLE[self.condition]),
        }
    }

    pub fn holds(self, a: u64, b: u64) -> bool {
        let order = match self.kind {
            Kind::Class(kind) => return b >> class(kind, a) & 1 == 1,
            Kind::Float(kind) => {
                let order = number(kind, a).partial_cmp(&number(kind, b));
                // A condition's four bits: less, equal, greater, and the one for what cannot be ordered.
                let bit = match order {
                    Some(std::cmp::Ordering::Less) => 1,
                    Some(std::cmp::Ordering::Equal) => 2,
                    Some(std::cmp::Ordering::Greater) => 4,
                    None => 8,
                };
                return self.condition & bit != 0;
            }
            Kind::Signed(kind) => signed(kind, a).cmp(&signed(kind, b)),
            Kind::Unsigned(kind) => (a & mask(kind)).cmp(&(b & mask(kind))),
        };
        let bit = match order {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => 2,
            std::cmp::Ordering::Greater => 4,
        };
        self.condition & bit != 0
    }
}

pub fn number(kind: Type, bits: u64) -> f64 {
    match kind {
        Type::F16 | Type::B16 => f64::from(half::to_f32(bits as u16)),
        Type::F32 | Type::B32 => f64::from(f32::from_bits(bits as u32)),
        Type::F64 | Type::B64 => f64::from_bits(bits),
    }
}

fn mask(kind: Type) -> u64 {
    kind.sign() | (kind.sign() - 1)
}

fn signed(kind: Type, bits: u64) -> i64 {
    match kind {
        Type::B16 | Type::F16 => i64::from(bits as i16),
        Type::B32 | Type::F32 => i64::from(bits as i32),
        Type::B64 | Type::F64 => bits as i64,
    }
}

/// The bit that v_cmp_class has for a value.
fn class(kind: Type, bits: u64) -> u32 {
    let fraction_bits = match kind {
        Type::F16 | Type::B16 => 10,
        Type::F32 | Type::B32 => 23,
        Type::F64 | Type::B64 => 52,
    };
    let negative = bits & kind.sign() != 0;
    let magnitude = bits & (kind.sign() - 1);
    let fraction = magnitude & ((1 << fraction_bits) - 1);
    let exponent = magnitude >> fraction_bits;
    let all = (kind.sign() - 1) >> fraction_bits;
    let side = |negative_bit: u32, positive_bit: u32| if negative { negative_bit } else { positive_bit };
    match (exponent, fraction) {
        (e, 0) if e == all => side(2, 9),
        (e, fraction) if e == all => (fraction >> (fraction_bits - 1)) as u32,
        (0, 0) => side(5, 6),
        (0, _) => side(4, 7),
        _ => side(3, 8),
    }
}

pub fn names() -> impl Iterator<Item = String> {
    (0..0x100).filter_map(Comparison::decode).map(Comparison::name)
}
