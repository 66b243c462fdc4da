//! A scanner of JSON text that knows where things stand.
//!
//! serde_json's `RawValue` gives slices as well, but a slice in a slice means reading the text once for
//! each level, and it does not say where a member could be added. This one goes over the text once, builds
//! nothing that is not asked for, and accepts what RFC 8259 and serde_json accept (a test holds the two
//! against each other), to the depth that serde_json allows.

/// The depth that serde_json allows.
pub(crate) const DEEPEST: u8 = 127;

/// Where a value stands in the text: from its first byte to behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An object or array, and where its next member would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) span: Span,
    /// Behind the last member, or behind the opening bracket.
    pub(crate) tail: usize,
    pub(crate) empty: bool,
}

/// Why scanning stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Syntax {
        offset: usize,
        expected: &'static str,
    },
    TooDeep {
        offset: usize,
    },
    /// It is JSON, but not what is wanted here.
    Unwanted {
        offset: usize,
        expected: &'static str,
    },
    /// The object at this offset has a key twice.
    Twice {
        offset: usize,
        key: &'static str,
    },
    /// The object at this offset lacks a key.
    Missing {
        offset: usize,
        key: &'static str,
    },
    /// The key at this offset is none that is known here.
    Unknown {
        offset: usize,
        known: &'static [&'static str],
    },
    /// The key at this offset is another spelling of one that is known here.
    Spelling {
        offset: usize,
        known: &'static str,
    },
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

    /// The text that it goes over.
    pub(crate) fn whole(&self) -> &'a str {
        self.text
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault<T>(&self, expected: &'static str) -> Result<T, Fault> {
        Err(Fault::Syntax { offset: self.at, expected })
    }

    /// Never inlined, as what else is called everywhere: each copy would be on a page of its own, and a page that
    /// is touched for the first time costs more than a hundred calls.
    #[inline(never)]
    fn space(&mut self) {
        // What is written for people is half of it indentation.
        for block in self.text.as_bytes().get(self.at..).unwrap_or_default().as_chunks().0 {
            let others = block::others(block);
            self.at += others.trailing_zeros().min(16) as usize;
            if others != 0 {
                return;
            }
        }
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    /// The first byte of the next value, which is not gone past.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, Fault> {
        // As a machine writes JSON, there is no space.
        match self.byte() {
            Some(b) if b > b' ' => Ok(b),
            _ => self.peek_behind_space(),
        }
    }

    #[inline(never)]
    fn peek_behind_space(&mut self) -> Result<u8, Fault> {
        self.space();
        match self.byte() {
            Some(b) => Ok(b),
            None => self.fault("a value"),
        }
    }

    /// Goes on at another place, on the same depth: behind a value that the caller has read otherwise.
    pub(crate) fn go_to(&mut self, offset: usize) {
        self.at = offset;
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
        self.members(&mut member)
    }

    #[inline(never)]
    fn members(
        &mut self,
        member: &mut dyn FnMut(&mut Self, Text<'a>) -> Result<(), Fault>,
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

    #[inline(never)]
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
            return Err(Fault::TooDeep { offset: start });
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

    /// Goes past a string.
    #[inline(never)]
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Fault> {
        if self.byte() != Some(b'"') && self.peek()? != b'"' {
            return self.fault("a string");
        }
        let start = self.at + 1;
        let escaped = self.past_string()?;
        let raw = self.text.get(start..self.at - 1).unwrap_or_default();
        Ok(Text { span: Span { start: start - 1, end: self.at }, raw, escaped })
    }

    /// Behind an element of an array: goes to the next one where that is a string with no space in front of it.
    #[inline(always)]
    pub(crate) fn has_another_string(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let has = bytes.get(self.at) == Some(&b',') && bytes.get(self.at + 1) == Some(&b'"');
        self.at += usize::from(has);
        has
    }

    /// From the quotation mark of a string to behind its end; whether there is an escape in it.
    #[inline(always)]
    fn past_string(&mut self) -> Result<bool, Fault> {
        self.at += 1;
        self.at += plain_bytes(self.text.as_bytes().get(self.at..).unwrap_or_default());
        let escaped = self.byte() != Some(b'"');
        if escaped {
            self.rest_of_string()?;
        }
        self.at += 1;
        Ok(escaped)
    }

    /// From the first escape of a string to its end, whose quotation mark is not gone past.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<(), Fault> {
        loop {
            match self.byte() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => self.escape()?,
                Some(_) => return self.fault("an escape instead of a control character"),
                None => return self.fault("the end of the string"),
            }
            self.at += plain_bytes(self.text.as_bytes().get(self.at..).unwrap_or_default());
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

/// How many bytes stand in front of the first quotation mark, backslash or control character.
#[inline(always)]
pub(crate) fn plain_bytes(bytes: &[u8]) -> usize {
    let mut plain = 0;
    while let Some(block) = bytes.get(plain..).and_then(<[u8]>::first_chunk) {
        let specials = block::specials(block);
        if specials != 0 {
            return plain + specials.trailing_zeros() as usize;
        }
        plain += block::LENGTH;
    }
    // The rest filled up with what ends nothing.
    let rest = bytes.get(plain..).unwrap_or_default();
    let mut block = [b' '; block::LENGTH];
    block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    plain + (block::specials(&block).trailing_zeros() as usize).min(rest.len())
}

mod block;
mod misread;
mod object;
mod passing;
mod skip;
mod text;
mod value;
mod write;

pub use misread::Misread;
pub(crate) use object::{Keyed, Seen, keyed, object, whole};
pub(crate) use text::Text;
pub use text::{as_text, into_text};
pub use write::write_number;
pub(crate) use write::{is_plain, write_string};

#[cfg(test)]
mod tests;
