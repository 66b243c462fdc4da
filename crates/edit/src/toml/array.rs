//! Members of a list, which may stand on a line or on one each, with comments between them.

use std::ops::Range;

use serde_json::Value as Json;
use toml_edit::Array;

use super::lines;
use super::tree::{Node, json, known};
use crate::Fault;

/// The comma that follows, behind blanks, line ends and comments; `None` where something else comes first.
pub(super) fn comma_after(text: &str, mut at: usize) -> Option<usize> {
    loop {
        match text.as_bytes().get(at)? {
            b',' => return Some(at),
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' => at = lines::next(text, at),
            _ => return None,
        }
    }
}

/// The text with one more member, as it is to be written.
pub(super) fn added(text: &str, array: &Array, member: &str) -> Result<String, Fault> {
    let brackets = known(array.span())?;
    let Some(last) = array.iter().last() else {
        let at = brackets.start + 1;
        return Ok(lines::spliced(text, [(at..at, member.to_owned())]));
    };
    let last = known(last.span())?;
    let on_lines = text.get(brackets.start..last.start).is_some_and(|before| before.contains('\n'));
    let comma = comma_after(text, last.end);
    if !on_lines {
        return Ok(match comma {
            Some(comma) => lines::spliced(text, [(comma + 1..comma + 1, format!(" {member},"))]),
            None => lines::spliced(text, [(last.end..last.end, format!(", {member}"))]),
        });
    }
    let eol = lines::end_of_line(text);
    let blanks = lines::indentation(text, last.start);
    // Behind a comment on the last member's line, if the bracket does not follow on it.
    let behind = comma.map_or(last.end, |comma| comma + 1);
    let rest =
        text.get(behind..lines::next(text, behind)).unwrap_or_default().trim_start_matches([' ', '\t']);
    let ends = rest.starts_with(['#', '\r', '\n']);
    let at = if ends {
        behind + text.get(behind..).and_then(|rest| rest.find(['\r', '\n'])).unwrap_or(0)
    } else {
        behind
    };
    Ok(match comma {
        Some(_) => lines::spliced(text, [(at..at, format!("{eol}{blanks}{member},"))]),
        None if at == last.end => lines::spliced(text, [(at..at, format!(",{eol}{blanks}{member}"))]),
        None => lines::spliced(
            text,
            [(last.end..last.end, ",".to_owned()), (at..at, format!("{eol}{blanks}{member}"))],
        ),
    })
}

/// The text without a member that is there.
pub(super) fn without(text: &str, array: &Array, member: &Json) -> Result<String, Fault> {
    let members: Vec<_> = array.iter().collect();
    let Some(index) = members.iter().position(|known| json(Node::Value(known)) == *member) else {
        return Ok(text.to_owned());
    };
    let span = |index: usize| members.get(index).map(|value| known(value.span())).transpose();
    let Some(own) = span(index)? else { return Ok(text.to_owned()) };
    let comma = comma_after(text, own.end);
    let before = if index == 0 { None } else { span(index - 1)? };
    let line = own_line(text, &own, comma);
    let comma_before = before.as_ref().and_then(|before| comma_after(text, before.end));
    Ok(match (line, comma, comma_before) {
        (Some(line), Some(_), _) => lines::spliced(text, [(line, String::new())]),
        // The last one without a comma: the one before it becomes so.
        (Some(line), None, Some(before)) => {
            lines::spliced(text, [(before..before + 1, String::new()), (line, String::new())])
        }
        (Some(line), None, None) => lines::spliced(text, [(line, String::new())]),
        (None, Some(comma), Some(before)) => lines::spliced(text, [(before + 1..comma + 1, String::new())]),
        (None, Some(comma), None) => {
            let blanks =
                text.get(comma + 1..).map_or(0, |rest| rest.len() - rest.trim_start_matches(' ').len());
            lines::spliced(text, [(own.start..comma + 1 + blanks, String::new())])
        }
        (None, None, Some(before)) => lines::spliced(text, [(before..own.end, String::new())]),
        (None, None, None) => lines::spliced(text, [(own, String::new())]),
    })
}

/// The whole line of a member that has one for itself, a comment behind it included.
fn own_line(text: &str, own: &Range<usize>, comma: Option<usize>) -> Option<Range<usize>> {
    let line = lines::start(text, own.start)..lines::next(text, own.end);
    let first = text.get(line.start..own.start)?.trim().is_empty();
    let comma = comma.filter(|comma| line.contains(comma));
    let rest = text.get(comma.map_or(own.end, |comma| comma + 1)..line.end)?.trim();
    (first && (rest.is_empty() || rest.starts_with('#'))).then_some(line)
}
