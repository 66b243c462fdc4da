//! A log without the colours that `dmesg --color=always` and a saved terminal have between its words.

use std::io::{self, Read};

/// Reads a text and gives it without a terminal's escape codes. No code reaches beyond its line: a log holds names that
/// users chose, and no such name hides what follows.
#[derive(Debug)]
pub struct Uncoloured<R> {
    input: R,
    code: Code,
}

/// What a terminal waits for (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// Text.
    None,
    /// What the escape character begins.
    Begun,
    /// `ESC [`: the rest of a control sequence.
    Control,
    /// `ESC (`: the name of a set of characters.
    Set,
}

impl<R> Uncoloured<R> {
    pub fn of(input: R) -> Self {
        Self { input, code: Code::None }
    }

    fn is_text(&mut self, byte: u8) -> bool {
        let (code, is_text) = match (self.code, byte) {
            (_, b'\x1b') => (Code::Begun, false),
            (Code::Begun, b'[') => (Code::Control, false),
            (Code::Begun, b'(' | b')') => (Code::Set, false),
            (Code::Control, 0x20..=0x3f) => (Code::Control, false),
            (Code::Control, 0x40..=0x7e) | (Code::Set, 0x30..=0x7e) => (Code::None, false),
            _ => (Code::None, true),
        };
        self.code = code;
        is_text
    }
}

impl<R: Read> Read for Uncoloured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.input.read(buffer)?;
            let block = buffer.get(..length).unwrap_or_default();
            if length == 0 || self.code == Code::None && memchr::memchr(b'\x1b', block).is_none() {
                return Ok(length);
            }
            let text: Vec<u8> = block.iter().copied().filter(|byte| self.is_text(*byte)).collect();
            if !text.is_empty() {
                return text.as_slice().read(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uncoloured(input: impl Read) -> String {
        let mut text = String::new();
        Uncoloured::of(input).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_terminals_codes_are_left_out_wherever_a_block_ends() {
        let coloured = "\x1b[32m[   12.5] \x1b[0m\x1b[33mamdgpu 0000:03:00.0: \x1b[0m\x1b[1mGPU reset\x1b[K begin!\x1b(B\x1b[m\n";
        for length in 1..coloured.len() {
            let (first, second) = coloured.as_bytes().split_at(length);
            let text = uncoloured(first.chain(second));
            assert_eq!(text, "[   12.5] amdgpu 0000:03:00.0: GPU reset begin!\n", "{length}");
        }
    }

    #[test]
    fn colours_behind_megabytes_without_any_are_left_out_too() {
        let plain = "x\n".repeat(1 << 20);
        assert_eq!(uncoloured(format!("{plain}\x1b[1mx\n").as_bytes()), format!("{plain}x\n"));
    }

    #[test]
    fn a_code_that_does_not_end_hides_no_line_behind_it() {
        for code in ["\x1b", "\x1b[", "\x1b[0;1", "\x1b(", "\x1b[\x1b"] {
            assert_eq!(uncoloured(format!("a{code}\nb\n").as_bytes()), "a\nb\n", "{code:?}");
        }
        assert_eq!(uncoloured(&b"a\x1b]0;b\nc"[..]), "a]0;b\nc");
    }
}
