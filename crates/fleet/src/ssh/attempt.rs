//! What comes by one connection: before the script began, and after.

use std::ops::ControlFlow;
use std::sync::mpsc::Sender;

use reconcile::command::Stream;

use super::{Stdin, Take, diagnosis};

/// The script's first line on both streams. A login shell's startup files print before it.
const BEGUN: &str = "rocworker: the script begins";

/// How many bytes may come before the script begins.
const MOST_BEFORE: usize = 256 << 10;
/// How many bytes at the end of stderr are kept for its last line.
const MOST_OF_LINE: usize = 4 << 10;

/// The script as `sh -s` gets it: a shell runs a group of commands when it has read its end. `exit`: stdin stays open.
pub(super) fn input(script: &str) -> String {
    format!("{{\nprintf '\\n{BEGUN}\\n'\nprintf '\\n{BEGUN}\\n' >&2\n{script}\nexit\n}}\n")
}

pub(super) struct Attempt<'t> {
    stdin: Stdin,
    /// How many bytes of output may still come.
    left: usize,
    take: &'t mut Take<'t>,
    pub(super) has_begun: bool,
    has_begun_on_stderr: bool,
    /// More came than may, or whoever takes the output wants no more.
    pub(super) is_flooded: bool,
    /// What stderr had before the script began.
    pub(super) before: Vec<u8>,
    /// What stdout had before the script began.
    printed: Vec<u8>,
    /// The end of stderr; once the script has begun, only what came since.
    last: Vec<u8>,
}

impl<'t> Attempt<'t> {
    pub(super) fn new(stdin: Sender<Vec<u8>>, most: usize, take: &'t mut Take<'t>) -> Self {
        let (before, printed, last) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            stdin: Some(stdin),
            left: most,
            take,
            has_begun: false,
            has_begun_on_stderr: false,
            is_flooded: false,
            before,
            printed,
            last,
        }
    }

    pub(super) fn take(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if stream == Stream::Stderr {
            self.last.extend(chunk);
            let more = self.last.len().saturating_sub(MOST_OF_LINE);
            self.last.drain(..more);
        }
        let is_room = self.pass(stream, chunk);
        self.is_flooded |= !is_room;
        if is_room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn pass(&mut self, stream: Stream, chunk: &[u8]) -> bool {
        let (before, has_begun) = match stream {
            Stream::Stdout => (&mut self.printed, &mut self.has_begun),
            Stream::Stderr => (&mut self.before, &mut self.has_begun_on_stderr),
        };
        if *has_begun {
            return self.output(stream, chunk);
        }
        let line = format!("\n{BEGUN}\n");
        // The line may have come in two parts.
        let from = before.len().saturating_sub(line.len());
        before.extend(chunk);
        let new = before.get(from..).unwrap_or_default();
        let Some(place) = new.windows(line.len()).position(|window| window == line.as_bytes()) else {
            return before.len() <= MOST_BEFORE;
        };
        *has_begun = true;
        let rest = before.split_off(from + place + line.len());
        before.truncate(from + place);
        if stream == Stream::Stderr {
            // What start files print explains nothing that happens later.
            self.last.clone_from(&rest);
        }
        rest.is_empty() || self.output(stream, &rest)
    }

    fn output(&mut self, stream: Stream, chunk: &[u8]) -> bool {
        let is_room = chunk.len() <= self.left;
        self.left = self.left.saturating_sub(chunk.len());
        is_room && (self.take)(stream, chunk, &mut self.stdin)
    }

    /// The last line of stderr, made safe for a terminal; empty where there is none.
    pub(super) fn last_line(&self) -> String {
        diagnosis::last_line(&String::from_utf8_lossy(&self.last).replace(BEGUN, ""))
    }

    /// Why no script began, though ssh had no error.
    pub(super) fn not_begun(&self) -> String {
        if self.is_flooded {
            return format!(
                "its login shell printed more than {} KiB before the script began: remove that output from its startup \
                 files",
                MOST_BEFORE >> 10
            );
        }
        let printed = match self.last_line() {
            empty if empty.is_empty() => diagnosis::last_line(&String::from_utf8_lossy(&self.printed)),
            printed => printed,
        };
        diagnosis::shell_refused(&printed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::MOST;
    use super::*;

    #[test]
    fn what_start_files_print_is_dropped_in_whatever_parts_it_comes() {
        let all = format!("Welcome to gpu1\nno end\n{BEGUN}\nan answer\n");
        for size in [1, 2, 7, 30, 1000] {
            let mut stdout = Vec::new();
            let mut take = |_: Stream, chunk: &[u8], _: &mut Stdin| {
                stdout.extend(chunk);
                true
            };
            let mut attempt = Attempt::new(channel().0, MOST, &mut take);
            for part in all.as_bytes().chunks(size) {
                assert!(attempt.take(Stream::Stdout, part).is_continue());
            }
            assert!(attempt.has_begun);
            assert_eq!(String::from_utf8(stdout).unwrap(), "an answer\n", "in parts of {size}");
        }
    }

    #[test]
    fn words_from_before_the_script_explain_nothing_after_it() {
        let mut take = |_: Stream, _: &[u8], _: &mut Stdin| true;
        let mut attempt = Attempt::new(channel().0, MOST, &mut take);
        assert!(attempt.take(Stream::Stderr, b"sudo: a password is required\n").is_continue());
        assert_eq!(attempt.last_line(), "sudo: a password is required");
        assert!(attempt.take(Stream::Stderr, format!("\n{BEGUN}\n").as_bytes()).is_continue());
        assert_eq!(attempt.last_line(), "");
    }

    #[test]
    fn start_files_without_an_end_are_given_up() {
        let mut take = |_: Stream, _: &[u8], _: &mut Stdin| true;
        let mut attempt = Attempt::new(channel().0, MOST, &mut take);
        let chunk = [b'x'; 8192];
        let taken = (0..1000).take_while(|_| attempt.take(Stream::Stdout, &chunk).is_continue()).count();
        assert_eq!((taken, attempt.is_flooded), (32, true));
        assert!(attempt.not_begun().contains("remove that output"), "{}", attempt.not_begun());
    }
}
