//! Strings and numbers as JSON, put behind what is there.
#![allow(unsafe_code, reason = "digits are text, which the library would look at again for each number")]

use super::plain_bytes;

/// Whether a text stands in JSON as it is.
#[inline]
pub(crate) fn is_plain(text: &str) -> bool {
    plain_bytes(text.as_bytes()) == text.len()
}

/// Writes a string as JSON.
pub(crate) fn write_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    if is_plain(text) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\u{1f}' => {
                let low = usize::from(u8::try_from(c).unwrap_or(b' '));
                out.push_str("\\u00");
                out.push(char::from(HEX[low >> 4]));
                out.push(char::from(HEX[low & 15]));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Writes a number, as JSON and everybody has it. An edit for 64 partitions has hundreds of them, and `write!` goes through
/// core::fmt for each.
pub fn write_number(out: &mut String, number: u64) {
    // SAFETY: what is put behind the text is ASCII. To look at each digit again would take as long as to make it.
    let text = unsafe { out.as_mut_vec() };
    let digit = |number: u64| b'0' + u8::try_from(number % 10).unwrap_or_default();
    match number {
        // Most are numbers of devices and groups, which need no loop.
        0..10 => text.push(digit(number)),
        10..100 => text.extend_from_slice(&[digit(number / 10), digit(number)]),
        100..1000 => text.extend_from_slice(&[digit(number / 100), digit(number / 10), digit(number)]),
        _ => {
            let (mut digits, mut begin, mut left) = ([0; 20], 20, number);
            while left > 0 {
                begin -= 1;
                digits[begin] = digit(left);
                left /= 10;
            }
            text.extend_from_slice(&digits[begin..]);
        }
    }
}
