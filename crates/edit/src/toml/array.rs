//! Members of a list on one line or on several, with comments between them.

use std::ops::Range;

use toml_edit::{Array, Value};

use super::tree::known;
use crate::{Fault, lines};

/// The next place that is no blank, line end or comment.
pub(super) fn skipped(text: &str, mut at: usize) -> usize {
    loop {
        match text.as_bytes().get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'#') => at = lines::next(text, at),
            _ => return at,
        }
    }
}

/// The comma that follows; `None` where something else comes first.
pub(super) fn comma_after(text: &str, at: usize) -> Option<usize> {
    Some(skipped(text, at)).filter(|at| text.as_bytes().get(*at) == Some(&b','))
}

/// The text with one more member, whose spelling is given.
pub(super) fn added(text: &str, array: &Array, member: &str) -> Result<String, Fault> {
    let brackets = known(array.span())?;
    let Some(last) = array.iter().last() else {
        let at = brackets.start + 1;
        return Ok(lines::spliced(text, [(at..at, member.to_owned())]));
    };
    let last = known(last.span())?;
    let comma = comma_after(text, last.end);
    let behind = comma.map_or(last.end, |comma| comma + 1);
    let on_lines = text.get(brackets.start..last.start).is_some_and(|before| before.contains('\n'));
    let (at, blanks) = if on_lines {
        // Behind a comment on the last member's line, unless the bracket is on that line.
        let rest = text.get(behind..).unwrap_or_default();
        let ends = rest.trim_start_matches([' ', '\t']).starts_with(['#', '\r', '\n']);
        let end = rest.find(['\r', '\n']).filter(|_| ends).unwrap_or(0);
        (behind + end, format!("{}{}", lines::end_of_line(text), lines::indentation(text, last.start)))
    } else {
        (behind, " ".to_owned())
    };
    Ok(match comma {
        Some(_) => lines::spliced(text, [(at..at, format!("{blanks}{member},"))]),
        None if at == last.end => lines::spliced(text, [(at..at, format!(",{blanks}{member}"))]),
        None => {
            let comma = (last.end..last.end, ",".to_owned());
            lines::spliced(text, [comma, (at..at, format!("{blanks}{member}"))])
        }
    })
}

/// The text without the member at a place.
pub(super) fn without(text: &str, array: &Array, at: usize) -> Result<String, Fault> {
    let span = |at: usize| known(array.get(at).and_then(Value::span));
    let previous = at.checked_sub(1).map(span).transpose()?;
    Ok(cut(text, span(at)?, previous.map(|span| span.end)))
}

/// The text without one of several items with commas between them. `previous`: where the item before it ends.
pub(super) fn cut(text: &str, own: Range<usize>, previous: Option<usize>) -> String {
    let comma = comma_after(text, own.end);
    let line = own_line(text, &own, comma);
    let comma_before = previous.and_then(|end| comma_after(text, end));
    let (more, item) = match (line, comma, comma_before) {
        // A last item without a comma leaves the new last one without a comma.
        (Some(line), None, Some(before)) => (before..before + 1, line),
        (Some(line), _, _) => (0..0, line),
        (None, Some(comma), Some(before)) => (0..0, before + 1..comma + 1),
        (None, Some(comma), None) => {
            let rest = text.get(comma + 1..).unwrap_or_default();
            (0..0, own.start..comma + 1 + rest.len() - rest.trim_start_matches(' ').len())
        }
        (None, None, Some(before)) => (0..0, before..own.end),
        (None, None, None) => (0..0, own),
    };
    lines::spliced(text, [(more, String::new()), (item, String::new())])
}

/// The whole line of an item that shares its line with nothing but a comment.
fn own_line(text: &str, own: &Range<usize>, comma: Option<usize>) -> Option<Range<usize>> {
    let line = lines::start(text, own.start)..lines::next(text, own.end);
    let first = text.get(line.start..own.start)?.trim().is_empty();
    let comma = comma.filter(|comma| line.contains(comma));
    let rest = text.get(comma.map_or(own.end, |comma| comma + 1)..line.end)?.trim();
    (first && (rest.is_empty() || rest.starts_with('#'))).then_some(line)
}
