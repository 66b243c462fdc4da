//! Logs in UTF-16, as programs of Windows save them, read as UTF-8 in constant memory.

use std::io::{self, Read};

const BLOCK: usize = 16 << 10;
/// U+FFFD
const REPLACEMENT: u16 = 0xfffd;

/// Reads UTF-16 and gives UTF-8, without the byte order mark. What is no UTF-16 becomes U+FFFD.
#[derive(Debug)]
pub struct Utf16<R> {
    input: R,
    unit: fn([u8; 2]) -> u16,
    /// Bytes of a character whose rest has not been read.
    begun: Vec<u8>,
    /// Characters that have not been handed over, from `given` on.
    ready: Vec<u8>,
    given: usize,
    is_first: bool,
}

impl<R> Utf16<R> {
    /// `start`: what `input` gives first.
    ///
    /// # Errors
    /// Gives `input` back where it has no byte order mark of UTF-16.
    pub fn of(start: &[u8], input: R) -> Result<Self, R> {
        let unit: fn([u8; 2]) -> u16 = match start {
            [0xff, 0xfe, ..] => u16::from_le_bytes,
            [0xfe, 0xff, ..] => u16::from_be_bytes,
            _ => return Err(input),
        };
        Ok(Self { input, unit, begun: Vec::new(), ready: Vec::new(), given: 0, is_first: true })
    }

    fn decode(&mut self, is_end: bool) {
        let mut units: Vec<u16> =
            self.begun.chunks_exact(2).filter_map(|pair| Some((self.unit)(pair.try_into().ok()?))).collect();
        let mut used = units.len() * 2;
        // The second surrogate of a pair comes with the next block.
        if !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
            used -= 2;
        }
        self.begun.drain(..used);
        if is_end && !self.begun.is_empty() {
            self.begun.clear();
            units.push(REPLACEMENT);
        }
        let mut text: String =
            char::decode_utf16(units).map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        if self.is_first && text.starts_with('\u{feff}') {
            text.remove(0);
        }
        self.is_first &= text.is_empty();
        (self.ready, self.given) = (text.into_bytes(), 0);
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            let before = self.begun.len();
            self.begun.resize(before + BLOCK, 0);
            let read = self.input.read(self.begun.get_mut(before..).unwrap_or_default());
            self.begun.truncate(before + *read.as_ref().unwrap_or(&0));
            let is_end = read? == 0;
            self.decode(is_end);
            if is_end && self.ready.is_empty() {
                return Ok(0);
            }
        }
        let count = self.ready.get(self.given..).unwrap_or_default().read(to)?;
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most so many bytes at once.
    struct Slow<'t>(&'t [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = to.len().min(self.1);
            self.0.read(to.get_mut(..count).unwrap_or_default())
        }
    }

    fn bytes(text: &str, of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(of).collect()
    }

    #[test]
    fn both_byte_orders_are_read_in_pieces_of_any_size() {
        let text = "amdgpu 0000:03:00.0: GPU reset begin!\r\né 𝄞 \u{feff}\r\n";
        let marked = format!("\u{feff}{text}");
        for input in [bytes(&marked, u16::to_le_bytes), bytes(&marked, u16::to_be_bytes)] {
            for size in [1, 2, 3, 5, 999] {
                let mut read = String::new();
                let mut decoder = Utf16::of(&input, Slow(&input, size)).ok().unwrap();
                decoder.read_to_string(&mut read).unwrap();
                assert_eq!(read, text, "{size}");
            }
        }
    }

    #[test]
    fn what_is_no_utf_16_becomes_a_replacement_character() {
        for (input, expected) in [
            (&b"\xff\xfea\0\x00\xd8b\0"[..], "a\u{fffd}b"),
            (b"\xff\xfea\0\x00\xd8", "a\u{fffd}"),
            (b"\xff\xfea\0b", "a\u{fffd}"),
            (b"\xff\xfe", ""),
        ] {
            let mut read = String::new();
            Utf16::of(input, input).ok().unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, expected);
        }
        for input in [&b""[..], b"\xff", b"a\0", b"\xef\xbb\xbfa"] {
            assert!(Utf16::of(input, input).is_err());
        }
    }
}
