//! What systemd makes of an environment file (`EnvironmentFile=`).
//!
//! `src/basic/env-file.c` of systemd has the rules, which systemd.exec(5) describes: no shell, no expansion,
//! `export` is not understood, and each line end counts, a lone carriage return too.
//! tests/it/desired/concourse/real.rs holds this reader against systemd's own.

/// An environment file, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// Variables in the order of the file; the last value of a name that occurs twice counts.
    pub variables: Vec<(String, String)>,
    /// What is before a `=` and is no name of a variable, such as `export A`: systemd skips such a line with a log
    /// entry.
    pub ignored: Vec<String>,
}

impl EnvFile {
    /// Reads a text. There is none that cannot be read: what systemd leaves out is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        // systemd reads up to the first NUL.
        let mut chars = text.chars().take_while(|c| *c != '\0');
        while let Some(first) = chars.next() {
            match first {
                // systemd takes a backslash at a comment's end as part of the comment from 254 on; earlier releases
                // took the next line into the comment too.
                '#' | ';' => _ = chars.find(|c| is_newline(*c)),
                c if is_blank(c) => {}
                c => {
                    let mut key = String::from(c);
                    let end = chars.find(|c| {
                        let is_end = *c == '=' || is_newline(*c);
                        key.extend(Some(*c).filter(|_| !is_end));
                        is_end
                    });
                    // A line without `=` says nothing.
                    if end == Some('=') {
                        file.add(key.trim_end_matches(is_blank), value(&mut chars));
                    }
                }
            }
        }
        file
    }

    fn add(&mut self, key: &str, value: String) {
        if is_name(key) {
            self.variables.push((key.to_owned(), value));
        } else {
            self.ignored.push(key.to_owned());
        }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What comes behind the `=`, up to the line's end.
fn value(chars: &mut impl Iterator<Item = char>) -> String {
    let mut value = String::new();
    // The length without trailing blanks that are neither quoted nor escaped.
    let mut kept = 0;
    // A quote opens nothing once a character without quotes has come.
    let mut is_plain = false;
    while let Some(c) = chars.next().filter(|c| !is_newline(*c)) {
        match c {
            '\'' | '"' if !is_plain => quoted(chars, c, &mut value),
            '\\' => {
                is_plain = true;
                value.extend(chars.next().filter(|c| !is_newline(*c)));
            }
            c if is_blank(c) => {
                value.extend(Some(c).filter(|_| is_plain));
                continue;
            }
            c => {
                is_plain = true;
                value.push(c);
            }
        }
        kept = value.len();
    }
    value.truncate(kept);
    value
}

/// Adds the text up to the closing `quote` to `value`.
fn quoted(chars: &mut impl Iterator<Item = char>, quote: char, value: &mut String) {
    while let Some(c) = chars.next().filter(|c| *c != quote) {
        if c != '\\' || quote == '\'' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some(c @ ('"' | '\\' | '`' | '$')) => value.push(c),
            Some('\n') | None => {}
            Some(c) => value.extend(['\\', c]),
        }
    }
}

fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Whether systemd takes `key` for a variable's name (`env_name_is_valid` of its `src/basic/env-util.c`).
pub(crate) fn is_name(key: &str) -> bool {
    !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A line that gives a variable this value, whatever it holds; `None` where the name is none, or the value has
/// characters that no line should.
#[must_use]
pub fn line(name: &str, value: &str) -> Option<String> {
    if !is_name(name) || value.chars().any(char::is_control) {
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_~".contains(c);
    if value.chars().all(plain) {
        return Some(format!("{name}={value}"));
    }
    let mut quoted = String::new();
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    Some(format!("{name}=\"{quoted}\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_says_what_systemd_takes_it_to_say() {
        // systemd.exec(5), EnvironmentFile=, and src/basic/env-file.c where that is not exact.
        for (text, expected) in [
            ("A=b", &[("A", "b")][..]),
            ("A=b c \n", &[("A", "b c")]),
            ("  A = b\n", &[("A", "b")]),
            ("A=\"b c \" \n", &[("A", "b c ")]),
            ("A='b\"c\\'\n", &[("A", "b\"c\\")]),
            ("A=\"b\"'c'\n", &[("A", "bc")]),
            ("A=\"b\"c d\"e\"\n", &[("A", "bc d\"e\"")]),
            ("A=b\"c\"\n", &[("A", "b\"c\"")]),
            ("A=\n", &[("A", "")]),
            ("A=''\n", &[("A", "")]),
            ("A=b\nA=c\n", &[("A", "b"), ("A", "c")]),
            ("A=b\\\nc\n", &[("A", "bc")]),
            ("A=b \\\n  c\n", &[("A", "b   c")]),
            ("A=b\\ \n", &[("A", "b ")]),
            ("A=b\\c\n", &[("A", "bc")]),
            ("A=\"b\\\nc\"\n", &[("A", "bc")]),
            ("A=\"b\nc\"\n", &[("A", "b\nc")]),
            ("A=\"\\$\\`\\\"\\\\\\n\"\n", &[("A", "$`\"\\\\n")]),
            ("A=$HOME ${X} `id`\n", &[("A", "$HOME ${X} `id`")]),
            ("# A=b\n;C=d\nE=f # g\n", &[("E", "f # g")]),
            ("# a \\\nA=b\n", &[("A", "b")]),
            ("A=b\r\nC=d\r\n", &[("A", "b"), ("C", "d")]),
            ("A=b\\\r\nC=d\r\n", &[("A", "b"), ("C", "d")]),
            ("A\nB=c\n", &[("B", "c")]),
            ("=a\nB=c\n", &[("B", "c")]),
            ("A=b=c\n", &[("A", "b=c")]),
            ("A=\"b", &[("A", "b")]),
            ("A=b\\", &[("A", "b")]),
            ("A=b\0C=d", &[("A", "b")]),
            ("", &[]),
            ("\n\n", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            let read = EnvFile::parse(text);
            assert_eq!(read.variables, expected, "{text:?}");
            assert!(read.ignored.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_variables_name_is_ignored_and_told() {
        for (text, ignored) in [
            ("export A=b\nC=d\n", "export A"),
            ("\u{feff}A=b\nC=d\n", "\u{feff}A"),
            ("1A=b\nC=d\n", "1A"),
            ("A-B=c\nC=d\n", "A-B"),
        ] {
            let read = EnvFile::parse(text);
            assert_eq!(read.ignored, [ignored], "{text:?}");
            assert_eq!(read.get("C"), Some("d"), "{text:?}");
        }
    }

    #[test]
    fn the_last_of_two_counts() {
        assert_eq!(EnvFile::parse("A=b\nA=c\n").get("A"), Some("c"));
        assert_eq!(EnvFile::parse("A=b\n").get("B"), None);
    }

    proptest! {
        #[test]
        fn a_line_that_is_written_is_read_as_it_was_meant(value in "[^\\p{Cc}]{0,40}") {
            let text = format!("{}\nLAST=1\n", line("A", &value).unwrap());
            let read = EnvFile::parse(&text);
            prop_assert_eq!(read.get("A"), Some(value.as_str()));
            prop_assert_eq!(read.get("LAST"), Some("1"));
        }

        #[test]
        fn no_text_is_too_odd(text in "[A-C= \"'\\\\\\n\\r#;$]{0,60}") {
            let read = EnvFile::parse(&text);
            prop_assert!(read.variables.iter().all(|(name, _)| is_name(name)));
        }
    }
}
