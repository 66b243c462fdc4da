//! What each scalar instruction does (SOP2, SOP1, SOPC, SOPK, SOPP).

use super::operand::Type;
use crate::wave::Wave;

use Type::{B32, B64};

#[derive(Clone, Copy)]
pub enum Run {
    /// The last argument is the condition code, before and after.
    Two(fn(u64, u64, &mut bool) -> u64),
    One(fn(u64, &mut bool) -> u64),
    /// A new value of the destination, where there is one, by its old value and a constant.
    Constant(fn(u32, i32, &mut bool) -> Option<u32>),
    Compare(fn(u64, u64) -> bool),
    /// The lanes that run, by those that ran and the source; the destination keeps those that ran.
    SaveExec(fn(u64, u64) -> u64),
    /// The lanes that run, which the destination gets too.
    WriteExec(fn(u64, u64) -> u64),
    /// Sets a bit of the destination.
    Bit(bool),
    /// Reads where the apertures of local and private memory are.
    GetRegister,
    GetPc,
    SetPc,
    SwapPc,
    Call,
    Nothing,
    End,
    Barrier,
    Branch(fn(&Wave) -> bool),
}

pub struct Row {
    pub code: u32,
    pub name: &'static str,
    /// The destination's type, and the sources'.
    pub types: &'static [Type],
    pub run: Run,
}

const fn row(code: u32, name: &'static str, types: &'static [Type], run: Run) -> Row {
    Row { code, name, types, run }
}

fn nonzero(value: u64, scc: &mut bool) -> u64 {
    *scc = value != 0;
    value
}

/// A result of 32 bits that sets the condition code where it is not zero.
fn nonzero32(value: u64, scc: &mut bool) -> u64 {
    nonzero(value & 0xffff_ffff, scc)
}

fn int(value: u64) -> i32 {
    value as i32
}

fn overflowing(result: (i32, bool), scc: &mut bool) -> u64 {
    *scc = result.1;
    u64::from(result.0 as u32)
}

fn either(first: bool, a: u64, b: u64, scc: &mut bool) -> u64 {
    *scc = first;
    if first { a } else { b }
}

/// The hardware register whose upper half is the aperture of local memory and its lower half that of private memory, each
/// as the upper sixteen bits of an address.
pub const SH_MEM_BASES: i16 = 15;

/// A field's first bit and its width, from the second source of s_bfe.
fn field(b: u64, bits: u64) -> (u64, u64) {
    (b & (bits - 1), (b >> 16) & 0x7f)
}

pub fn extract(value: u64, from: u64, width: u64) -> u64 {
    let width = width.min(64);
    if width == 0 {
        return 0;
    }
    (value >> from) & (u64::MAX >> (64 - width))
}

fn extend(value: u64, width: u64) -> i64 {
    if width == 0 || width >= 64 { value as i64 } else { (value << (64 - width)) as i64 >> (64 - width) }
}

fn shifted_sum(a: u64, shift: u32, b: u64, scc: &mut bool) -> u64 {
    let sum = ((a & 0xffff_ffff) << shift) + (b & 0xffff_ffff);
    *scc = sum > 0xffff_ffff;
    sum & 0xffff_ffff
}

const W: &[Type] = &[B32, B32, B32];
const D: &[Type] = &[B64, B64, B64];
const SHIFT: &[Type] = &[B64, B64, B32];

