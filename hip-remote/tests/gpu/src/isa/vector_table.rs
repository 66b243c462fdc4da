//! What each vector instruction does with a lane's sources (VOP1, VOP2, VOP3).

use super::numbers::*;
use super::operand::Type::{self, B16, B32, B64, F16, F32, F64};

#[derive(Clone, Copy)]
pub enum Run {
    Lane(fn(Sources) -> u64),
    /// The second function ends at the type's bounds: it is the one that clamps.
    Bounded(fn(Sources) -> u64, fn(Sources) -> u64),
    /// The last source is the destination's old value.
    Old(fn(Sources) -> u64),
    /// With the carry, whose mask of lanes goes to a pair of scalar registers.
    Carry(fn(u32, u32, bool) -> (u32, bool)),
    /// As [`Run::Carry`], and takes a carry from a mask.
    Carried(fn(u32, u32, bool) -> (u32, bool)),
    Wide(fn(Sources) -> (u64, bool)),
    /// Takes the second source in the lanes of a mask.
    Select,
    /// Sets the lanes of a mask in which the quotient must be scaled back.
    DivideScale(fn(Sources) -> (u64, bool)),
    /// With the lane's bit of VCC.
    DivideSum(fn(Sources, bool) -> u64),
    /// Counts the bits of a mask in the lanes below this one, of the lower or the upper half.
    Below {
        upper: bool,
    },
    ReadFirst,
    ReadLane,
    WriteLane,
    Swap,
    Nothing,
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

const fn lane(code: u32, name: &'static str, types: &'static [Type], run: fn(Sources) -> u64) -> Row {
    row(code, name, types, Run::Lane(run))
}

const fn old(code: u32, name: &'static str, types: &'static [Type], run: fn(Sources) -> u64) -> Row {
    row(code, name, types, Run::Old(run))
}

const FF: &[Type] = &[F32, F32];
const DD: &[Type] = &[F64, F64];
const HH: &[Type] = &[F16, F16];
const WW: &[Type] = &[B32, B32];

pub static VOP1: &[Row] = &[
    row(0x00, "v_nop", &[], Run::Nothing),
    lane(0x01, "v_mov_b32", WW, |[a, ..]| a),
    row(0x02, "v_readfirstlane_b32", WW, Run::ReadFirst),
    lane(0x03, "v_cvt_i32_f64", &[B32, F64], |[a, ..]| oi(d(a) as i32)),
    lane(0x04, "v_cvt_f64_i32", &[F64, B32], |[a, ..]| od(f64::from(i(a)))),
    lane(0x05, "v_cvt_f32_i32", &[F32, B32], |[a, ..]| of(i(a) as f32)),
    lane(0x06, "v_cvt_f32_u32", &[F32, B32], |[a, ..]| of(u(a) as f32)),
    lane(0x07, "v_cvt_u32_f32", &[B32, F32], |[a, ..]| clamp_unsigned(f64::from(f(a)))),
    lane(0x08, "v_cvt_i32_f32", &[B32, F32], |[a, ..]| oi(f(a) as i32)),
    lane(0x0a, "v_cvt_f16_f32", &[F16, F32], |[a, ..]| oh(f(a))),
    lane(0x0b, "v_cvt_f32_f16", &[F32, F16], |[a, ..]| of(h(a))),
    lane(0x0c, "v_cvt_rpi_i32_f32", &[B32, F32], |[a, ..]| oi((f(a) + 0.5).floor() as i32)),
    lane(0x0d, "v_cvt_flr_i32_f32", &[B32, F32], |[a, ..]| oi(f(a).floor() as i32)),
    lane(0x0f, "v_cvt_f32_f64", &[F32, F64], |[a, ..]| of(d(a) as f32)),
    lane(0x10, "v_cvt_f64_f32", &[F64, F32], |[a, ..]| od(f64::from(f(a)))),
    lane(0x11, "v_cvt_f32_ubyte0", &[F32, B32], |[a, ..]| of((a & 0xff) as f32)),
    lane(0x12, "v_cvt_f32_ubyte1", &[F32, B32], |[a, ..]| of((a >> 8 & 0xff) as f32)),
    lane(0x13, "v_cvt_f32_ubyte2", &[F32, B32], |[a, ..]| of((a >> 16 & 0xff) as f32)),
    lane(0x14, "v_cvt_f32_ubyte3", &[F32, B32], |[a, ..]| of((a >> 24 & 0xff) as f32)),
    lane(0x15, "v_cvt_u32_f64", &[B32, F64], |[a, ..]| clamp_unsigned(d(a))),
    lane(0x16, "v_cvt_f64_u32", &[F64, B32], |[a, ..]| od(f64::from(u(a)))),
    lane(0x17, "v_trunc_f64", DD, |[a, ..]| od(d(a).trunc())),
    lane(0x18, "v_ceil_f64", DD, |[a, ..]| od(d(a).ceil())),
    lane(0x19, "v_rndne_f64", DD, |[a, ..]| od(d(a).round_ties_even())),
    lane(0x1a, "v_floor_f64", DD, |[a, ..]| od(d(a).floor())),
    lane(0x1b, "v_fract_f32", FF, |[a, ..]| of(fract32(f(a)))),
    lane(0x1c, "v_trunc_f32", FF, |[a, ..]| of(f(a).trunc())),
    lane(0x1d, "v_ceil_f32", FF, |[a, ..]| of(f(a).ceil())),
    lane(0x1e, "v_rndne_f32", FF, |[a, ..]| of(f(a).round_ties_even())),
    lane(0x1f, "v_floor_f32", FF, |[a, ..]| of(f(a).floor())),
    lane(0x20, "v_exp_f32", FF, |[a, ..]| of(f64::from(f(a)).exp2() as f32)),
    lane(0x21, "v_log_f32", FF, |[a, ..]| of(f64::from(f(a)).log2() as f32)),
    lane(0x22, "v_rcp_f32", FF, |[a, ..]| of(1.0 / f(a))),
    lane(0x23, "v_rcp_iflag_f32", FF, |[a, ..]| of(1.0 / f(a))),
    lane(0x24, "v_rsq_f32", FF, |[a, ..]| of((1.0 / f64::from(f(a)).sqrt()) as f32)),
    lane(0x25, "v_rcp_f64", DD, |[a, ..]| od(1.0 / d(a))),
    lane(0x26, "v_rsq_f64", DD, |[a, ..]| od(1.0 / d(a).sqrt())),
    lane(0x27, "v_sqrt_f32", FF, |[a, ..]| of(f(a).sqrt())),
    lane(0x28, "v_sqrt_f64", DD, |[a, ..]| od(d(a).sqrt())),
    lane(0x29, "v_sin_f32", FF, |[a, ..]| of(turn(f(a)).sin() as f32)),
    lane(0x2a, "v_cos_f32", FF, |[a, ..]| of(turn(f(a)).cos() as f32)),
    lane(0x2b, "v_not_b32", WW, |[a, ..]| ou(!u(a))),
    lane(0x2c, "v_bfrev_b32", WW, |[a, ..]| ou(u(a).reverse_bits())),
    lane(0x2d, "v_ffbh_u32", WW, |[a, ..]| if u(a) == 0 { 0xffff_ffff } else { ou(u(a).leading_zeros()) }),
    lane(0x2e, "v_ffbl_b32", WW, |[a, ..]| if u(a) == 0 { 0xffff_ffff } else { ou(u(a).trailing_zeros()) }),
    lane(0x2f, "v_ffbh_i32", WW, |[a, ..]| {
        let value = if i(a) < 0 { !u(a) } else { u(a) };
        if value == 0 { 0xffff_ffff } else { ou(value.leading_zeros()) }
    }),
    lane(0x30, "v_frexp_exp_i32_f64", &[B32, F64], |[a, ..]| oi(frexp(d(a)).1)),
    lane(0x31, "v_frexp_mant_f64", DD, |[a, ..]| od(frexp(d(a)).0)),
    lane(0x32, "v_fract_f64", DD, |[a, ..]| od(fract(d(a)))),
    lane(0x33, "v_frexp_exp_i32_f32", &[B32, F32], |[a, ..]| oi(frexp(f64::from(f(a))).1)),
    lane(0x34, "v_frexp_mant_f32", FF, |[a, ..]| of(frexp(f64::from(f(a))).0 as f32)),
    lane(0x39, "v_cvt_f16_u16", &[F16, B16], |[a, ..]| oh(f32::from(a as u16))),
    lane(0x3a, "v_cvt_f16_i16", &[F16, B16], |[a, ..]| oh(f32::from(a as i16))),
    lane(0x3b, "v_cvt_u16_f16", &[B16, F16], |[a, ..]| u64::from(h(a) as u16)),
    lane(0x3c, "v_cvt_i16_f16", &[B16, F16], |[a, ..]| u64::from(h(a) as i16 as u16)),
    lane(0x3d, "v_rcp_f16", HH, |[a, ..]| oh(1.0 / h(a))),
    lane(0x3e, "v_sqrt_f16", HH, |[a, ..]| oh(h(a).sqrt())),
    lane(0x3f, "v_rsq_f16", HH, |[a, ..]| oh(1.0 / h(a).sqrt())),
    lane(0x40, "v_log_f16", HH, |[a, ..]| oh(h(a).log2())),
    lane(0x41, "v_exp_f16", HH, |[a, ..]| oh(h(a).exp2())),
    lane(0x44, "v_floor_f16", HH, |[a, ..]| oh(h(a).floor())),
    lane(0x45, "v_ceil_f16", HH, |[a, ..]| oh(h(a).ceil())),
    lane(0x46, "v_trunc_f16", HH, |[a, ..]| oh(h(a).trunc())),
    lane(0x47, "v_rndne_f16", HH, |[a, ..]| oh(h(a).round_ties_even())),
    row(0x51, "v_swap_b32", WW, Run::Swap),
];

const F3: &[Type] = &[F32, F32, F32];
const D3: &[Type] = &[F64, F64, F64];
const H3: &[Type] = &[F16, F16, F16];
const S3: &[Type] = &[B16, B16, B16];
const W3: &[Type] = &[B32, B32, B32];

/// A literal is always the second source, or the third one.
pub const MADMK: u32 = 0x17;
pub const MADAK: u32 = 0x18;

pub static VOP2: &[Row] = &[
    row(0x00, "v_cndmask_b32", W3, Run::Select),
    lane(0x01, "v_add_f32", F3, |[a, b, _]| of(f(a) + f(b))),
    lane(0x02, "v_sub_f32", F3, |[a, b, _]| of(f(a) - f(b))),
    lane(0x03, "v_subrev_f32", F3, |[a, b, _]| of(f(b) - f(a))),
    old(0x04, "v_fmac_f64", D3, |[a, b, c]| od(d(a).mul_add(d(b), d(c)))),
    lane(0x05, "v_mul_f32", F3, |[a, b, _]| of(f(a) * f(b))),
    lane(0x06, "v_mul_i32_i24", W3, |[a, b, _]| i24(a).wrapping_mul(i24(b)) as u64 & 0xffff_ffff),
    lane(0x07, "v_mul_hi_i32_i24", W3, |[a, b, _]| ((i24(a) * i24(b)) >> 32) as u64 & 0xffff_ffff),
    lane(0x08, "v_mul_u32_u24", W3, |[a, b, _]| (u24(a) * u24(b)) & 0xffff_ffff),
    lane(0x09, "v_mul_hi_u32_u24", W3, |[a, b, _]| (u24(a) * u24(b)) >> 32),
    lane(0x0a, "v_min_f32", F3, |[a, b, _]| of(f(a).min(f(b)))),
    lane(0x0b, "v_max_f32", F3, |[a, b, _]| of(f(a).max(f(b)))),
    lane(0x0c, "v_min_i32", W3, |[a, b, _]| oi(i(a).min(i(b)))),
    lane(0x0d, "v_max_i32", W3, |[a, b, _]| oi(i(a).max(i(b)))),
    lane(0x0e, "v_min_u32", W3, |[a, b, _]| ou(u(a).min(u(b)))),
    lane(0x0f, "v_max_u32", W3, |[a, b, _]| ou(u(a).max(u(b)))),
    lane(0x10, "v_lshrrev_b32", W3, |[a, b, _]| ou(u(b) >> (a & 31))),
    lane(0x11, "v_ashrrev_i32", W3, |[a, b, _]| oi(i(b) >> (a & 31))),
    lane(0x12, "v_lshlrev_b32", W3, |[a, b, _]| ou(u(b) << (a & 31))),
    lane(0x13, "v_and_b32", W3, |[a, b, _]| a & b),
    lane(0x14, "v_or_b32", W3, |[a, b, _]| a | b),
    lane(0x15, "v_xor_b32", W3, |[a, b, _]| a ^ b),
    old(0x16, "v_mac_f32", F3, |[a, b, c]| multiply_and_add(f(a), f(b), f(c))),
    lane(MADMK, "v_madmk_f32", F4, |[a, b, c]| multiply_and_add(f(a), f(b), f(c))),
    lane(MADAK, "v_madak_f32", F4, |[a, b, c]| multiply_and_add(f(a), f(b), f(c))),
    row(0x19, "v_add_co_u32", W3, Run::Carry(|a, b, _| a.overflowing_add(b))),
    row(0x1a, "v_sub_co_u32", W3, Run::Carry(|a, b, _| a.overflowing_sub(b))),
    row(0x1b, "v_subrev_co_u32", W3, Run::Carry(|a, b, _| b.overflowing_sub(a))),
    row(0x1c, "v_addc_co_u32", W3, Run::Carried(add_with_carry)),
    row(0x1d, "v_subb_co_u32", W3, Run::Carried(subtract_with_borrow)),
    row(0x1e, "v_subbrev_co_u32", W3, Run::Carried(|a, b, c| subtract_with_borrow(b, a, c))),
    lane(0x1f, "v_add_f16", H3, |[a, b, _]| oh(h(a) + h(b))),
    lane(0x20, "v_sub_f16", H3, |[a, b, _]| oh(h(a) - h(b))),
    lane(0x21, "v_subrev_f16", H3, |[a, b, _]| oh(h(b) - h(a))),
    lane(0x22, "v_mul_f16", H3, |[a, b, _]| oh(h(a) * h(b))),
    row(
        0x26,
        "v_add_u16",
        S3,
        Run::Bounded(
            |[a, b, _]| u64::from((a as u16).wrapping_add(b as u16)),
            |[a, b, _]| u64::from((a as u16).saturating_add(b as u16)),
        ),
    ),
    row(
        0x27,
        "v_sub_u16",
        S3,
        Run::Bounded(
            |[a, b, _]| u64::from((a as u16).wrapping_sub(b as u16)),
            |[a, b, _]| u64::from((a as u16).saturating_sub(b as u16)),
        ),
    ),
    row(
        0x28,
        "v_subrev_u16",
        S3,
        Run::Bounded(
            |[a, b, _]| u64::from((b as u16).wrapping_sub(a as u16)),
            |[a, b, _]| u64::from((b as u16).saturating_sub(a as u16)),
        ),
    ),
    lane(0x29, "v_mul_lo_u16", S3, |[a, b, _]| ((a & 0xffff) * (b & 0xffff)) & 0xffff),
    lane(0x2a, "v_lshlrev_b16", S3, |[a, b, _]| b << (a & 15) & 0xffff),
    lane(0x2b, "v_lshrrev_b16", S3, |[a, b, _]| (b & 0xffff) >> (a & 15)),
    lane(0x2c, "v_ashrrev_i16", S3, |[a, b, _]| u64::from((b as i16 >> (a & 15)) as u16)),
    lane(0x2d, "v_max_f16", H3, |[a, b, _]| oh(h(a).max(h(b)))),
    lane(0x2e, "v_min_f16", H3, |[a, b, _]| oh(h(a).min(h(b)))),
    lane(0x2f, "v_max_u16", S3, |[a, b, _]| u64::from((a as u16).max(b as u16))),
    lane(0x30, "v_max_i16", S3, |[a, b, _]| u64::from((a as i16).max(b as i16) as u16)),
    lane(0x31, "v_min_u16", S3, |[a, b, _]| u64::from((a as u16).min(b as u16))),
    lane(0x32, "v_min_i16", S3, |[a, b, _]| u64::from((a as i16).min(b as i16) as u16)),
    lane(0x33, "v_ldexp_f16", H3, |[a, b, _]| oh(ldexp(f64::from(h(a)), i32::from(b as i16)) as f32)),
    row(
        0x34,
        "v_add_u32",
        W3,
        Run::Bounded(|[a, b, _]| ou(u(a).wrapping_add(u(b))), |[a, b, _]| ou(u(a).saturating_add(u(b)))),
    ),
    row(
        0x35,
        "v_sub_u32",
        W3,
        Run::Bounded(|[a, b, _]| ou(u(a).wrapping_sub(u(b))), |[a, b, _]| ou(u(a).saturating_sub(u(b)))),
    ),
    row(
        0x36,
        "v_subrev_u32",
        W3,
        Run::Bounded(|[a, b, _]| ou(u(b).wrapping_sub(u(a))), |[a, b, _]| ou(u(b).saturating_sub(u(a)))),
    ),
    old(0x3b, "v_fmac_f32", F3, |[a, b, c]| of(f(a).mul_add(f(b), f(c)))),
    lane(0x3d, "v_xnor_b32", W3, |[a, b, _]| ou(!(u(a) ^ u(b)))),
];

const F4: &[Type] = &[F32, F32, F32, F32];
const D4: &[Type] = &[F64, F64, F64, F64];
const H4: &[Type] = &[F16, F16, F16, F16];
const W4: &[Type] = &[B32, B32, B32, B32];
const S4: &[Type] = &[B16, B16, B16, B16];

pub static VOP3: &[Row] = &[
    lane(0x1c1, "v_mad_f32", F4, |[a, b, c]| multiply_and_add(f(a), f(b), f(c))),
    lane(0x1c2, "v_mad_i32_i24", W4, |[a, b, c]| ou((i24(a) * i24(b)) as u32).wrapping_add(c) & 0xffff_ffff),
    lane(0x1c3, "v_mad_u32_u24", W4, |[a, b, c]| (u24(a) * u24(b)).wrapping_add(c) & 0xffff_ffff),
    lane(0x1c8, "v_bfe_u32", W4, |[a, b, c]| ou(bits(u(a), b, c))),
    lane(0x1c9, "v_bfe_i32", W4, |[a, b, c]| {
        let (from, width) = (b & 31, c & 31);
        let width = width.min(32 - from);
        if width == 0 { 0 } else { oi((bits(u(a), from, width) << (32 - width)) as i32 >> (32 - width)) }
    }),
    lane(0x1ca, "v_bfi_b32", W4, |[a, b, c]| a & b | !a & c & 0xffff_ffff),
    lane(0x1cb, "v_fma_f32", F4, |[a, b, c]| of(f(a).mul_add(f(b), f(c)))),
    lane(0x1cc, "v_fma_f64", D4, |[a, b, c]| od(d(a).mul_add(d(b), d(c)))),
    lane(0x1ce, "v_alignbit_b32", W4, |[a, b, c]| {
        ((a & 0xffff_ffff) << 32 | b & 0xffff_ffff) >> (c & 31) & 0xffff_ffff
    }),
    lane(0x1cf, "v_alignbyte_b32", W4, |[a, b, c]| {
        ((a & 0xffff_ffff) << 32 | b & 0xffff_ffff) >> (8 * (c & 3)) & 0xffff_ffff
    }),
    lane(0x1d0, "v_min3_f32", F4, |[a, b, c]| of(f(a).min(f(b)).min(f(c)))),
    lane(0x1d1, "v_min3_i32", W4, |[a, b, c]| oi(i(a).min(i(b)).min(i(c)))),
    lane(0x1d2, "v_min3_u32", W4, |[a, b, c]| ou(u(a).min(u(b)).min(u(c)))),
    lane(0x1d3, "v_max3_f32", F4, |[a, b, c]| of(f(a).max(f(b)).max(f(c)))),
    lane(0x1d4, "v_max3_i32", W4, |[a, b, c]| oi(i(a).max(i(b)).max(i(c)))),
    lane(0x1d5, "v_max3_u32", W4, |[a, b, c]| ou(u(a).max(u(b)).max(u(c)))),
    lane(0x1d6, "v_med3_f32", F4, |[a, b, c]| {
        let all = [f(a), f(b), f(c)];
        of(if all.iter().any(|v| v.is_nan()) { all[0].min(all[1]).min(all[2]) } else { median(all) })
    }),
    lane(0x1d7, "v_med3_i32", W4, |all| oi(median(all.map(i)))),
    lane(0x1d8, "v_med3_u32", W4, |all| ou(median(all.map(u)))),
    lane(0x1dc, "v_sad_u32", W4, |[a, b, c]| ou(u(a).abs_diff(u(b)).wrapping_add(u(c)))),
    lane(0x1de, "v_div_fixup_f32", F4, |[q, b, a]| {
        let under = exponent32(a) - exponent32(b) < -150;
        of(divide_fixup(f64::from(f(q)), f64::from(f(b)), f64::from(f(a)), under, exponent32(q) == 255)
            as f32)
    }),
    lane(0x1df, "v_div_fixup_f64", D4, |[q, b, a]| {
        let under = exponent64(a) - exponent64(b) < -1075;
        od(divide_fixup(d(q), d(b), d(a), under, exponent64(q) == 2047))
    }),
    row(0x1e0, "v_div_scale_f32", F4, Run::DivideScale(divide_scale32)),
    row(0x1e1, "v_div_scale_f64", D4, Run::DivideScale(divide_scale64)),
    row(
        0x1e2,
        "v_div_fmas_f32",
        F4,
        Run::DivideSum(|[a, b, c], scaled| {
            let sum = f(a).mul_add(f(b), f(c));
            let power = if exponent32(c) > 127 { 64 } else { -64 };
            of(if scaled { ldexp(f64::from(sum), power) as f32 } else { sum })
        }),
    ),
    row(
        0x1e3,
        "v_div_fmas_f64",
        D4,
        Run::DivideSum(|[a, b, c], scaled| {
            let sum = d(a).mul_add(d(b), d(c));
            let power = if exponent64(c) > 1023 { 128 } else { -128 };
            od(if scaled { ldexp(sum, power) } else { sum })
        }),
    ),
    row(
        0x1e8,
        "v_mad_u64_u32",
        &[B64, B32, B32, B64],
        Run::Wide(|[a, b, c]| ((a & 0xffff_ffff) * (b & 0xffff_ffff)).overflowing_add(c)),
    ),
    row(
        0x1e9,
        "v_mad_i64_i32",
        &[B64, B32, B32, B64],
        Run::Wide(|[a, b, c]| {
            let (sum, over) = (i64::from(i(a)) * i64::from(i(b))).overflowing_add(c as i64);
            (sum as u64, over)
        }),
    ),
    lane(0x1eb, "v_mad_legacy_u16", S4, |[a, b, c]| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff),
    lane(0x1ec, "v_mad_legacy_i16", S4, |[a, b, c]| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff),
    lane(0x1ed, "v_perm_b32", W4, |[a, b, c]| {
        ou((0..4).fold(0, |all, at| all | permuted(u(a), u(b), (c >> (8 * at)) as u8) << (8 * at)))
    }),
    lane(0x1f1, "v_mad_u32_u16", &[B32, B16, B16, B32], |[a, b, c]| {
        ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff_ffff
    }),
    lane(0x1f2, "v_mad_i32_i16", &[B32, B16, B16, B32], |[a, b, c]| {
        oi((i32::from(a as i16) * i32::from(b as i16)).wrapping_add(i(c)))
    }),
    lane(0x1f3, "v_xad_u32", W4, |[a, b, c]| ou((u(a) ^ u(b)).wrapping_add(u(c)))),
    lane(0x1fd, "v_lshl_add_u32", W4, |[a, b, c]| ou((u(a) << (b & 31)).wrapping_add(u(c)))),
    lane(0x1fe, "v_add_lshl_u32", W4, |[a, b, c]| ou(u(a).wrapping_add(u(b)) << (c & 31))),
    lane(0x1ff, "v_add3_u32", W4, |[a, b, c]| ou(u(a).wrapping_add(u(b)).wrapping_add(u(c)))),
    lane(0x200, "v_lshl_or_b32", W4, |[a, b, c]| ou(u(a) << (b & 31) | u(c))),
    lane(0x201, "v_and_or_b32", W4, |[a, b, c]| a & b | c),
    lane(0x202, "v_or3_b32", W4, |[a, b, c]| a | b | c),
    lane(0x204, "v_mad_u16", S4, |[a, b, c]| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff),
    lane(0x205, "v_mad_i16", S4, |[a, b, c]| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c) & 0xffff),
    // In doubles the product of two halves is exact, and the sum is rounded once more only.
    lane(0x206, "v_fma_f16", H4, |[a, b, c]| oh(h(a).mul_add(h(b), h(c)))),
    lane(0x280, "v_add_f64", D3, |[a, b, _]| od(d(a) + d(b))),
    lane(0x281, "v_mul_f64", D3, |[a, b, _]| od(d(a) * d(b))),
    lane(0x282, "v_min_f64", D3, |[a, b, _]| od(d(a).min(d(b)))),
    lane(0x283, "v_max_f64", D3, |[a, b, _]| od(d(a).max(d(b)))),
    lane(0x284, "v_ldexp_f64", &[F64, F64, B32], |[a, b, _]| od(ldexp(d(a), i(b)))),
    lane(0x285, "v_mul_lo_u32", W3, |[a, b, _]| ou(u(a).wrapping_mul(u(b)))),
    lane(0x286, "v_mul_hi_u32", W3, |[a, b, _]| ((a & 0xffff_ffff) * (b & 0xffff_ffff)) >> 32),
    lane(0x287, "v_mul_hi_i32", W3, |[a, b, _]| {
        ((i64::from(i(a)) * i64::from(i(b))) >> 32) as u64 & 0xffff_ffff
    }),
    lane(0x288, "v_ldexp_f32", &[F32, F32, B32], |[a, b, _]| of(ldexp(f64::from(f(a)), i(b)) as f32)),
    row(0x289, "v_readlane_b32", W3, Run::ReadLane),
    row(0x28a, "v_writelane_b32", W3, Run::WriteLane),
    lane(0x28b, "v_bcnt_u32_b32", W3, |[a, b, _]| ou(u(a).count_ones().wrapping_add(u(b)))),
    row(0x28c, "v_mbcnt_lo_u32_b32", W3, Run::Below { upper: false }),
    row(0x28d, "v_mbcnt_hi_u32_b32", W3, Run::Below { upper: true }),
    lane(0x28f, "v_lshlrev_b64", &[B64, B32, B64], |[a, b, _]| b << (a & 63)),
    lane(0x290, "v_lshrrev_b64", &[B64, B32, B64], |[a, b, _]| b >> (a & 63)),
    lane(0x291, "v_ashrrev_i64", &[B64, B32, B64], |[a, b, _]| (b as i64 >> (a & 63)) as u64),
    lane(0x293, "v_bfm_b32", W3, |[a, b, _]| ((1u64 << (a & 31)) - 1) << (b & 31) & 0xffff_ffff),
    lane(0x297, "v_cvt_pk_u16_u32", W3, |[a, b, _]| {
        u64::from(u(a).min(0xffff)) | u64::from(u(b).min(0xffff)) << 16
    }),
    lane(0x298, "v_cvt_pk_i16_i32", W3, |[a, b, _]| {
        let short = |value: u64| u64::from(i(value).clamp(-0x8000, 0x7fff) as u16);
        short(a) | short(b) << 16
    }),
    row(
        0x29c,
        "v_add_i32",
        W3,
        Run::Bounded(|[a, b, _]| oi(i(a).wrapping_add(i(b))), |[a, b, _]| oi(i(a).saturating_add(i(b)))),
    ),
    row(
        0x29d,
        "v_sub_i32",
        W3,
        Run::Bounded(|[a, b, _]| oi(i(a).wrapping_sub(i(b))), |[a, b, _]| oi(i(a).saturating_sub(i(b)))),
    ),
    row(
        0x29e,
        "v_add_i16",
        S3,
        Run::Bounded(
            |[a, b, _]| u64::from((a as i16).wrapping_add(b as i16) as u16),
            |[a, b, _]| u64::from((a as i16).saturating_add(b as i16) as u16),
        ),
    ),
    row(
        0x29f,
        "v_sub_i16",
        S3,
        Run::Bounded(
            |[a, b, _]| u64::from((a as i16).wrapping_sub(b as i16) as u16),
            |[a, b, _]| u64::from((a as i16).saturating_sub(b as i16) as u16),
        ),
    ),
    lane(0x2a0, "v_pack_b32_f16", &[B32, F16, F16], |[a, b, _]| a & 0xffff | (b & 0xffff) << 16),
    lane(0x2a1, "v_mul_legacy_f32", F3, |[a, b, _]| {
        of(if f(a) == 0.0 || f(b) == 0.0 { 0.0 } else { f(a) * f(b) })
    }),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    [VOP1, VOP2, VOP3].into_iter().flatten().map(|row| row.name)
}
