//! The text of a unit (systemd.syntax(7)).

/// Section, key and value of all settings that are in a section, in order. The value is without blanks around it and with
/// its continuation lines. It is empty where the line resets what was set.
pub fn lines(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut inside: Option<String> = None;
    let mut before = String::new();
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        // A comment between continued lines is left out, and does not end them.
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(part) = continued(line) {
            before.push_str(part);
            before.push(' ');
            continue;
        }
        let line = std::mem::take(&mut before) + line;
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::to_owned);
        } else if let (Some(section), Some((key, value))) = (&inside, line.split_once('=')) {
            found.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

/// What is before a backslash that continues the line; two of them are a backslash.
fn continued(line: &str) -> Option<&str> {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    (backslashes % 2 == 1).then(|| line.get(..line.len() - 1))?
}

/// A value's words, as systemd splits them (`extract_first_word`): at blanks outside of quotes. Everything from
/// an invalid escape on is left out, as systemd leaves it out.
pub fn words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => match unescaped(&mut chars) {
                Some(c) => word.get_or_insert_default().push(c),
                None => return words,
            },
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (c, None) if c.is_ascii_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What a backslash and what follows it stand for.
fn unescaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let c = chars.next()?;
    match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        's' => Some(' '),
        '\\' | '"' | '\'' => Some(c),
        'x' => {
            let digits: String = chars.by_ref().take(2).collect();
            u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii).map(char::from)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_service(text: &str) -> Vec<(String, String)> {
        let of_service = lines(text).into_iter().filter(|(section, ..)| section == "Service");
        of_service.map(|(_, key, value)| (key, value)).collect()
    }

    #[test]
    fn a_units_lines_are_of_their_section_and_may_go_on() {
        for (text, expected) in [
            ("[Unit]\nA=1\n[Service]\nB = 2 \n[Install]\nC=3\n", &[("B", "2")][..]),
            ("[Service]\nA=1 \\\n  2\nB=3\n", &[("A", "1    2"), ("B", "3")]),
            ("[Service]\nA=1 \\\n# no \\\n;no\n2\n", &[("A", "1  2")]),
            ("[Service]\r\nA=1\r\n", &[("A", "1")]),
            ("\u{feff}[Service]\nA=\n", &[("A", "")]),
            ("[Service]\nnothing\nA=b=c", &[("A", "b=c")]),
            ("A=1\n", &[]),
            ("", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            assert_eq!(of_service(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_split_where_no_quote_is() {
        for (value, expected) in [
            ("a  b", &["a", "b"][..]),
            ("\"A=b c\" D=e 'F=g h'", &["A=b c", "D=e", "F=g h"]),
            ("A=\"b c\" D=\"e\"f", &["A=b c", "D=ef"]),
            ("a b\\q c", &["a"]),
            ("\"a\\\"b\" c\\x20d e\\sf", &["a\"b", "c d", "e f"]),
            ("\"\"", &[""]),
            ("", &[]),
        ] {
            assert_eq!(words(value), expected, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(
            text in "(\\[Service\\]\n)?[A-C= \"'\\\\\n\r#;x0-9%]{0,60}",
            value in "[a-c \"'\\\\x0-9n]{0,40}",
        ) {
            for (_, _, value) in lines(&text) {
                words(&value);
            }
            let plain = !value.contains(['"', '\'', '\\']);
            prop_assert!(!plain || words(&value).iter().eq(value.split_whitespace()));
        }
    }
}
