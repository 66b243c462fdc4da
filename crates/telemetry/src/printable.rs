//! Makes text that came from a machine safe to show to a person.

use foreign_text::is_unsafe_to_show;

/// Writes out what would steer a terminal or forge a line: control characters, line ends, and marks that turn text or are
/// not seen.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |c: char| if is_unsafe_to_show(c) { c.escape_default().collect() } else { vec![c] };
    text.chars().flat_map(shown).collect()
}
