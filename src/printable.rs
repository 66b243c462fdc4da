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

/// As a shell takes it for one word, whatever is in it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // No argument of a program has a NUL in it.
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_word_of_a_shell_whatever_it_holds() {
        for (text, word) in [
            ("/srv/m", "/srv/m"),
            ("", "''"),
            ("/srv/a machine's", r"'/srv/a machine'\''s'"),
            ("2 hours ago", "'2 hours ago'"),
            ("'; touch /x #", r"''\''; touch /x #'"),
            ("$(id)`id`\n", "'$(id)`id`\n'"),
            ("~\0root", "'~root'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}
