//! What lanes compute with numbers where Rust has no function for it.

use super::half;

/// A lane's sources, as their types say; what is not named is 0.
pub type Sources = [u64; 3];

pub fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

pub fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

pub fn h(bits: u64) -> f32 {
    half::to_f32(bits as u16)
}

pub fn i(bits: u64) -> i32 {
    bits as i32
}

pub fn u(bits: u64) -> u32 {
    bits as u32
}

pub fn of(value: f32) -> u64 {
    u64::from(value.to_bits())
}

pub fn od(value: f64) -> u64 {
    value.to_bits()
}

pub fn oh(value: f32) -> u64 {
    u64::from(half::from_f32(value))
}

pub fn oi(value: i32) -> u64 {
    u64::from(value as u32)
}

pub fn ou(value: u32) -> u64 {
    u64::from(value)
}

/// Rounds twice, and takes subnormal numbers for zeroes (MI200 ISA, V_MAD_F32).
pub fn multiply_and_add(a: f32, b: f32, c: f32) -> u64 {
    let flushed = |value: f32| if value.is_subnormal() { 0f32.copysign(value) } else { value };
    of(flushed(flushed(flushed(a) * flushed(b)) + flushed(c)))
}

/// A number of 24 bits, with its sign.
pub fn i24(bits: u64) -> i64 {
    i64::from((bits as i32) << 8 >> 8)
}

pub fn u24(bits: u64) -> u64 {
    bits & 0xff_ffff
}

pub fn fract(value: f64) -> f64 {
    (value - value.floor()).min(1.0 - f64::EPSILON / 2.0)
}

pub fn fract32(value: f32) -> f32 {
    (value - value.floor()).min(1.0 - f32::EPSILON / 2.0)
}

/// Two to the power, and a product with it that is rounded once.
pub fn ldexp(value: f64, power: i32) -> f64 {
    let mut value = value;
    let mut power = power.clamp(-2200, 2200);
    while power > 1000 {
        value *= 2f64.powi(1000);
        power -= 1000;
    }
    // Steps downwards stay normal until the last one, so that no step but it rounds.
    while power < -1000 {
        if value.abs() < 1.0 {
            return value * 2f64.powi(-1000) * 2f64.powi(-1000);
        }
        value *= 2f64.powi(-1000);
        power += 1000;
    }
    if power < -500 { value * 2f64.powi(power + 500) * 2f64.powi(-500) } else { value * 2f64.powi(power) }
}

/// The exponent and the fraction, which is at least a half.
pub fn frexp(value: f64) -> (f64, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let scaled = if value.abs() < f64::MIN_POSITIVE { value * 2f64.powi(64) } else { value };
    let correction = if value.abs() < f64::MIN_POSITIVE { -64 } else { 0 };
    let bits = scaled.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent + correction)
}

pub fn exponent32(bits: u64) -> i32 {
    (bits >> 23 & 0xff) as i32
}

pub fn exponent64(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

/// Scales what is divided or divides, so that no step of the division leaves the numbers' range (MI200 ISA,
/// V_DIV_SCALE_F32). The sources are what is scaled, the denominator and the numerator.
pub fn divide_scale32([value, below, above]: Sources) -> (u64, bool) {
    let up = of(ldexp(f64::from(f(value)), 64) as f32);
    let down = of(ldexp(f64::from(f(value)), -64) as f32);
    if f(below) == 0.0 || f(above) == 0.0 {
        return (of(f32::NAN), false);
    }
    if exponent32(above) - exponent32(below) >= 96 {
        return (if u(value) == u(below) { up } else { value }, true);
    }
    if f(below).is_subnormal() {
        return (up, false);
    }
    let (inverse, quotient) = (1.0 / f64::from(f(below)), f64::from(f(above)) / f64::from(f(below)));
    let tiny = |value: f64| value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE);
    match (tiny(inverse), tiny(quotient)) {
        (true, true) => (if u(value) == u(below) { up } else { value }, true),
        (true, false) => (down, false),
        (false, true) => (if u(value) == u(above) { up } else { value }, true),
        (false, false) if exponent32(above) <= 23 => (up, false),
        (false, false) => (value, false),
    }
}

pub fn divide_scale64([value, below, above]: Sources) -> (u64, bool) {
    let up = od(ldexp(d(value), 128));
    if d(below) == 0.0 || d(above) == 0.0 {
        return (od(f64::NAN), false);
    }
    if exponent64(above) - exponent64(below) >= 768 {
        return (if value == below { up } else { value }, true);
    }
    if d(below).is_subnormal() {
        return (up, false);
    }
    match ((1.0 / d(below)).is_subnormal(), (d(above) / d(below)).is_subnormal()) {
        (true, true) => (if value == below { up } else { value }, true),
        (true, false) => (od(ldexp(d(value), -128)), false),
        (false, true) => (if value == above { up } else { value }, true),
        (false, false) if exponent64(above) <= 53 => (up, false),
        (false, false) => (value, false),
    }
}

/// The quotient, with its special cases (V_DIV_FIXUP). The sources are the quotient, the denominator, the numerator.
pub fn divide_fixup(quotient: f64, below: f64, above: f64, underflows: bool, overflows: bool) -> f64 {
    let sign = if below.is_sign_negative() ^ above.is_sign_negative() { -1.0 } else { 1.0 };
    if above.is_nan() {
        above
    } else if below.is_nan() {
        below
    } else if (below == 0.0 && above == 0.0) || (below.is_infinite() && above.is_infinite()) {
        -f64::NAN
    } else if below == 0.0 || above.is_infinite() || overflows {
        sign * f64::INFINITY
    } else if below.is_infinite() || above == 0.0 || underflows {
        sign * 0.0
    } else {
        quotient.abs() * sign
    }
}

pub fn clamp_unsigned(value: f64) -> u64 {
    // `as` of Rust ends at the bounds and makes 0 of what is no number, as the instruction does.
    ou(value as u32)
}

pub fn median<T: PartialOrd + Copy>([a, b, c]: [T; 3]) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if c < low {
        low
    } else if c > high {
        high
    } else {
        c
    }
}

/// A byte of two words, or 0 or 255, as a selector says (V_PERM_B32).
pub fn permuted(high: u32, low: u32, selector: u8) -> u32 {
    let bytes = u64::from(high) << 32 | u64::from(low);
    let sign = |bit: u32| if bytes >> bit & 1 == 1 { 0xff } else { 0 };
    match selector {
        0..=7 => (bytes >> (8 * selector) & 0xff) as u32,
        8 => sign(15),
        9 => sign(31),
        10 => sign(47),
        11 => sign(63),
        12 => 0,
        _ => 0xff,
    }
}

pub fn bits(value: u32, from: u64, width: u64) -> u32 {
    let (from, width) = (from & 31, width & 31);
    (value >> from) & ((1u64 << width) - 1) as u32
}

/// The angle counts whole turns.
pub fn turn(angle: f32) -> f64 {
    f64::from(angle) * std::f64::consts::TAU
}

pub fn add_with_carry(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

pub fn subtract_with_borrow(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let less = u64::from(b) + u64::from(borrow);
    (u64::from(a).wrapping_sub(less) as u32, less > u64::from(a))
}
