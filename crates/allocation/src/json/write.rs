//! Strings and numbers as JSON, put behind what is there.
#![allow(unsafe_code, reason = "digits are text, which the library would look at again for each number")]

use super::plain_bytes;

/// Writes a string as JSON.
pub(crate) fn write_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    if plain_bytes(text.as_bytes()) == text.len() {
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

/// Writes a number, as JSON and everybody has it. An edit for 64 partitions has a thousand of them, and `write!` goes through
/// core::fmt for each.
pub fn write_number(out: &mut String, number: u64) {
    let mut digits = [b'0'; 20];
    let (mut left, mut begin) = (number, digits.len());
    while left > 0 || begin == digits.len() {
        begin -= 1;
        digits[begin] += u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
    }
    // SAFETY: they are ASCII. To look at each again is a third of what an edit for 64 partitions takes to write.
    out.push_str(unsafe { std::str::from_utf8_unchecked(&digits[begin..]) });
}
