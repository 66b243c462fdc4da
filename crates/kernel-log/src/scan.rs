//! Known messages in a text of any length, in constant memory.

use std::io::{self, ErrorKind, Read};

use memchr::{memchr, memchr_iter, memrchr};

use crate::knowledge::{Found, Knowledge};
use crate::origin::{Origin, Speaker};

/// A line with a message in it.
#[derive(Debug)]
pub struct Hit<'a, 'k> {
    /// The line's number, from 1.
    pub line: u64,
    /// The line without its end.
    pub text: &'a [u8],
    pub found: Found<'k>,
}

/// Counts of what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub lines: u64,
    pub bytes: u64,
    /// Lines that were longer than [`LONGEST_LINE`], of which only so much was looked at.
    pub cut: u64,
    /// Lines that have the words of a message behind something that is not stripped, so that they count as none.
    pub unstripped: u64,
    /// The first of them, from 1.
    pub first_unstripped: Option<u64>,
}

/// More than the kernel writes into one record (PRINTKRB_RECORD_MAX of kernel/printk/printk.c is 1,024), whatever a
/// log daemon puts before it.
pub const LONGEST_LINE: usize = 64 << 10;

/// The bytes of one read: a block and the automaton fit into a processor's second-level cache.
const BLOCK: usize = 512 << 10;

/// Reads to the end, and hands over each line that has a known message, in order and as soon as it has been read.
///
/// # Errors
/// Reading fails, or `each` does.
pub fn scan<'k>(
    knowledge: &'k Knowledge,
    input: impl Read,
    each: &mut dyn FnMut(&Hit<'_, 'k>) -> io::Result<()>,
) -> io::Result<Totals> {
    let scan = Scan { knowledge, each, longest: LONGEST_LINE, indent: None, totals: Totals::default() };
    scan.run(input, BLOCK)
}

struct Scan<'k, 'e> {
    knowledge: &'k Knowledge,
    each: &'e mut dyn FnMut(&Hit<'_, 'k>) -> io::Result<()>,
    longest: usize,
    /// How many blanks begin the first line. Lines that were copied with it begin with as many.
    indent: Option<usize>,
    totals: Totals,
}

