//! Foreign text in a message.

use std::fmt::{self, Display, Write};

use foreign_text::is_unsafe_to_show;

/// The most characters of foreign text that a message repeats.
const LIMIT: usize = 80;

/// Text that another program wrote, as a message may show it: in quotation marks, at most 80 characters of
/// it, and nothing in it that a terminal or a log would obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for (count, c) in self.0.chars().enumerate() {
            if count == LIMIT {
                return f.write_str("\"…");
            }
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if is_unsafe_to_show(c) => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// The first characters of a sentence that another program wrote, and nothing in it that a terminal or a log would obey.
pub(crate) fn harmless(sentence: &str, most: usize) -> String {
    let shown = |c: char| if is_unsafe_to_show(c) { ' ' } else { c };
    let mut text: String = sentence.chars().take(most).map(shown).collect();
    if sentence.chars().nth(most).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Quoted;

    #[test]
    fn shows_foreign_text_harmless_and_short() {
        let long = "x".repeat(100);
        let cut = format!("\"{}\"…", "x".repeat(80));
        let table = [
            ("renderD128", "\"renderD128\""),
            ("", "\"\""),
            ("a\"b\\", r#""a\"b\\""#),
            ("\u{1b}[31mred\n", r#""\u{1b}[31mred\u{a}""#),
            ("a\0b\u{7f}", r#""a\u{0}b\u{7f}""#),
            ("\u{202e}gpj", r#""\u{202e}gpj""#),
            ("gpu\u{200b}1 \u{fffd}", "\"gpu\\u{200b}1 \u{fffd}\""),
            ("gpu\u{e0041}\u{e007f}", r#""gpu\u{e0041}\u{e007f}""#),
            ("größe", "\"größe\""),
            (&long, &cut),
            (&long[..80], &cut[..cut.len() - '…'.len_utf8()]),
        ];
        for (text, shown) in table {
            assert_eq!(Quoted(text).to_string(), shown, "{text:?}");
        }
    }
}
