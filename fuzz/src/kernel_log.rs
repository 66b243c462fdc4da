//! Messages in a log, found a second time by a look at each line from its end.

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
    let (Ok(knowledge), Some(expected)) = (knowledge, expected) else { return };

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
    for (number, line) in (1..).zip(lines) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let first = expected.iter().enumerate().find_map(|(nth, words)| Some((nth, words.find(line)?)));
        again.extend(first.map(|(nth, values)| (number, format!("m{nth}"), values)));
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
        (are_named && names.len() == count && are_apart && fixed >= 16).then_some(Self(pieces))
    }

    /// From the right: where words can stand so that those behind them can, too. Then from the left the first of these.
    fn find(&self, line: &[u8]) -> Option<Vec<(String, String)>> {
        let pieces = &self.0;
        let is_blank = |at: usize| line[at].is_ascii_whitespace();
        let is_first_hole = |nth: usize| nth == 1 && pieces[0].is_empty();
        let is_last_hole = |nth: usize| nth + 2 == pieces.len() && pieces[nth + 1].is_empty();
        let words: Vec<usize> = (0..pieces.len()).step_by(2).filter(|nth| !pieces[*nth].is_empty()).collect();
        let mut fitting: Vec<Vec<usize>> = vec![Vec::new(); pieces.len()];
        let mut limit = None;
        for nth in words.iter().rev() {
            let text = pieces[*nth].as_bytes();
            for at in 0..line.len() {
                let end = at + text.len();
                let has_before = *nth == 0 || !is_first_hole(nth - 1) || (at > 0 && !is_blank(at - 1));
                let has_behind =
                    nth + 1 == pieces.len() || !is_last_hole(nth + 1) || (end < line.len() && !is_blank(end));
                if line[at..].starts_with(text)
                    && has_before
                    && has_behind
                    && limit.is_none_or(|limit| end < limit)
                {
                    fitting[*nth].push(at);
                }
            }
            limit = Some(*fitting[*nth].last()?);
        }
        let (mut values, mut end) = (Vec::new(), 0);
        let mut value = |nth: usize, bytes: &[u8]| {
            values.push((pieces[nth].to_owned(), String::from_utf8_lossy(bytes).into_owned()));
        };
        for (count, nth) in words.iter().enumerate() {
            let least = if count == 0 { 0 } else { end + 1 };
            let at = *fitting[*nth].iter().find(|at| **at >= least)?;
            if *nth > 0 {
                let start = if is_first_hole(nth - 1) {
                    (0..at).rev().take_while(|at| !is_blank(*at)).last().unwrap_or(at)
                } else {
                    end
                };
                let text = String::from_utf8_lossy(&line[start..at]);
                if text.split_once(" pid ").is_some_and(|(_, rest)| format!(" {rest}").contains(" thread ")) {
                    return None;
                }
                value(nth - 1, &line[start..at]);
            }
            end = at + pieces[*nth].len();
        }
        if pieces.len() > 1 && pieces[pieces.len() - 1].is_empty() {
            let stop = (end..line.len()).find(|at| is_blank(*at)).unwrap_or(line.len());
            value(pieces.len() - 2, &line[end..stop]);
        }
        Some(values)
    }
}
