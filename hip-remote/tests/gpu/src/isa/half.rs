//! Sixteen-bit floats, which Rust's stable releases do not have.

pub fn to_f32(bits: u16) -> f32 {
    let sign = if bits & 0x8000 != 0 { -1.0f32 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::from_bits(u32::from(bits & 0x8000) << 16 | 0x7fc0_0000 | u32::from(bits & 0x3ff) << 13),
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// Rounds to the nearest, and to even between two.
pub fn from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00 | (bits >> 13) as u16 & 0x1ff;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // The step between neighbours: of the smallest normal number for all that are below it.
    let exponent = ((bits >> 23 & 0xff) as i32 - 127).max(-14);
    let steps = (f64::from(magnitude) * 2f64.powi(10 - exponent)).round_ties_even() as u32;
    // A normal number has 1024 to 2047 steps; the carry of rounding goes into the exponent by the sum.
    let base = ((exponent + 14) as u32) << 10;
    sign | (base + steps) as u16
}