pub static SOP2: &[Row] = &[
    row(0x00, "s_add_u32", W, Run::Two(|a, b, c| shifted_sum(a, 0, b, c))),
    row(
        0x01,
        "s_sub_u32",
        W,
        Run::Two(|a, b, c| {
            *c = b > a;
            a.wrapping_sub(b) & 0xffff_ffff
        }),
    ),
    row(0x02, "s_add_i32", W, Run::Two(|a, b, c| overflowing(int(a).overflowing_add(int(b)), c))),
    row(0x03, "s_sub_i32", W, Run::Two(|a, b, c| overflowing(int(a).overflowing_sub(int(b)), c))),
    row(
        0x04,
        "s_addc_u32",
        W,
        Run::Two(|a, b, c| {
            let sum = (a & 0xffff_ffff) + (b & 0xffff_ffff) + u64::from(*c);
            *c = sum > 0xffff_ffff;
            sum & 0xffff_ffff
        }),
    ),
    row(
        0x05,
        "s_subb_u32",
        W,
        Run::Two(|a, b, c| {
            let (a, b) = (a & 0xffff_ffff, (b & 0xffff_ffff) + u64::from(*c));
            *c = b > a;
            a.wrapping_sub(b) & 0xffff_ffff
        }),
    ),
    row(0x06, "s_min_i32", W, Run::Two(|a, b, c| either(int(a) < int(b), a, b, c))),
    row(0x07, "s_min_u32", W, Run::Two(|a, b, c| either((a as u32) < b as u32, a, b, c))),
    row(0x08, "s_max_i32", W, Run::Two(|a, b, c| either(int(a) > int(b), a, b, c))),
    row(0x09, "s_max_u32", W, Run::Two(|a, b, c| either(a as u32 > b as u32, a, b, c))),
    row(0x0a, "s_cselect_b32", W, Run::Two(|a, b, c| if *c { a } else { b })),
    row(0x0b, "s_cselect_b64", D, Run::Two(|a, b, c| if *c { a } else { b })),
    row(0x0c, "s_and_b32", W, Run::Two(|a, b, c| nonzero32(a & b, c))),
    row(0x0d, "s_and_b64", D, Run::Two(|a, b, c| nonzero(a & b, c))),
    row(0x0e, "s_or_b32", W, Run::Two(|a, b, c| nonzero32(a | b, c))),
    row(0x0f, "s_or_b64", D, Run::Two(|a, b, c| nonzero(a | b, c))),
    row(0x10, "s_xor_b32", W, Run::Two(|a, b, c| nonzero32(a ^ b, c))),
    row(0x11, "s_xor_b64", D, Run::Two(|a, b, c| nonzero(a ^ b, c))),
    row(0x12, "s_andn2_b32", W, Run::Two(|a, b, c| nonzero32(a & !b, c))),
    row(0x13, "s_andn2_b64", D, Run::Two(|a, b, c| nonzero(a & !b, c))),
    row(0x14, "s_orn2_b32", W, Run::Two(|a, b, c| nonzero32(a | !b, c))),
    row(0x15, "s_orn2_b64", D, Run::Two(|a, b, c| nonzero(a | !b, c))),
    row(0x16, "s_nand_b32", W, Run::Two(|a, b, c| nonzero32(!(a & b), c))),
    row(0x17, "s_nand_b64", D, Run::Two(|a, b, c| nonzero(!(a & b), c))),
    row(0x18, "s_nor_b32", W, Run::Two(|a, b, c| nonzero32(!(a | b), c))),
    row(0x19, "s_nor_b64", D, Run::Two(|a, b, c| nonzero(!(a | b), c))),
    row(0x1a, "s_xnor_b32", W, Run::Two(|a, b, c| nonzero32(!(a ^ b), c))),
    row(0x1b, "s_xnor_b64", D, Run::Two(|a, b, c| nonzero(!(a ^ b), c))),
    row(0x1c, "s_lshl_b32", W, Run::Two(|a, b, c| nonzero32(a << (b & 31), c))),
    row(0x1d, "s_lshl_b64", SHIFT, Run::Two(|a, b, c| nonzero(a << (b & 63), c))),
    row(0x1e, "s_lshr_b32", W, Run::Two(|a, b, c| nonzero32((a & 0xffff_ffff) >> (b & 31), c))),
    row(0x1f, "s_lshr_b64", SHIFT, Run::Two(|a, b, c| nonzero(a >> (b & 63), c))),
    row(0x20, "s_ashr_i32", W, Run::Two(|a, b, c| nonzero32((int(a) >> (b & 31)) as u64, c))),
    row(0x21, "s_ashr_i64", SHIFT, Run::Two(|a, b, c| nonzero((a as i64 >> (b & 63)) as u64, c))),
    row(0x22, "s_bfm_b32", W, Run::Two(|a, b, _| ((1u64 << (a & 31)) - 1) << (b & 31) & 0xffff_ffff)),
    row(0x23, "s_bfm_b64", &[B64, B32, B32], Run::Two(|a, b, _| ((1u64 << (a & 63)) - 1) << (b & 63))),
    row(0x24, "s_mul_i32", W, Run::Two(|a, b, _| u64::from((a as u32).wrapping_mul(b as u32)))),
    row(
        0x25,
        "s_bfe_u32",
        W,
        Run::Two(|a, b, c| {
            let (from, width) = field(b, 32);
            nonzero32(extract(a & 0xffff_ffff, from, width), c)
        }),
    ),
    row(
        0x26,
        "s_bfe_i32",
        W,
        Run::Two(|a, b, c| {
            let (from, width) = field(b, 32);
            let width = width.min(32 - from);
            nonzero32(extend(extract(a & 0xffff_ffff, from, width), width) as u64, c)
        }),
    ),
    row(
        0x27,
        "s_bfe_u64",
        SHIFT,
        Run::Two(|a, b, c| {
            let (from, width) = field(b, 64);
            nonzero(extract(a, from, width), c)
        }),
    ),
    row(
        0x28,
        "s_bfe_i64",
        SHIFT,
        Run::Two(|a, b, c| {
            let (from, width) = field(b, 64);
            let width = width.min(64 - from);
            nonzero(extend(extract(a, from, width), width) as u64, c)
        }),
    ),
    row(
        0x2a,
        "s_absdiff_i32",
        W,
        Run::Two(|a, b, c| nonzero32(u64::from(int(a).wrapping_sub(int(b)).unsigned_abs()), c)),
    ),
    row(0x2c, "s_mul_hi_u32", W, Run::Two(|a, b, _| ((a & 0xffff_ffff) * (b & 0xffff_ffff)) >> 32)),
    row(0x2d, "s_mul_hi_i32", W, Run::Two(|a, b, _| ((i64::from(int(a)) * i64::from(int(b))) >> 32) as u64)),
    row(0x2e, "s_lshl1_add_u32", W, Run::Two(|a, b, c| shifted_sum(a, 1, b, c))),
    row(0x2f, "s_lshl2_add_u32", W, Run::Two(|a, b, c| shifted_sum(a, 2, b, c))),
    row(0x30, "s_lshl3_add_u32", W, Run::Two(|a, b, c| shifted_sum(a, 3, b, c))),
    row(0x31, "s_lshl4_add_u32", W, Run::Two(|a, b, c| shifted_sum(a, 4, b, c))),
    row(0x32, "s_pack_ll_b32_b16", W, Run::Two(|a, b, _| a & 0xffff | (b & 0xffff) << 16)),
    row(0x33, "s_pack_lh_b32_b16", W, Run::Two(|a, b, _| a & 0xffff | b & 0xffff_0000)),
    row(0x34, "s_pack_hh_b32_b16", W, Run::Two(|a, b, _| a >> 16 & 0xffff | b & 0xffff_0000)),
];

