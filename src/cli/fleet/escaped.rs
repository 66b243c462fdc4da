//! Prints the output of a rocworker on another machine line by line, so that nothing in it steers the terminal.

use std::io::{self, Write};

use printable::{printable_json, printable_styled};

use crate::cli::options::Format;

/// How many bytes of a line are kept until its end comes.
const MOST: usize = 1 << 20;

pub(super) struct EscapedLines<W> {
    to: W,
    format: Format,
    /// The machine that an error is to name.
    machine: Option<String>,
    /// The line that has not ended.
    begun: Vec<u8>,
    written: io::Result<()>,
}

impl<W: Write> EscapedLines<W> {
    pub(super) fn new(to: W, format: Format) -> Self {
        Self { to, format, machine: None, begun: Vec::new(), written: Ok(()) }
    }

    /// Has the machine's name in each error, which the program there writes without it.
    pub(super) fn naming(self, machine: String) -> Self {
        Self { machine: Some(machine), ..self }
    }

    pub(super) fn take(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            match part.split_last() {
                Some((b'\n', part)) => {
                    self.begun.extend(part);
                    self.write("\n");
                }
                _ => self.begun.extend(part),
            }
            if self.begun.len() > MOST {
                let incomplete = match str::from_utf8(&self.begun) {
                    Err(error) if error.error_len().is_none() => self.begun.split_off(error.valid_up_to()),
                    _ => Vec::new(),
                };
                self.write("");
                self.begun = incomplete;
            }
        }
    }

    /// A text that was cut off ends its line, so that the error about it begins one.
    ///
    /// # Errors
    /// Standard output failed while the texts were printed.
    pub(super) fn end(mut self) -> io::Result<()> {
        let is_line = self.format != Format::Json && !self.begun.is_empty();
        self.write(if is_line { "\n" } else { "" });
        self.written
    }

    fn write(&mut self, end: &str) {
        let line = String::from_utf8_lossy(&self.begun);
        let line = match self.format {
            Format::Table | Format::Wide | Format::Yaml | Format::Nfd => printable_styled(&line),
            Format::Json => printable_json(&line).into_owned(),
        };
        let line = match (&self.machine, line.strip_prefix("rocworker: ")) {
            (Some(machine), Some(error)) => format!("rocworker: {machine}: {error}"),
            _ => line,
        };
        // Once the reader has gone, the command there goes on to its end.
        if self.written.is_ok() {
            self.written =
                self.to.write_all(format!("{line}{end}").as_bytes()).and_then(|()| self.to.flush());
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(chunks: &[&[u8]], format: Format) -> String {
        let mut to = Vec::new();
        let mut passed = EscapedLines::new(&mut to, format);
        chunks.iter().for_each(|chunk| passed.take(chunk));
        passed.end().unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn lines_come_as_they_are_and_control_characters_do_not() {
        let chunks: [&[u8]; 4] = [b"one\ntw\xc3", b"\xa4\n", b"\x1b[2J\x1b[1;31mthree\x1b[0m\r\n", b"four"];
        assert_eq!(
            passed(&chunks, Format::Table),
            "one\ntw\u{e4}\n\\u{1b}[2J\x1b[1;31mthree\x1b[0m\\r\nfour\n"
        );
    }

    #[test]
    fn an_error_names_its_machine() {
        let mut to = Vec::new();
        let mut passed = EscapedLines::new(&mut to, Format::Table).naming("gpu1".to_owned());
        passed.take(b"two GPUs\nrocworker: no such file\n");
        passed.end().unwrap();
        assert_eq!(String::from_utf8(to).unwrap(), "two GPUs\nrocworker: gpu1: no such file\n");
    }

    #[test]
    fn a_long_line_is_cut_in_no_character() {
        let text = "ä".repeat(MOST);
        for start in ["", "x"] {
            let text = format!("{start}{text}");
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(999).collect();
            assert!(passed(&chunks, Format::Json) == text);
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\n  \"a\": \"x\u{9b}2J\u{202e}\\\\ \\n\"\n}\n";
        let shown = passed(&[json.as_bytes()], Format::Json);
        assert_eq!(shown, "{\n  \"a\": \"x\\u009b2J\\u202e\\\\ \\n\"\n}\n");
        let [one, other] =
            [json, &shown].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(one, other);
    }
}
