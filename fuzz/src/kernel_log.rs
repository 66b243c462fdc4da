//! Messages in a log, found a second time line by line, and each pattern by every way to cut the line.

use std::io::Read;

use kernel_log::knowledge::Knowledge;
use kernel_log::pattern::Pattern;
use kernel_log::scan::scan;

/// Patterns, a line each, then an empty line, then a byte that chooses the sizes of reads, then a log.
pub fn check(data: &[u8]) {
    let Some(at) = data.windows(2).position(|two| two == b"\n\n") else { return };
    let (Ok(patterns), Some((size, log))) = (std::str::from_utf8(&data[..at]), data[at + 2..].split_first())
    else {
        return;
    };
    let expected: Option<Vec<Words<'_>>> = patterns.split('\n').map(Words::of).collect();
    let read: Result<Vec<_>, _> =
        patterns.split('\n').map(|text| Pattern::try_from(text.to_owned())).collect();
    assert_eq!(read.is_ok(), expected.is_some(), "{patterns:?}: {read:?}");
    let knowledge = Knowledge::parse("messages.toml", &as_toml(patterns));
    assert_eq!(knowledge.is_ok(), read.is_ok(), "{knowledge:?}");
    let (Ok(knowledge), Ok(read), Some(expected)) = (knowledge, read, expected) else { return };

    let mut found = Vec::new();
    let totals = scan(&knowledge, Pieces(log, usize::from(*size) + 1), &mut |hit| {
        let values = hit.found.values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        found.push((hit.line, hit.found.message.id.clone(), values));
        Ok(())
    });
    let totals = totals.expect("a slice can be read");
    let lines: Vec<_> = log.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!((totals.lines, totals.bytes, totals.cut), (lines.len() as u64, log.len() as u64, 0));
    let mut again: Vec<(u64, String, Vec<(String, String)>)> = Vec::new();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let indent =
        Some(log.iter().take_while(|byte| is_blank(byte)).count()).filter(|it| *it <= 8).unwrap_or(0);
    for (number, line) in (1..).zip(lines) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_indented = line.len() >= indent && line[..indent].iter().all(is_blank);
        let line = if is_indented { &line[indent..] } else { line };
        let owned = |values: Vec<(&str, String)>| {
            values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        };
        for (pattern, words) in read.iter().zip(&expected) {
            assert_eq!(pattern.find(line, 0).map(owned), words.find(line), "{pattern:?} {line:?}");
        }
        let first = knowledge.find(line);
        again.extend(first.map(|found| (number, found.message.id.clone(), owned(found.values))));
    }
    assert_eq!(found, again);
}

struct Pieces<'t>(&'t [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let size = self.1.min(to.len());
        self.0.read(&mut to[..size])
    }
}

fn as_toml(patterns: &str) -> String {
    let message = |(nth, pattern): (usize, &str)| {
        let text: String = pattern.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
        format!(
            "[[message]]\nid = 'm{nth}'\nclass = 'hang'\nseverity = 'info'\nblame = 'driver'\nconfidence = 'low'\n\
             drain = false\nreset = false\nmeans = ''\nnow = []\nlater = []\ncommands = []\nsource = ''\n\
             [[message.pattern]]\ntext = \"{text}\"\nsample = ''\nsample_from = ''\nnot = ''\n"
        )
    };
    patterns.split('\n').enumerate().map(message).collect()
}

/// A pattern by its pieces: every second one is a hole's name.
struct Words<'t>(Vec<&'t str>);

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let mut braces = text.chars().filter(|c| "{}".contains(*c));
        while let Some(open) = braces.next() {
            if open != '{' || braces.next() != Some('}') {
                return None;
            }
        }
        let pieces: Vec<&str> = text.split(['{', '}']).collect();
        let mut names: Vec<&str> = pieces.iter().skip(1).step_by(2).copied().collect();
        let count = names.len();
        let is_named = |name: &&str| !name.is_empty() && name.chars().all(|c| matches!(c, 'a'..='z' | '_'));
        let are_named = names.iter().all(is_named);
        names.sort_unstable();
        names.dedup();
        let words: Vec<&str> = pieces.iter().step_by(2).copied().collect();
        let are_apart = words.iter().skip(1).rev().skip(1).all(|words| !words.is_empty());
        let fixed: usize = words.iter().map(|words| words.len()).sum();
        let between = words.iter().filter(|words| !words.is_empty()).count().saturating_sub(1);
        (are_named && names.len() == count && are_apart && fixed + between >= 16).then_some(Self(pieces))
    }

    /// By every way to cut the text that the words allow: of those the one with the shortest holes from the left, if none of
    /// its holes has a blank where a process's name could still be.
    fn find(&self, text: &[u8]) -> Option<Vec<(String, String)>> {
        let holes = self.from(0, text, 0)?;
        let has_blank = |(at, hole): &(usize, &[u8])| *at <= 17 && hole.iter().any(u8::is_ascii_whitespace);
        let shown = |(name, (_, hole)): (&&str, &(usize, &[u8]))| {
            ((*name).to_owned(), String::from_utf8_lossy(hole).into_owned())
        };
        let names = self.0.iter().skip(1).step_by(2);
        (!holes.iter().any(has_blank)).then(|| names.zip(&holes).map(shown).collect())
    }

    /// From the piece `nth` on, which is words, at a byte of the text: each hole's beginning, and its bytes.
    fn from<'l>(&self, nth: usize, text: &'l [u8], at: usize) -> Option<Vec<(usize, &'l [u8])>> {
        let words = self.0[nth].as_bytes();
        let rest = text[at..].strip_prefix(words)?;
        let at = at + words.len();
        if nth + 1 == self.0.len() {
            return Some(Vec::new());
        }
        if nth + 3 == self.0.len() && self.0[nth + 2].is_empty() {
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            return (end > 0).then(|| vec![(at, &rest[..end])]);
        }
        (1..=rest.len())
            .find_map(|end| Some([vec![(at, &rest[..end])], self.from(nth + 2, text, at + end)?].concat()))
    }
}
