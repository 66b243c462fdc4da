//! The comments of a text: by them a revert decides which ones it removes.

const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// The comments in their order, each from its `#` to the end of its line. The text is TOML.
pub(super) fn comments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(here) = rest.find(['#', '"', '\'']).and_then(|at| rest.get(at..)) {
        let end = if here.starts_with('#') {
            let end = here.find(['\r', '\n']).unwrap_or(here.len());
            found.extend(here.get(..end));
            end
        } else {
            end_of_string(here)
        };
        rest = here.get(end..).unwrap_or_default();
    }
    found
}

/// The end of the string with which the text begins.
fn end_of_string(text: &str) -> usize {
    let quote = QUOTES.into_iter().find(|quote| text.starts_with(quote)).unwrap_or_default();
    let mut at = quote.len();
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(quote) {
            // A long string may end in quotes of its own, which stand before the three.
            let own = rest.len() - rest.trim_start_matches(next).len();
            return at + if quote.len() == 3 { own.min(5) } else { 1 };
        }
        let escaped = if next == '\\' && quote.starts_with('"') { rest.chars().nth(1) } else { None };
        at += next.len_utf8() + escaped.map_or(0, char::len_utf8);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::comments;

    #[test]
    fn a_number_sign_within_a_string_begins_no_comment() {
        for (text, expected) in [
            ("a = 1 # one\r\n# two\n", &["# one", "# two"][..]),
            ("a = \"# no\" # yes", &["# yes"]),
            ("a = '# no \\' # yes", &["# yes"]),
            ("a = \"\\\" # no\" # yes", &["# yes"]),
            ("a = \"\" # yes", &["# yes"]),
            ("a = \"\"\"\n# no \"\" # no\n\"\"\"\"\" # yes", &["# yes"]),
            ("a = '''\n# no ' # no\n''' # yes\n'b#' = 2", &["# yes"]),
            ("a = [ # first\n  'x', # it's\n]\n", &["# first", "# it's"]),
            ("a = 1\n", &[]),
        ] {
            assert_eq!(comments(text), expected, "{text}");
        }
    }
}
