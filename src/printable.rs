//! Text for people: what came from a machine as a terminal may be shown it, and what is long or many in short.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub use telemetry::printable::printable;

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

/// As much of a text as fits into so many columns, and an ellipsis for the rest.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = text.chars().take_while(|c| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    });
    fits.chain(['…']).collect()
}
