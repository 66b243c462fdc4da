//! What came from a machine, as a person may be shown it.

/// What would steer a terminal or forge a line is written out: control characters, line ends among them, and
/// the marks that turn the direction of text.
#[must_use]
pub fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().flat_map(|c| if steers(c) { c.escape_default().collect() } else { vec![c] }).collect()
}
