//! Lines of a text, by byte offsets.

pub(crate) use raw_json::spliced;

/// The line end that the text uses: that of its first line.
pub(crate) fn end_of_line(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        _ => "\n",
    }
}

/// The start of the line that holds `at`.
pub(crate) fn start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// The start of the next line, or the text's end.
pub(crate) fn next(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| at + newline + 1)
}

/// The blanks that the line begins with on which `at` is.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = text.get(start(text, at)..).unwrap_or_default();
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..blanks).unwrap_or_default()
}

/// Whether the line that begins at `start` is blank. The end of the text is no line.
pub(crate) fn is_blank(text: &str, start: usize) -> bool {
    start < text.len() && text.get(start..next(text, start)).is_some_and(|line| line.trim().is_empty())
}

/// The place behind the comment lines that begin at `start`: these may belong to the text before them, as
/// settings that are switched off.
pub(crate) fn behind_comments(text: &str, start: usize) -> usize {
    let mut at = start;
    while text.get(at..).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('#')) {
        at = next(text, at);
    }
    at
}

pub(crate) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Puts whole lines in at `at`, the start of a line or the end of the text. A text whose last line has no end keeps
/// having none.
pub(crate) fn put(text: &str, at: usize, lines: &str) -> String {
    let eol = end_of_line(text);
    let unended = at > 0 && !text.get(..at).is_some_and(|before| before.ends_with('\n'));
    let lines =
        if unended { format!("{eol}{}", lines.strip_suffix(eol).unwrap_or(lines)) } else { lines.to_owned() };
    spliced(text, [(at..at, lines)])
}
