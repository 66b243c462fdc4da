//! Past a value that nobody wants to know.
//!
//! Most of a bundle is that. So there is no call for each value here, and nothing is made of what stands there.

use super::{DEEPEST, Fault, Scanner, Span};

/// The objects and arrays that are open: whether each is an object, the innermost one's bit lowest.
#[derive(Clone, Copy, Default)]
struct Open {
    objects: u128,
    count: u8,
}

impl Open {
    fn is_in_object(self) -> bool {
        self.objects & 1 == 1
    }

    fn begin(&mut self, object: bool) {
        self.objects = self.objects << 1 | u128::from(object);
        self.count += 1;
    }

    fn end(&mut self) {
        self.objects >>= 1;
        self.count -= 1;
    }
}

impl Scanner<'_> {
    /// Goes past a value, whatever it is.
    #[inline(never)]
    pub(crate) fn skip(&mut self) -> Result<Span, Fault> {
        self.peek()?;
        let start = self.at;
        let mut open = Open::default();
        loop {
            match self.next()? {
                b'"' => drop(self.past_string()?),
                bracket @ (b'{' | b'[') => {
                    if self.depth + open.count == DEEPEST {
                        return Err(Fault::TooDeep { offset: self.at });
                    }
                    self.at += 1;
                    open.begin(bracket == b'{');
                    match self.next()? {
                        b'}' if open.is_in_object() => {}
                        b']' if !open.is_in_object() => {}
                        _ => {
                            self.key_of(open)?;
                            continue;
                        }
                    }
                    self.at += 1;
                    open.end();
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return self.fault("a value"),
            }
            // Behind a value, until the next one is to come.
            loop {
                if open.count == 0 {
                    return Ok(Span { start, end: self.at });
                }
                match (self.next()?, open.is_in_object()) {
                    (b',', _) => {
                        self.at += 1;
                        self.key_of(open)?;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open.end();
                    }
                    (_, true) => return self.fault("a comma or a closing brace"),
                    (_, false) => return self.fault("a comma or a closing bracket"),
                }
            }
        }
    }

    /// Goes past the key of an object's next member; an array's has none.
    #[inline(always)]
    fn key_of(&mut self, open: Open) -> Result<(), Fault> {
        if !open.is_in_object() {
            return Ok(());
        }
        if self.next()? != b'"' {
            return self.fault("a key");
        }
        self.past_string()?;
        if self.next()? != b':' {
            return self.fault("a colon");
        }
        self.at += 1;
        Ok(())
    }

    /// As [`Scanner::peek`], in place.
    #[inline(always)]
    fn next(&mut self) -> Result<u8, Fault> {
        match self.byte() {
            Some(byte) if byte > b' ' => Ok(byte),
            _ => self.peek(),
        }
    }
}