impl Scan<'_, '_> {
    /// `size` is more than the longest line.
    fn run(mut self, mut input: impl Read, size: usize) -> io::Result<Totals> {
        let mut block = vec![0; size];
        // How many bytes of the block begin a line whose end has not been read.
        let mut begun = 0;
        // The rest of a cut line comes.
        let mut is_cut = false;
        loop {
            let (_, free) = block.split_at_mut(begun);
            let end = match input.read(free) {
                Ok(0) => break,
                Ok(read) => begun + read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.totals.bytes += (end - begun) as u64;
            let mut start = 0;
            if is_cut {
                let Some(at) = memchr(b'\n', part(&block, 0, end)) else { continue };
                is_cut = false;
                self.totals.lines += 1;
                start = at + 1;
            }
            let new = begun.max(start);
            if let Some(at) = memrchr(b'\n', part(&block, new, end)) {
                self.whole_lines(part(&block, start, new + at + 1))?;
                start = new + at + 1;
            }
            begun = end - start;
            if begun > self.longest {
                self.cut_line(part(&block, start, end))?;
                (is_cut, begun) = (true, 0);
            } else if start > 0 {
                block.copy_within(start..end, 0);
            }
        }
        self.whole_lines(part(&block, 0, begun))?;
        self.totals.lines += u64::from(is_cut);
        Ok(self.totals)
    }

    /// Lines to their ends; only the last of a text may have none.
    fn whole_lines(&mut self, text: &[u8]) -> io::Result<()> {
        self.indent.get_or_insert_with(|| indent(text));
        // Lines before `at` are not too long, and those before `done` were looked at.
        let (mut at, mut done) = (0, 0);
        while text.len() - at > self.longest {
            if let Some(end) = memrchr(b'\n', part(text, at, at + self.longest + 1)) {
                at += end + 1;
                continue;
            }
            self.lines(part(text, done, at))?;
            self.cut_line(part(text, at, text.len()))?;
            self.totals.lines += 1;
            at = memchr(b'\n', part(text, at, text.len())).map_or(text.len(), |end| at + end + 1);
            done = at;
        }
        self.lines(part(text, done, text.len()))
    }

    /// Lines of which none is too long: only the ends of those with a message are looked for, the others are counted.
    fn lines(&mut self, text: &[u8]) -> io::Result<()> {
        let mut rest = text;
        while let Some(words) = self.knowledge.next_anchor(rest) {
            let start = memrchr(b'\n', part(rest, 0, words.start)).map_or(0, |at| at + 1);
            let end =
                memchr(b'\n', part(rest, words.end, rest.len())).map_or(rest.len(), |at| words.end + at);
            self.totals.lines += ends(part(rest, 0, start));
            let line = part(rest, start, end);
            self.line(line.strip_suffix(b"\r").unwrap_or(line))?;
            self.totals.lines += 1;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        self.totals.lines += ends(rest) + u64::from(rest.last().is_some_and(|byte| *byte != b'\n'));
        Ok(())
    }

    /// `text` begins with it.
    fn cut_line(&mut self, text: &[u8]) -> io::Result<()> {
        self.indent.get_or_insert_with(|| indent(text));
        self.totals.cut += 1;
        self.line(part(text, 0, self.longest))
    }

    /// The line behind those that have been counted.
    fn line(&mut self, text: &[u8]) -> io::Result<()> {
        let line = self.totals.lines + 1;
        match judged(self.knowledge, without(self.indent.unwrap_or(0), text)) {
            Judged::Known(found) => (self.each)(&Hit { line, text, found })?,
            Judged::Unstripped => {
                self.totals.unstripped += 1;
                self.totals.first_unstripped.get_or_insert(line);
            }
            Judged::Nothing => {}
        }
        Ok(())
    }
}

/// The result for a line.
enum Judged<'k> {
    Known(Found<'k>),
    /// The line has a message's words, behind a front that is not stripped.
    Unstripped,
    Nothing,
}

fn judged<'k>(knowledge: &'k Knowledge, line: &[u8]) -> Judged<'k> {
    let origin = Origin::of_line(line);
    if let Some(found) = knowledge.find_from(&origin) {
        return if found.message.silent { Judged::Nothing } else { Judged::Known(found) };
    }
    // A line whose speaker is known by a prefix of its own is another speaker's message.
    let is_unknown = matches!(origin.speaker, Speaker::Copied | Speaker::Other | Speaker::User);
    if is_unknown && knowledge.has_words(line) { Judged::Unstripped } else { Judged::Nothing }
}

/// A line without so many blanks in front, if it has them.
fn without(indent: usize, line: &[u8]) -> &[u8] {
    line.get(indent..).filter(|_| blanks(line) >= indent).unwrap_or(line)
}

