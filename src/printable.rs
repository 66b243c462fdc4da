//! Text for people: what came from a machine as a terminal may be shown it, and what is long or many in short.

/// What would steer a terminal or forge a line is written out: control characters, line ends among them, and
/// the marks that turn the direction of text.
#[must_use]
pub fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().flat_map(|c| if steers(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// At most `most` characters, and an ellipsis for the rest.
pub(crate) fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// `1 change`, `2 changes`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
