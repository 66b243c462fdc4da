//! The loads and stores that FLAT, GLOBAL and MUBUF number and name alike.

use super::access::{Access, load, load_signed, store};

pub struct Row {
    pub code: u32,
    /// Behind `flat_`, `global_` or `buffer_`.
    pub name: &'static str,
    pub access: Access,
}

pub const fn row(code: u32, name: &'static str, access: Access) -> Row {
    Row { code, name, access }
}

const fn half(bytes: usize, signed: bool, high: bool) -> Access {
    Access::LoadHalf { bytes, signed, high }
}

pub static LOADS_AND_STORES: &[Row] = &[
    row(0x10, "load_ubyte", load(1)),
    row(0x11, "load_sbyte", load_signed(1)),
    row(0x12, "load_ushort", load(2)),
    row(0x13, "load_sshort", load_signed(2)),
    row(0x14, "load_dword", load(4)),
    row(0x15, "load_dwordx2", load(8)),
    row(0x16, "load_dwordx3", load(12)),
    row(0x17, "load_dwordx4", load(16)),
    row(0x18, "store_byte", store(1)),
    row(0x19, "store_byte_d16_hi", Access::Store { bytes: 1, high: true }),
    row(0x1a, "store_short", store(2)),
    row(0x1b, "store_short_d16_hi", Access::Store { bytes: 2, high: true }),
    row(0x1c, "store_dword", store(4)),
    row(0x1d, "store_dwordx2", store(8)),
    row(0x1e, "store_dwordx3", store(12)),
    row(0x1f, "store_dwordx4", store(16)),
    row(0x20, "load_ubyte_d16", half(1, false, false)),
    row(0x21, "load_ubyte_d16_hi", half(1, false, true)),
    row(0x22, "load_sbyte_d16", half(1, true, false)),
    row(0x23, "load_sbyte_d16_hi", half(1, true, true)),
    row(0x24, "load_short_d16", half(2, false, false)),
    row(0x25, "load_short_d16_hi", half(2, false, true)),
];