/// The number of blanks by which a person has indented a text. dmesg and journalctl indent the second line of a record
/// by a stamp's width, which is more than this. Such a line may come first where a program has selected lines
/// of a log.
fn indent(text: &[u8]) -> usize {
    const MOST: usize = 8;
    Some(blanks(text)).filter(|indent| *indent <= MOST).unwrap_or(0)
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// A part of the text; empty where the text does not have all of it.
fn part(text: &[u8], start: usize, end: usize) -> &[u8] {
    text.get(start..end).unwrap_or_default()
}

fn ends(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWLEDGE: &str = "[[message]]\nid = 'one'\nclass = 'hang'\nseverity = 'info'\nblame = 'driver'\n\
        confidence = 'low'\ndrain = false\nreset = false\nmeans = ''\nnow = []\nlater = []\ncommands = []\nsource = ''\n\
        [[message.pattern]]\ntext = 'a{x}0123456789abcde{y}'\nsample = ''\nsample_from = ''\nnot = ''\n\
        [[message.pattern]]\ntext = '56789abcdefghijk'\nsample = ''\nsample_from = ''\nnot = ''\n";

    type Lines = Vec<(u64, Vec<u8>, Vec<String>)>;

    /// Gives as many bytes as are wanted next, and is interrupted in between.
    struct Pieces<'t> {
        text: &'t [u8],
        sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes.next().unwrap();
            if size == 0 {
                return Err(ErrorKind::Interrupted.into());
            }
            let size = size.min(to.len());
            (&mut self.text).take(size as u64).read(to)
        }
    }

    fn scanned(text: &[u8], sizes: Vec<usize>, longest: usize, block: usize) -> (Lines, Totals) {
        let knowledge = Knowledge::parse("test.toml", KNOWLEDGE).unwrap();
        let mut lines = Lines::new();
        let mut each = |hit: &Hit<'_, '_>| {
            let values = hit.found.values.iter().map(|(_, value)| value.clone()).collect();
            lines.push((hit.line, hit.text.to_vec(), values));
            Ok(())
        };
        let scan =
            Scan { knowledge: &knowledge, each: &mut each, longest, indent: None, totals: Totals::default() };
        let totals = scan.run(Pieces { text, sizes: sizes.into_iter().cycle() }, block).unwrap();
        (lines, totals)
    }

    /// The expected result: the text is read line by line.
    fn expected(text: &[u8], longest: usize) -> (Lines, Totals) {
        let knowledge = Knowledge::parse("test.toml", KNOWLEDGE).unwrap();
        let mut totals = Totals { bytes: text.len() as u64, ..Totals::default() };
        let mut lines = Lines::new();
        let indent = indent(text);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            totals.lines += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = match line.get(..longest) {
                Some(start) if line.len() > longest => {
                    totals.cut += 1;
                    start
                }
                _ => line.strip_suffix(b"\r").unwrap_or(line),
            };
            match judged(&knowledge, without(indent, line)) {
                Judged::Known(found) => {
                    let values = found.values.into_iter().map(|(_, value)| value).collect();
                    lines.push((totals.lines, line.to_vec(), values));
                }
                Judged::Unstripped => {
                    totals.unstripped += 1;
                    totals.first_unstripped.get_or_insert(totals.lines);
                }
                Judged::Nothing => {}
            }
        }
        (lines, totals)
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(b"\n".to_vec()),
            2 => Just(b"ax0123456789abcdey".to_vec()),
            2 => Just(b"56789abcdefghijk".to_vec()),
            1 => Just(b"0123456789abcde".to_vec()),
            1 => Just(b"\r\n".to_vec()),
            1 => Just(b"a".to_vec()),
            1 => Just(b"\0\xff\r \\x1b".to_vec()),
            2 => proptest::collection::vec(any::<u8>(), 0..30),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn each_line_is_found_that_a_look_at_each_line_finds(
            text in text(),
            mut sizes in proptest::collection::vec(0_usize..200, 0..8),
            longest in 20_usize..70,
            more in 1_usize..100,
        ) {
            sizes.push(7);
            prop_assert_eq!(scanned(&text, sizes, longest, longest + more), expected(&text, longest));
        }
    }

    #[test]
    fn lines_are_numbered_and_cut_at_the_longest() {
        let message = "56789abcdefghijk";
        let x = |count| "x".repeat(count);
        let long = message.to_owned() + &x(40);
        for (text, lines, totals) in [
            (String::new(), vec![], (0, 0)),
            ("\n\n".to_owned(), vec![], (2, 0)),
            ("x".to_owned(), vec![], (1, 0)),
            (
                format!("{message}\n\r\n{message}\r\n{message}"),
                vec![(1, message), (3, message), (4, message)],
                (4, 0),
            ),
            (format!("{long}\n{message}"), vec![(1, &*long), (2, message)], (2, 0)),
            (format!("{long}x\n{message}"), vec![(1, &*long), (2, message)], (2, 1)),
            // No line begins with it.
            (format!("x{message}\n{message}"), vec![(2, message)], (2, 0)),
            // A block of lines may be indented, and the rest of a record may come first.
            (format!("  {message}\n{message}"), vec![(1, &*format!("  {message}")), (2, message)], (2, 0)),
            (
                format!("  <3>{message}\n  <3>{message}\n   <3>{message}\n<3>{message}\n  {message}"),
                vec![
                    (1, &*format!("  <3>{message}")),
                    (2, &*format!("  <3>{message}")),
                    (4, &*format!("<3>{message}")),
                    (5, &*format!("  {message}")),
                ],
                (5, 0),
            ),
            (
                format!("{0}<3>{message}\n{0}<3>{message}\n<3>{message}", " ".repeat(15)),
                vec![(3, &*format!("<3>{message}"))],
                (3, 0),
            ),
            (format!("{}\n{message}\n{}", x(500), x(57)), vec![(2, message)], (3, 2)),
        ] {
            let expected: Vec<_> = lines.into_iter().map(|(line, text)| (line, text.to_owned())).collect();
            for (sizes, block) in [(vec![1], 57), (vec![999], 60), (vec![100, 0], 999)] {
                let (found, got) = scanned(text.as_bytes(), sizes, 56, block);
                let found: Vec<_> =
                    found.into_iter().map(|(n, text, _)| (n, String::from_utf8(text).unwrap())).collect();
                assert_eq!(found, expected, "{text}");
                assert_eq!(
                    (got.lines, got.cut, got.bytes),
                    (totals.0, totals.1, text.len() as u64),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn lines_with_the_words_of_a_message_behind_something_unknown_are_counted() {
        let message = "56789abcdefghijk";
        for (text, unstripped, first) in [
            (format!("{message}\nx\n<3>{message}"), 0, None),
            (format!("x\nx {message}\n  {message}\n{{\"MESSAGE\":\"{message}\"}}"), 3, Some(2)),
            (format!("6.4.0,3,1,2,-;{message}\n{{ax0123456789abcdey"), 2, Some(1)),
            // Another driver's.
            (format!("nvme 0000:34:00.0: x {message}\n"), 0, None),
        ] {
            let (_, totals) = scanned(text.as_bytes(), vec![7], 56, 100);
            assert_eq!((totals.unstripped, totals.first_unstripped), (unstripped, first), "{text}");
        }
    }

    #[test]
    fn a_failed_read_and_a_failed_use_of_a_line_end_it() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("no such journal"))
            }
        }
        let knowledge = Knowledge::parse("test.toml", KNOWLEDGE).unwrap();
        let read = scan(&knowledge, Broken, &mut |_| Ok(())).unwrap_err();
        assert_eq!(read.to_string(), "no such journal");
        let text = b"56789abcdefghijk\n56789abcdefghijk\n";
        let mut lines = 0;
        let mut each = |_: &Hit<'_, '_>| {
            lines += 1;
            Err(io::Error::other("the pipe is closed"))
        };
        let error = scan(&knowledge, &text[..], &mut each).unwrap_err();
        assert_eq!((error.to_string(), lines), ("the pipe is closed".to_owned(), 1));
    }

    #[test]
    fn a_line_is_handed_over_before_the_next_one_is_there() {
        let knowledge = Knowledge::parse("test.toml", KNOWLEDGE).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let (found, finds) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let scanning = scope.spawn(|| {
                scan(&knowledge, reader, &mut |hit| found.send(hit.line).map_err(io::Error::other)).unwrap()
            });
            for line in 1..3 {
                io::Write::write_all(&mut writer, b"56789abcdefghijk\n").unwrap();
                assert_eq!(finds.recv(), Ok(line));
            }
            drop(writer);
            assert_eq!(scanning.join().unwrap().lines, 2);
        });
    }
}
