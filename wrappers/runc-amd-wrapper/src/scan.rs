//! Searches a bundle for requests for GPUs without parsing it.
//!
//! A bundle that is too long, a link, or no JSON that this program takes, starts as with plain runc unless it
//! asks for GPUs. [`requests`] reads any number of bytes in bounded memory and yields every string that is a
//! request, wherever it is. That is more than runc would see in `process.env`, never less.

use std::io::{self, BufRead as _, Read};

/// A request's variables, as they begin an entry of a container's environment.
const VARIABLES: [&[u8]; 2] = [b"AMD_VISIBLE_DEVICES=", b"AMD_GPU_COUNT="];

/// How many bytes of a string are kept: more than a request may have.
const LONGEST: usize = 8192;

/// The first place of a byte. `skip_until` is the one safe way to the C library's memchr.
fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    let mut rest = bytes;
    let skipped = rest.skip_until(byte).ok()?;
    skipped.checked_sub(1).filter(|last| bytes.get(*last) == Some(&byte))
}

/// Calls `found` with every string in a JSON text, of whatever length, that is a request: `VARIABLE=VALUE`.
///
/// # Errors
/// The error of a read.
pub fn requests(mut text: impl Read, found: &mut dyn FnMut(&str)) -> io::Result<()> {
    let mut scanner = Scanner { found, state: State::Outside, string: Vec::new() };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match text.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => scanner.take(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

struct Scanner<'f> {
    found: &'f mut dyn FnMut(&str),
    state: State,
    string: Vec<u8>,
}

#[derive(Clone, Copy)]
enum State {
    Outside,
    Inside,
    Escape,
    /// In a `\u`: the number of hexadecimal digits read, and their value.
    Hexadecimal(u8, u32),
}

impl Scanner<'_> {
    fn take(&mut self, mut bytes: &[u8]) {
        loop {
            if matches!(self.state, State::Outside) {
                let Some(quote) = position(bytes, b'"') else { return };
                bytes = bytes.get(quote..).unwrap_or_default();
            } else if matches!(self.state, State::Inside) && self.is_no_request() {
                let end = position(bytes, b'"').unwrap_or(bytes.len());
                let end = bytes.get(..end).and_then(|inside| position(inside, b'\\')).unwrap_or(end);
                bytes = bytes.get(end..).unwrap_or_default();
            }
            let Some((byte, rest)) = bytes.split_first() else { return };
            self.take_one(*byte);
            bytes = rest;
        }
    }

    fn take_one(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Outside, b'"') => {
                self.string.clear();
                State::Inside
            }
            (State::Outside, _) => State::Outside,
            (State::Inside, b'"') => {
                self.end();
                State::Outside
            }
            (State::Inside, b'\\') => State::Escape,
            (State::Inside, byte) => self.push(byte),
            (State::Escape, b'u') => State::Hexadecimal(0, 0),
            (State::Escape, byte) => self.push(byte),
            (State::Hexadecimal(read, value), byte) => match char::from(byte).to_digit(16) {
                Some(digit) if read == 3 => self.push(ascii(value * 16 + digit)),
                Some(digit) => State::Hexadecimal(read + 1, value * 16 + digit),
                None => State::Inside,
            },
        };
    }

    /// Keeps a byte while the string can still be a request.
    fn push(&mut self, byte: u8) -> State {
        let place = self.string.len();
        let fits = VARIABLES.iter().any(|variable| {
            let known = place.min(variable.len());
            variable.get(..known) == self.string.get(..known)
                && variable.get(place).is_none_or(|b| *b == byte)
        });
        if fits && place < LONGEST {
            self.string.push(byte);
        } else if !fits {
            // No variable begins with a NUL: from here on nothing fits.
            self.string.clear();
            self.string.push(0);
        }
        State::Inside
    }

    fn is_no_request(&self) -> bool {
        self.string.first() == Some(&0)
    }

    fn end(&mut self) {
        let is_request = VARIABLES.iter().any(|variable| self.string.starts_with(variable));
        if is_request {
            (self.found)(&String::from_utf8_lossy(&self.string));
        }
    }
}

/// Requests are ASCII: any other character is one that no request holds.
fn ascii(code: u32) -> u8 {
    u8::try_from(code).ok().filter(u8::is_ascii).unwrap_or(b'?')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: impl Read) -> Vec<String> {
        let mut all = Vec::new();
        requests(text, &mut |request| all.push(request.to_owned())).unwrap();
        all
    }

    #[test]
    fn every_string_that_is_a_request_is_found_however_it_is_written() {
        for (text, expected) in [
            (
                r#"["AMD_VISIBLE_DEVICES=0,1","AMD_GPU_COUNT=2"]"#,
                &["AMD_VISIBLE_DEVICES=0,1", "AMD_GPU_COUNT=2"][..],
            ),
            (r#"["\u0041MD_\u0056ISIBLE_DEVICES=\u0030"]"#, &["AMD_VISIBLE_DEVICES=0"]),
            (r#"["\u0041MD_GPU_COUNT\u003D1"]"#, &["AMD_GPU_COUNT=1"]),
            (r#"["x\"AMD_GPU_COUNT=1"]"#, &[]),
            (r#"["XAMD_GPU_COUNT=1","AMD_GPU_COUNTS=1","AMD_GPU_COUNT"]"#, &[]),
            (r#"["\\","AMD_GPU_COUNT=1"]"#, &["AMD_GPU_COUNT=1"]),
            (r#"["AMD_VISIBLE_DEVICES=\u00e9"]"#, &["AMD_VISIBLE_DEVICES=?"]),
            (r#"["AMD_VISIBLE_DEVICES=../..""#, &["AMD_VISIBLE_DEVICES=../.."]),
            ("no JSON \"AMD_GPU_COUNT=1", &[]),
            // Of a key that appears twice either may count.
            (r#"{"process":{"env":["AMD_GPU_COUNT=1"]},"process":{"env":["X=1"]}}"#, &["AMD_GPU_COUNT=1"]),
            (r#"{"process":{"env":["X=1"]},"PROCESS":{"env":["AMD_GPU_COUNT=1"]}}"#, &["AMD_GPU_COUNT=1"]),
            (
                r#"{"process":{"env":["X=1"],"\u0065nv":["AMD_VISIBLE_\u0044EVICES=all"]}}"#,
                &["AMD_VISIBLE_DEVICES=all"],
            ),
        ] {
            assert_eq!(found(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_hundred_megabytes_are_read_in_bounded_memory() {
        let filler = std::io::repeat(b'x').take(100 << 20);
        let text = b"{\"a\":\"".as_slice().chain(filler).chain(b"\",\"e\":\"AMD_GPU_COUNT=1\"}".as_slice());
        assert_eq!(found(text), ["AMD_GPU_COUNT=1"]);
        let endless = b"\"AMD_VISIBLE_DEVICES="
            .as_slice()
            .chain(std::io::repeat(b'0').take(1 << 20))
            .chain(b"\"".as_slice());
        assert_eq!(found(endless).concat().len(), LONGEST);
    }
}