fn compare_constant(outcome: bool, scc: &mut bool) -> Option<u32> {
    *scc = outcome;
    None
}

/// The constant is extended by its sign for signed comparisons, and by zeroes for unsigned ones.
fn unsigned(constant: i32) -> u32 {
    constant as u32 & 0xffff
}

pub static SOPK: &[Row] = &[
    row(0x00, "s_movk_i32", &[B32], Run::Constant(|_, k, _| Some(k as u32))),
    row(0x01, "s_cmovk_i32", &[B32], Run::Constant(|_, k, c| c.then_some(k as u32))),
    row(0x02, "s_cmpk_eq_i32", &[B32], Run::Constant(|d, k, c| compare_constant(d as i32 == k, c))),
    row(0x03, "s_cmpk_lg_i32", &[B32], Run::Constant(|d, k, c| compare_constant(d as i32 != k, c))),
    row(0x04, "s_cmpk_gt_i32", &[B32], Run::Constant(|d, k, c| compare_constant(d as i32 > k, c))),
    row(0x05, "s_cmpk_ge_i32", &[B32], Run::Constant(|d, k, c| compare_constant(d as i32 >= k, c))),
    row(0x06, "s_cmpk_lt_i32", &[B32], Run::Constant(|d, k, c| compare_constant((d as i32) < k, c))),
    row(0x07, "s_cmpk_le_i32", &[B32], Run::Constant(|d, k, c| compare_constant(d as i32 <= k, c))),
    row(0x08, "s_cmpk_eq_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d == unsigned(k), c))),
    row(0x09, "s_cmpk_lg_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d != unsigned(k), c))),
    row(0x0a, "s_cmpk_gt_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d > unsigned(k), c))),
    row(0x0b, "s_cmpk_ge_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d >= unsigned(k), c))),
    row(0x0c, "s_cmpk_lt_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d < unsigned(k), c))),
    row(0x0d, "s_cmpk_le_u32", &[B32], Run::Constant(|d, k, c| compare_constant(d <= unsigned(k), c))),
    row(
        0x0e,
        "s_addk_i32",
        &[B32],
        Run::Constant(|d, k, c| Some(overflowing((d as i32).overflowing_add(k), c) as u32)),
    ),
    row(0x0f, "s_mulk_i32", &[B32], Run::Constant(|d, k, _| Some((d as i32).wrapping_mul(k) as u32))),
    row(0x11, "s_getreg_b32", &[B32], Run::GetRegister),
    row(0x15, "s_call_b64", &[B64], Run::Call),
];

const W1: &[Type] = &[B32, B32];
const D1: &[Type] = &[B64, B64];
const WD: &[Type] = &[B32, B64];

/// Counts the bits above the first one that differs from the sign.
fn leading_sign(value: i64, bits: u32) -> u64 {
    let same = if value < 0 { (!value).leading_zeros() } else { value.leading_zeros() } - (64 - bits);
    if same >= bits { 0xffff_ffff } else { u64::from(same) }
}

/// A position, or -1 where there is none.
fn position(found: u32, bits: u32) -> u64 {
    if found >= bits { 0xffff_ffff } else { u64::from(found) }
}

pub static SOP1: &[Row] = &[
    row(0x00, "s_mov_b32", W1, Run::One(|a, _| a)),
    row(0x01, "s_mov_b64", D1, Run::One(|a, _| a)),
    row(0x04, "s_not_b32", W1, Run::One(|a, c| nonzero32(!a, c))),
    row(0x05, "s_not_b64", D1, Run::One(|a, c| nonzero(!a, c))),
    row(0x08, "s_brev_b32", W1, Run::One(|a, _| u64::from((a as u32).reverse_bits()))),
    row(0x09, "s_brev_b64", D1, Run::One(|a, _| a.reverse_bits())),
    row(0x0a, "s_bcnt0_i32_b32", W1, Run::One(|a, c| nonzero(u64::from((a as u32).count_zeros()), c))),
    row(0x0b, "s_bcnt0_i32_b64", WD, Run::One(|a, c| nonzero(u64::from(a.count_zeros()), c))),
    row(0x0c, "s_bcnt1_i32_b32", W1, Run::One(|a, c| nonzero(u64::from((a as u32).count_ones()), c))),
    row(0x0d, "s_bcnt1_i32_b64", WD, Run::One(|a, c| nonzero(u64::from(a.count_ones()), c))),
    row(0x0e, "s_ff0_i32_b32", W1, Run::One(|a, _| position((a as u32).trailing_ones(), 32))),
    row(0x0f, "s_ff0_i32_b64", WD, Run::One(|a, _| position(a.trailing_ones(), 64))),
    row(0x10, "s_ff1_i32_b32", W1, Run::One(|a, _| position((a as u32).trailing_zeros(), 32))),
    row(0x11, "s_ff1_i32_b64", WD, Run::One(|a, _| position(a.trailing_zeros(), 64))),
    row(0x12, "s_flbit_i32_b32", W1, Run::One(|a, _| position((a as u32).leading_zeros(), 32))),
    row(0x13, "s_flbit_i32_b64", WD, Run::One(|a, _| position(a.leading_zeros(), 64))),
    row(0x14, "s_flbit_i32", W1, Run::One(|a, _| leading_sign(i64::from(int(a)), 32))),
    row(0x15, "s_flbit_i32_i64", WD, Run::One(|a, _| leading_sign(a as i64, 64))),
    row(0x16, "s_sext_i32_i8", W1, Run::One(|a, _| a as i8 as u64)),
    row(0x17, "s_sext_i32_i16", W1, Run::One(|a, _| a as i16 as u64)),
    row(0x18, "s_bitset0_b32", W1, Run::Bit(false)),
    row(0x1a, "s_bitset1_b32", W1, Run::Bit(true)),
    row(0x1c, "s_getpc_b64", &[B64], Run::GetPc),
    row(0x1d, "s_setpc_b64", &[B64], Run::SetPc),
    row(0x1e, "s_swappc_b64", D1, Run::SwapPc),
    row(0x20, "s_and_saveexec_b64", D1, Run::SaveExec(|exec, a| a & exec)),
    row(0x21, "s_or_saveexec_b64", D1, Run::SaveExec(|exec, a| a | exec)),
    row(0x22, "s_xor_saveexec_b64", D1, Run::SaveExec(|exec, a| a ^ exec)),
    row(0x23, "s_andn2_saveexec_b64", D1, Run::SaveExec(|exec, a| a & !exec)),
    row(0x24, "s_orn2_saveexec_b64", D1, Run::SaveExec(|exec, a| a | !exec)),
    row(0x25, "s_nand_saveexec_b64", D1, Run::SaveExec(|exec, a| !(a & exec))),
    row(0x26, "s_nor_saveexec_b64", D1, Run::SaveExec(|exec, a| !(a | exec))),
    row(0x27, "s_xnor_saveexec_b64", D1, Run::SaveExec(|exec, a| !(a ^ exec))),
    row(0x30, "s_abs_i32", W1, Run::One(|a, c| nonzero(u64::from(int(a).wrapping_abs() as u32), c))),
    row(0x33, "s_andn1_saveexec_b64", D1, Run::SaveExec(|exec, a| !a & exec)),
    row(0x34, "s_orn1_saveexec_b64", D1, Run::SaveExec(|exec, a| !a | exec)),
    row(0x35, "s_andn1_wrexec_b64", D1, Run::WriteExec(|exec, a| !a & exec)),
    row(0x36, "s_andn2_wrexec_b64", D1, Run::WriteExec(|exec, a| a & !exec)),
];

pub static SOPC: &[Row] = &[
    row(0x00, "s_cmp_eq_i32", W1, Run::Compare(|a, b| int(a) == int(b))),
    row(0x01, "s_cmp_lg_i32", W1, Run::Compare(|a, b| int(a) != int(b))),
    row(0x02, "s_cmp_gt_i32", W1, Run::Compare(|a, b| int(a) > int(b))),
    row(0x03, "s_cmp_ge_i32", W1, Run::Compare(|a, b| int(a) >= int(b))),
    row(0x04, "s_cmp_lt_i32", W1, Run::Compare(|a, b| int(a) < int(b))),
    row(0x05, "s_cmp_le_i32", W1, Run::Compare(|a, b| int(a) <= int(b))),
    row(0x06, "s_cmp_eq_u32", W1, Run::Compare(|a, b| a as u32 == b as u32)),
    row(0x07, "s_cmp_lg_u32", W1, Run::Compare(|a, b| a as u32 != b as u32)),
    row(0x08, "s_cmp_gt_u32", W1, Run::Compare(|a, b| a as u32 > b as u32)),
    row(0x09, "s_cmp_ge_u32", W1, Run::Compare(|a, b| a as u32 >= b as u32)),
    row(0x0a, "s_cmp_lt_u32", W1, Run::Compare(|a, b| (a as u32) < b as u32)),
    row(0x0b, "s_cmp_le_u32", W1, Run::Compare(|a, b| a as u32 <= b as u32)),
    row(0x0c, "s_bitcmp0_b32", W1, Run::Compare(|a, b| a >> (b & 31) & 1 == 0)),
    row(0x0d, "s_bitcmp1_b32", W1, Run::Compare(|a, b| a >> (b & 31) & 1 == 1)),
    row(0x0e, "s_bitcmp0_b64", &[B64, B32], Run::Compare(|a, b| a >> (b & 63) & 1 == 0)),
    row(0x0f, "s_bitcmp1_b64", &[B64, B32], Run::Compare(|a, b| a >> (b & 63) & 1 == 1)),
    row(0x12, "s_cmp_eq_u64", D1, Run::Compare(|a, b| a == b)),
    row(0x13, "s_cmp_lg_u64", D1, Run::Compare(|a, b| a != b)),
];

// A wave's memory is in order here, so that there is nothing to wait for.
pub static SOPP: &[Row] = &[
    row(0x00, "s_nop", &[], Run::Nothing),
    row(0x01, "s_endpgm", &[], Run::End),
    row(0x02, "s_branch", &[], Run::Branch(|_| true)),
    row(0x04, "s_cbranch_scc0", &[], Run::Branch(|wave| !wave.scc)),
    row(0x05, "s_cbranch_scc1", &[], Run::Branch(|wave| wave.scc)),
    row(0x06, "s_cbranch_vccz", &[], Run::Branch(|wave| wave.vcc() == 0)),
    row(0x07, "s_cbranch_vccnz", &[], Run::Branch(|wave| wave.vcc() != 0)),
    row(0x08, "s_cbranch_execz", &[], Run::Branch(|wave| wave.exec() == 0)),
    row(0x09, "s_cbranch_execnz", &[], Run::Branch(|wave| wave.exec() != 0)),
    row(0x0a, "s_barrier", &[], Run::Barrier),
    row(0x0c, "s_waitcnt", &[], Run::Nothing),
    row(0x0e, "s_sleep", &[], Run::Nothing),
    row(0x0f, "s_setprio", &[], Run::Nothing),
];

/// The rows' names, by family, for the test that compares them with llvm-mc.
pub fn names() -> impl Iterator<Item = &'static str> {
    [SOP2, SOPK, SOP1, SOPC, SOPP].into_iter().flatten().map(|row| row.name)
}
