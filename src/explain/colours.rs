//! A log without the colours that `dmesg --color=always` and a saved terminal have between its words.

use std::io::{self, Read};

use anstream::adapter::StripBytes;

const BLOCK: usize = 16 << 10;

/// Whether a text that begins so has a terminal's escape codes (ECMA-48, "CSI").
#[must_use]
pub fn has_colours(start: &[u8]) -> bool {
    memchr::memmem::find(start, b"\x1b[").is_some()
}

/// Reads a text and gives it without escape codes.
#[derive(Debug)]
pub struct Uncoloured<R> {
    input: R,
    codes: StripBytes,
    /// What has not been handed over, from `given` on.
    ready: Vec<u8>,
    given: usize,
}

impl<R> Uncoloured<R> {
    pub fn of(input: R) -> Self {
        Self { input, codes: StripBytes::new(), ready: Vec::new(), given: 0 }
    }
}

impl<R: Read> Read for Uncoloured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            let mut block = vec![0; BLOCK];
            let length = self.input.read(&mut block)?;
            if length == 0 {
                return Ok(0);
            }
            block.truncate(length);
            self.ready = self.codes.strip_next(&block).collect::<Vec<_>>().concat();
            self.given = 0;
        }
        let mut rest = self.ready.get(self.given..).unwrap_or_default();
        let length = rest.read(buffer)?;
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_codes_are_left_out_wherever_a_block_ends() {
        let coloured =
            "\x1b[32m[   12.5] \x1b[0m\x1b[33mamdgpu 0000:03:00.0: \x1b[0m\x1b[1mGPU reset begin!\x1b[0m\n";
        assert!(has_colours(coloured.as_bytes()) && !has_colours(b"[drm] x"));
        for length in 1..coloured.len() {
            let (first, second) = coloured.as_bytes().split_at(length);
            let mut text = String::new();
            Uncoloured::of(first.chain(second)).read_to_string(&mut text).unwrap();
            assert_eq!(text, "[   12.5] amdgpu 0000:03:00.0: GPU reset begin!\n", "{length}");
        }
    }
}
