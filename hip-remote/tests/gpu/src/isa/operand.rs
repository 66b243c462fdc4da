//! What an instruction reads: registers, constants that its code names, and a literal after it.

use crate::wave::Wave;

/// How an operand's bits are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
}

impl Type {
    pub fn words(self) -> usize {
        if matches!(self, Type::B64 | Type::F64) { 2 } else { 1 }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32 | Type::F64)
    }

    pub fn sign(self) -> u64 {
        match self {
            Type::B16 | Type::F16 => 1 << 15,
            Type::B32 | Type::F32 => 1 << 31,
            Type::B64 | Type::F64 => 1 << 63,
        }
    }
}

/// A source's nine bits, and the literal where they ask for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub code: u16,
    pub literal: u32,
}

pub const LITERAL: u16 = 255;
const VECTOR: u16 = 256;

/// The upper words of the addresses by which flat instructions reach local and private memory. No pointer of a
/// process has them.
pub const SHARED_APERTURE: u32 = 0x0002_0000;
pub const PRIVATE_APERTURE: u32 = 0x0003_0000;

/// The constants 240 to 248 by the type that reads them (Vega ISA, table of scalar operands).
const FLOATS: [(f64, u16, &str); 9] = [
    (0.5, 0x3800, "0.5"),
    (-0.5, 0xb800, "-0.5"),
    (1.0, 0x3c00, "1.0"),
    (-1.0, 0xbc00, "-1.0"),
    (2.0, 0x4000, "2.0"),
    (-2.0, 0xc000, "-2.0"),
    (4.0, 0x4400, "4.0"),
    (-4.0, 0xc400, "-4.0"),
    (0.159_154_943_091_895_32, 0x3118, "0.15915494"),
];

impl Source {
    pub fn vector(register: u32) -> Self {
        Self { code: VECTOR + (register & 0x1ff) as u16, literal: 0 }
    }

    pub fn of(code: u32, literal: u32) -> Self {
        Self { code: (code & 0x1ff) as u16, literal }
    }

    /// The vector register, where the source is one.
    pub fn register(self) -> Option<usize> {
        self.code.checked_sub(VECTOR).map(usize::from)
    }

    /// Whether the code means something that [`Self::scalar`] knows.
    pub fn is_known(self) -> bool {
        matches!(self.code, 0..=208 | 235..=238 | 240..=248 | 251..=253 | LITERAL | VECTOR..)
    }

    /// The value that all lanes have, of a source that is no vector register.
    pub fn scalar(self, wave: &Wave, kind: Type) -> u64 {
        match self.code {
            0..=127 => wave.scalar(usize::from(self.code), kind.words()),
            128..=192 => u64::from(self.code) - 128,
            193..=208 => (192 - i64::from(self.code)) as u64,
            235 => u64::from(SHARED_APERTURE) << 32,
            237 => u64::from(PRIVATE_APERTURE) << 32,
            236 | 238 => 0xffff_ffff,
            240..=248 => {
                let (value, half, _) = FLOATS[usize::from(self.code - 240)];
                match kind {
                    Type::B16 | Type::F16 => u64::from(half),
                    Type::B32 | Type::F32 => u64::from((value as f32).to_bits()),
                    Type::B64 | Type::F64 => value.to_bits(),
                }
            }
            251 => u64::from(wave.vcc() == 0),
            252 => u64::from(wave.exec() == 0),
            253 => u64::from(wave.scc),
            // A literal is the upper half of a double, and the lower half of a whole number.
            _ if kind == Type::F64 => u64::from(self.literal) << 32,
            _ => u64::from(self.literal),
        }
    }

    pub fn text(self, kind: Type) -> String {
        match self.code {
            0..=127 => scalar_text(u32::from(self.code), kind.words()),
            128..=192 => format!("{}", self.code - 128),
            193..=208 => format!("{}", 192 - i32::from(self.code)),
            235 => "src_shared_base".into(),
            236 => "src_shared_limit".into(),
            237 => "src_private_base".into(),
            238 => "src_private_limit".into(),
            248 if kind.words() == 2 => "0.15915494309189532".into(),
            240..=248 => FLOATS[usize::from(self.code - 240)].2.into(),
            251 => "src_vccz".into(),
            252 => "src_execz".into(),
            253 => "src_scc".into(),
            LITERAL => format!("{:#x}", self.literal),
            VECTOR.. => vector_text(u32::from(self.code - VECTOR), kind.words()),
            code => format!("source {code}"),
        }
    }
}

/// A scalar register's name, or that of several from it on.
pub fn scalar_text(code: u32, words: usize) -> String {
    let pair = |name: &str| {
        if words == 2 { name.to_string() } else { format!("{name}_{}", ["lo", "hi"][code as usize % 2]) }
    };
    match code {
        102 | 103 => pair("flat_scratch"),
        104 | 105 => pair("xnack_mask"),
        106 | 107 => pair("vcc"),
        124 => "m0".into(),
        126 | 127 => pair("exec"),
        108..=123 => range("ttmp", code - 108, words),
        _ => range("s", code, words),
    }
}

pub fn vector_text(register: u32, words: usize) -> String {
    if register >= 256 { range("a", register - 256, words) } else { range("v", register, words) }
}

fn range(prefix: &str, first: u32, words: usize) -> String {
    match words {
        1 => format!("{prefix}{first}"),
        _ => format!("{prefix}[{first}:{}]", first as usize + words - 1),
    }
}
