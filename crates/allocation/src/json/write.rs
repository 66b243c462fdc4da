//! Strings and numbers as JSON, put behind what is there.

/// Writes a string as JSON.
pub(crate) fn write_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    if !text.bytes().any(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
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

/// Writes a number as JSON. An edit for 64 partitions has a thousand of them, and `write!` goes through
/// core::fmt for each.
pub(crate) fn write_number(out: &mut String, number: u32) {
    let mut power = 1_u32;
    while number / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        out.push(char::from_digit(number / power % 10, 10).unwrap_or('0'));
        power /= 10;
    }
}
