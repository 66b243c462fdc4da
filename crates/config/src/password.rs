//! What sentences show of a value in which a password may stand: the journal keeps messages.

/// A value without what stands between its first colon and its last `@`, where a URL has a password: `https://…@host/x`.
pub(super) fn hidden(value: &str) -> String {
    let Some((before, host)) = value.rsplit_once('@') else { return value.to_owned() };
    let Some((scheme, rest)) = before.split_once(':') else { return value.to_owned() };
    let shown = rest.len() - rest.trim_start_matches(['/', ' ']).len();
    format!("{scheme}:{}…@{host}", rest.get(..shown).unwrap_or_default())
}

/// A sentence without the passwords in its values. Most values have quotes around them. A value without quotes is one word,
/// or a URL with blanks in it, which `://` shows.
pub(super) fn without_passwords(sentence: &str) -> String {
    const QUOTE: &str = "\\\"";
    const IN_ITS_PLACE: &str = "\0";
    let between = |text: &str| match text.contains("://") {
        true => hidden(text),
        false => text.split(' ').map(hidden).collect::<Vec<_>>().join(" "),
    };
    let parts = sentence.replace(QUOTE, IN_ITS_PLACE);
    let parts = parts.split('"').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 { hidden(part) } else { between(part) });
    parts.collect::<Vec<_>>().join("\"").replace(IN_ITS_PLACE, QUOTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_left_whatever_stands_in_it() {
        for (sentence, shown) in [
            (r#"key "https://me:se cr/e't@host/x" is"#, r#"key "https://…@host/x" is"#),
            (r#"key "https://me:sec\"ret@host" is"#, r#"key "https://…@host" is"#),
            (r#""me:secret@host" and "//me:secret@host""#, r#""me:…@host" and "//me:…@host""#),
            ("folders: https://me:sec ret@host is no path", "folders: …@host is no path"),
            (r#"no machine "root@gpu2" here"#, r#"no machine "root@gpu2" here"#),
            ("units a@b.service", "units a@b.service"),
            (
                "this is no YAML: text with #, & or @ needs quotes",
                "this is no YAML: text with #, & or @ needs quotes",
            ),
            ("takes groups, as {a: [b, root@c]}", "takes groups, as {a: [b, root@c]}"),
            ("no key: me:secret@host", "no key: me:…@host"),
        ] {
            assert_eq!(without_passwords(sentence), shown);
        }
    }
}
