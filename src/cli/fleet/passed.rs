//! Prints the output of a rocworker on another machine line by line: control characters escaped, and its advice with
//! `--host`.

use std::io::{self, Write};

use printable::{printable, printable_json};

use crate::cli::next::Options;
use crate::cli::options::Format;

/// How many bytes of a line are kept until its end comes.
const MOST: usize = 1 << 20;

pub(super) struct EscapedLines<'o, W> {
    to: W,
    format: Format,
    commands: &'o Options,
    /// The line that has not ended.
    begun: Vec<u8>,
    written: io::Result<()>,
}

impl<'o, W: Write> EscapedLines<'o, W> {
    pub(super) fn new(to: W, format: Format, commands: &'o Options) -> Self {
        Self { to, format, commands, begun: Vec::new(), written: Ok(()) }
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
            // A line of a diff stays as the file has it.
            Format::Table | Format::Wide if line.starts_with([' ', '+', '-', '@']) => printable(&line),
            Format::Table | Format::Wide => self.commands.on(&printable(&line)),
            Format::Json => printable_json(&line).into_owned(),
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
        let commands = Options::of_host("gpu1");
        let mut passed = EscapedLines::new(&mut to, format, &commands);
        chunks.iter().for_each(|chunk| passed.take(chunk));
        passed.end().unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn lines_come_as_they_are_and_control_characters_do_not() {
        let chunks: [&[u8]; 4] = [b"one\ntw\xc3", b"\xa4\n", b"\x1b[2Jthree\r\n", b"four"];
        assert_eq!(passed(&chunks, Format::Table), "one\ntw\u{e4}\n\\u{1b}[2Jthree\\r\nfour\n");
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
    fn commands_name_the_machine_and_lines_of_a_diff_stay() {
        let text = b"To revert: rocworker undo\nrocworker apply makes it\n    +# see rocworker apply\n";
        assert_eq!(
            passed(&[text], Format::Table),
            "To revert: ssh gpu1 rocworker undo\nrocworker --host gpu1 apply makes it\n    +# see rocworker apply\n"
        );
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
