//! Text for people: what came from a machine as a terminal may be shown it, and what is long or many in short.

use std::borrow::Cow;
use std::fmt::Write as _;

use foreign_text::is_unsafe_to_show;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub use telemetry::printable::printable;

/// JSON in which no name steers a terminal. What would do so is in its strings alone, and is written as JSON's own escape:
/// it reads back alike.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c != '\n' && is_unsafe_to_show(c);
    escaped(json, is_escaped, |c, to| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(to, "\\u{unit:04x}").ok();
        }
    })
}

/// Escapes characters of a name that would steer a terminal. The answer's own colours and lines stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| !c.is_ascii() && is_unsafe_to_show(c);
    escaped(text, is_escaped, |c, to| to.extend(c.escape_default()))
}

/// Escapes what would steer a terminal, but for the colours and styles that rocworker uses (ECMA-48, SGR). They end with the
/// line.
pub fn printable_styled(line: &str) -> String {
    const BEGIN: &str = "\u{1b}[";
    const RESET: &str = "\u{1b}[0m";
    // Bold, dimmed, italic and underlined, and the foreground's colours: nothing that hides or blinks.
    let is_known = |number: &str| {
        matches!(number.parse::<u8>(), Ok(0..=4 | 30..=37 | 39 | 90..=97)) || number.is_empty()
    };
    let (mut shown, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        shown.push_str(&printable(before));
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
        let (style, behind) = after.split_at(end);
        if let Some(behind) = behind.strip_prefix('m').filter(|_| style.split(';').all(is_known)) {
            shown.extend([BEGIN, style, "m"]);
            rest = behind;
        } else {
            shown.push_str(&printable(BEGIN));
            rest = after;
        }
    }
    shown += &printable(rest);
    let last = shown.rsplit_once(BEGIN).map(|(_, style)| style);
    if last.is_some_and(|style| !style.starts_with("0m")) {
        shown += RESET;
    }
    shown
}

fn escaped(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) { escape(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Cuts a text to `most` characters, and puts an ellipsis for the rest.
pub fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// `1 change`, `2 changes`.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Cuts a text to `width` columns of a terminal, and puts an ellipsis for the rest.
pub fn cut(text: &str, width: usize) -> String {
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

/// Cuts a name to `width` columns of a terminal in its middle: its end tells it from others as often as its beginning.
pub fn elided(name: &str, width: usize) -> String {
    let fits = |c: char, room: &mut usize| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= *room;
        *room = room.saturating_sub(wide);
        fits
    };
    if name.width() <= width {
        return name.to_owned();
    }
    let (mut of_end, mut of_start) = (width.saturating_sub(1) / 2, width.saturating_sub(1).div_ceil(2));
    let start: String = name.chars().take_while(|c| fits(*c, &mut of_start)).collect();
    let mut end: Vec<char> = name.chars().rev().take_while(|c| fits(*c, &mut of_end)).collect();
    end.reverse();
    start.chars().chain(['…']).chain(end).collect()
}

/// Quotes a text so that a shell takes it for one word, whatever is in it.
pub fn quoted(text: &str) -> String {
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
    fn marks_that_turn_text_are_escaped_and_json_reads_back_alike() {
        let name = "gpu\u{202e}gpj \u{9b}2J\u{200b} größe \u{feff}\n";
        let json = serde_json::to_string_pretty(&[name]).unwrap();
        let shown = printable_json(&json);
        assert_eq!(shown, "[\n  \"gpu\\u202egpj \\u009b2J\\u200b größe \\ufeff\\n\"\n]");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [name]);
        assert_eq!(printable_lines("\u{1b}[31ma\u{2066}b\u{1b}[0m\n"), "\u{1b}[31ma\\u{2066}b\u{1b}[0m\n");
        assert!(matches!(printable_lines("größe\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn styles_stay_and_other_escape_sequences_do_not() {
        for (line, shown) in [
            ("\u{1b}[1;31mbad\u{1b}[0m", "\u{1b}[1;31mbad\u{1b}[0m"),
            ("\u{1b}[2Ja\u{1b}]0;t\u{7}", "\\u{1b}[2Ja\\u{1b}]0;t\\u{7}"),
            ("\u{1b}[31\u{1b}[m", "\\u{1b}[31\u{1b}[m\u{1b}[0m"),
            ("\u{1b}[8mhidden\u{1b}[1;7m", "\\u{1b}[8mhidden\\u{1b}[1;7m"),
            ("\u{1b}[32mgreen", "\u{1b}[32mgreen\u{1b}[0m"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(printable_styled(line), shown);
        }
    }

    #[test]
    fn a_name_keeps_both_its_ends() {
        for (name, width, expected) in [
            ("Navi 31 [Radeon PRO W7900]", 26, "Navi 31 [Radeon PRO W7900]"),
            ("Navi 31 [Radeon PRO W7900]", 14, "Navi 31…W7900]"),
            ("llama-train-worker-0", 11, "llama…ker-0"),
            ("llama-train-worker-1", 10, "llama…er-1"),
            ("漢字漢字漢字", 8, "漢字…字"),
            ("漢字漢字漢字", 7, "漢…字"),
            ("train-0", 1, "…"),
        ] {
            let shown = elided(name, width);
            assert_eq!(shown, expected, "{name}, {width}");
            assert!(shown.width() <= width, "{shown}");
        }
    }

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
