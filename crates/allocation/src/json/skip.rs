//! Past a value that nobody wants to know.
//!
//! Most of a bundle is that. So there is no call for each value here, and nothing is made of what stands there.

use super::{DEEPEST, Fault, Scanner, Span, plain_bytes};

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
        // The scanner itself is told where it stands only where it is asked something: to keep that in memory would take
        // as long as all the rest.
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match self.next(bytes, &mut at)? {
                b'"' => {
                    self.past_plain(bytes, &mut at)?;
                    // Most of a bundle's values are strings in lists of strings.
                    let is_in_list = open.count > 0 && !open.is_in_object();
                    while is_in_list && let Some(b",\"") = bytes.get(at..at + 2) {
                        at += 1;
                        self.past_plain(bytes, &mut at)?;
                    }
                }
                bracket @ (b'{' | b'[') => {
                    if self.depth + open.count == DEEPEST {
                        return Err(Fault::TooDeep { offset: at });
                    }
                    at += 1;
                    open.begin(bracket == b'{');
                    match self.next(bytes, &mut at)? {
                        b'}' if open.is_in_object() => {}
                        b']' if !open.is_in_object() => {}
                        _ => {
                            self.past_key(open, bytes, &mut at)?;
                            continue;
                        }
                    }
                    at += 1;
                    open.end();
                }
                first => {
                    self.at = at;
                    match first {
                        b't' => self.literal("true")?,
                        b'f' => self.literal("false")?,
                        b'n' => self.literal("null")?,
                        b'-' | b'0'..=b'9' => self.number()?,
                        _ => return self.fault("a value"),
                    }
                    at = self.at;
                }
            }
            // Behind a value, until the next one is to come.
            loop {
                if open.count == 0 {
                    self.at = at;
                    return Ok(Span { start, end: at });
                }
                match (self.next(bytes, &mut at)?, open.is_in_object()) {
                    (b',', _) => {
                        at += 1;
                        self.past_key(open, bytes, &mut at)?;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        at += 1;
                        open.end();
                    }
                    (_, in_object) => {
                        self.at = at;
                        return self.fault(if in_object {
                            "a comma or a closing brace"
                        } else {
                            "a comma or a closing bracket"
                        });
                    }
                }
            }
        }
    }

    /// Goes past the key of an object's next member; an array's has none.
    #[inline(always)]
    fn past_key(&mut self, open: Open, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        if !open.is_in_object() {
            return Ok(());
        }
        if self.next(bytes, at)? != b'"' {
            self.at = *at;
            return self.fault("a key");
        }
        self.past_plain(bytes, at)?;
        if self.next(bytes, at)? != b':' {
            self.at = *at;
            return self.fault("a colon");
        }
        *at += 1;
        Ok(())
    }

    /// From the quotation mark of a string to behind its end.
    #[inline(always)]
    fn past_plain(&mut self, bytes: &[u8], at: &mut usize) -> Result<(), Fault> {
        let end = *at + 1 + plain_bytes(bytes.get(*at + 1..).unwrap_or_default());
        if bytes.get(end) == Some(&b'"') {
            *at = end + 1;
            return Ok(());
        }
        self.at = end;
        self.rest_of_string()?;
        *at = self.at + 1;
        Ok(())
    }

    /// As [`Scanner::peek`].
    #[inline(always)]
    fn next(&mut self, bytes: &[u8], at: &mut usize) -> Result<u8, Fault> {
        match bytes.get(*at) {
            Some(byte) if *byte > b' ' => Ok(*byte),
            _ => {
                self.at = *at;
                let byte = self.peek()?;
                *at = self.at;
                Ok(byte)
            }
        }
    }
}
