//! Strings: what they say, and which key they are.

use std::borrow::Cow;

use super::Span;

/// A string as the text spells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    /// With the quotation marks.
    pub(crate) span: Span,
    /// What is between the quotation marks.
    pub(super) raw: &'a str,
    pub(super) escaped: bool,
}

impl<'a> Text<'a> {
    /// What the string says. A lone surrogate becomes U+FFFD, as Go's decoder makes of it.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether the string says exactly this.
    pub(crate) fn is(self, text: &str) -> bool {
        if self.escaped { self.decode() == text } else { self.raw == text }
    }

    /// Whether Go's decoder takes this key for the field `name`, which is ASCII: escapes are resolved, and
    /// case does not count, nor the two characters outside ASCII that fold to a letter of it.
    pub(crate) fn names(self, name: &str) -> bool {
        if !self.escaped && self.raw.is_ascii() {
            return self.raw.eq_ignore_ascii_case(name);
        }
        self.decode().chars().map(fold).eq(name.chars().map(fold))
    }
}

/// Simple case folding onto ASCII (Unicode CaseFolding.txt: U+017F is an s, U+212A is a k).
fn fold(c: char) -> char {
    match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    }
}

fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, length) = escape(&rest[at + 1..]);
        out.push(c);
        rest = &rest[at + 1 + length..];
    }
    out.push_str(rest);
    out
}

/// The character that an escape means, and its length behind the backslash. It was scanned before.
fn escape(text: &str) -> (char, usize) {
    let c = match text.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return code_point(text),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (c, 1)
}

fn code_point(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let Some(first) = unit(1) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if let (0xd800..=0xdbff, Some("\\u"), Some(second @ 0xdc00..=0xdfff)) = (first, text.get(5..7), unit(7)) {
        let c = char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
        return (c.unwrap_or(char::REPLACEMENT_CHARACTER), 11);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
}
