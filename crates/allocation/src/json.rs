//! A scanner of JSON text that records where values are.
//!
//! serde_json's `RawValue` gives slices as well, but a slice in a slice means reading the text once for
//! each level. It does not say where a member could be added. This one goes over the text once, and builds
//! only what a caller asks for. It accepts what RFC 8259 and serde_json accept (a test compares the two),
//! to the depth that serde_json allows.

/// The depth that serde_json allows.
pub(crate) const DEEPEST: u8 = 127;

/// Where a value is in the text: from its first byte to behind its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An object or array, and where its next member would go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) span: Span,
    /// Behind the last member, or behind the opening bracket.
    pub(crate) tail: usize,
    pub(crate) empty: bool,
}

impl Span {
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Goes over a text from value to value.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self::at(text, 0)
    }

    /// Begins somewhere in the text, at a value that was scanned before.
    pub(crate) fn at(text: &'a str, offset: usize) -> Self {
        Self { text, at: offset, depth: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes past a value by its text alone: `read` gives what it makes of the text from here on, and what follows the value.
    pub(crate) fn by_text<T>(&mut self, read: impl FnOnce(&'a str) -> Option<(T, &'a str)>) -> Option<T> {
        self.space();
        let (value, behind) = read(self.text.get(self.at..)?)?;
        self.at = self.text.len() - behind.len();
        Some(value)
    }

    /// The text that it goes over.
    pub(crate) fn whole(&self) -> &'a str {
        self.text
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault<T>(&self, expected: &'static str) -> Result<T, Fault> {
        Err(Fault { offset: self.at, problem: Problem::Syntax(expected) })
    }

    #[inline]
    fn space(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        self.at += rest.iter().position(|byte| !is_space(byte)).unwrap_or(rest.len());
    }

    /// The first byte of the next value, which is not gone past.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Fault> {
        self.space();
        match self.byte() {
            Some(b) => Ok(b),
            None => self.fault("a value"),
        }
    }

    /// Nothing may follow but space.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { self.fault("the end of the text") }
    }

    /// Goes past an object; `member` is called behind each key and must go past its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), Fault>,
    ) -> Result<Container, Fault> {
        self.container(b'{', b'}', "a comma or a closing brace", &mut |scanner| {
            if scanner.peek()? != b'"' {
                return scanner.fault("a key");
            }
            let key = scanner.string()?;
            if scanner.peek()? != b':' {
                return scanner.fault("a colon");
            }
            scanner.at += 1;
            member(scanner, key)
        })
    }

    /// Goes past an array; `element` is called at each element and must go past it.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<Container, Fault> {
        self.container(b'[', b']', "a comma or a closing bracket", &mut element)
    }

    fn container(
        &mut self,
        open: u8,
        close: u8,
        expected: &'static str,
        element: &mut dyn FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<Container, Fault> {
        if self.peek()? != open {
            return self.fault("an object or an array");
        }
        let start = self.at;
        if self.depth == DEEPEST {
            return Err(Fault { offset: start, problem: Problem::TooDeep });
        }
        self.depth += 1;
        self.at += 1;
        let mut tail = self.at;
        let empty = self.peek()? == close;
        if !empty {
            loop {
                element(self)?;
                tail = self.at;
                match self.peek()? {
                    b',' => self.at += 1,
                    b if b == close => break,
                    _ => return self.fault(expected),
                }
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(Container { span: Span { start, end: self.at }, tail, empty })
    }

    /// Goes past a value, whatever it is.
    pub(crate) fn skip(&mut self) -> Result<Span, Fault> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => drop(self.pass_string()?),
            b'{' => drop(self.object(|scanner, _| scanner.skip().map(drop))?),
            b'[' => drop(self.array(|scanner| scanner.skip().map(drop))?),
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return self.fault("a value"),
        }
        Ok(Span { start, end: self.at })
    }

    /// Goes past a value, an object or array by its brackets alone. Whether all of it is JSON is not asked: this is only for
    /// a text of which runc reads the whole afterwards, and most of a bundle (mounts, system calls) is gone past so.
    pub(crate) fn pass(&mut self) -> Result<Span, Fault> {
        if !matches!(self.peek()?, b'{' | b'[') {
            return self.skip();
        }
        let (start, mut depth) = (self.at, self.depth);
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let is_special = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
            self.at += rest.iter().position(is_special).unwrap_or(rest.len());
            match self.byte() {
                Some(b'"') => {
                    self.pass_string()?;
                    continue;
                }
                Some(b'{' | b'[') if depth == DEEPEST => {
                    return Err(Fault { offset: self.at, problem: Problem::TooDeep });
                }
                Some(b'{' | b'[') => depth += 1,
                Some(_) => depth -= 1,
                None => return self.fault("a closing bracket or brace"),
            }
            self.at += 1;
            if depth == self.depth {
                return Ok(Span { start, end: self.at });
            }
        }
    }

    /// The same of an object or array, with the place of its end.
    pub(crate) fn pass_whole(&mut self) -> Result<Container, Fault> {
        let span = self.pass()?;
        let within = self.text.get(span.start + 1..span.end - 1).unwrap_or_default();
        let within = within.trim_end_matches([' ', '\n', '\r', '\t']).len();
        Ok(Container { span, tail: span.start + 1 + within, empty: within == 0 })
    }

    /// Goes past a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Fault> {
        if self.peek()? != b'"' {
            return self.fault("a string");
        }
        let start = self.at;
        let escaped = self.pass_string()?;
        let raw = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        Ok(Text { span: Span { start, end: self.at }, raw, escaped })
    }

    /// Goes past a string that begins here, and answers whether it has escapes.
    #[inline]
    fn pass_string(&mut self) -> Result<bool, Fault> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_bytes(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return self.fault("an escape instead of a control character"),
                None => return self.fault("the end of the string"),
            }
            escaped = true;
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return self.fault("four hexadecimal digits");
                    }
                    self.at += 1;
                }
            }
            _ => return self.fault("an escape"),
        }
        Ok(())
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            return self.fault(literal);
        }
        self.at += literal.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.fault("a digit") } else { Ok(()) }
    }
}

/// How many bytes are in front of the first quotation mark, backslash or control character. Eight are looked at at once:
/// strings are most of what is read.
pub(crate) fn plain_bytes(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let controls = word.wrapping_sub(each(b' ')) & !word & each(0x80);
        let specials = bytes_that_are(b'"', word) | bytes_that_are(b'\\', word) | controls;
        if specials != 0 {
            return 8 * at + specials.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    8 * words.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// The highest bit of each byte of a word that is this one, up to the first and perhaps of some behind it: a byte less
/// one has that bit, and the byte itself does not, where the byte is 0 (Hacker's Delight, 6-1).
pub(crate) fn bytes_that_are(byte: u8, word: u64) -> u64 {
    let zero_where_it_is = word ^ each(byte);
    zero_where_it_is.wrapping_sub(each(1)) & !zero_where_it_is & each(0x80)
}

fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

mod fault;
mod object;
mod text;
mod value;

pub(crate) use fault::{Fault, Problem};
pub(crate) use object::{Keyed, Seen, keyed, member, object, spelt, unknown, whole};
pub(crate) use text::Text;

#[cfg(test)]
mod tests;
