//! What a person reads of a file that changes: the lines, without the values that stay.

use similar::{ChangeTag, TextDiff};

/// Comparing longer texts takes time, and people do not read the result.
const DIFF_LIMIT: usize = 256 << 10;

/// The lines that change, as `diff -U0` shows them without its header: a line beside them may hold a secret.
pub(crate) fn diff(old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = texts(old, new)?;
    Some(
        TextDiff::from_lines(old, new)
            .unified_diff()
            .context_radius(0)
            .missing_newline_hint(false)
            .to_string(),
    )
}

/// The lines that an edit changes, with `…` for the words of a value that stay: the file is another's, and may hold a
/// secret in a line that merely gets a comma.
pub(crate) fn edit_diff(old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = texts(old, new)?;
    let lines = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for hunk in lines.unified_diff().context_radius(0).iter_hunks() {
        text.push_str(&format!("{}\n", hunk.header()));
        for op in hunk.ops() {
            let was = lines.old_slices().get(op.old_range()).unwrap_or_default().concat();
            let is = lines.new_slices().get(op.new_range()).unwrap_or_default().concat();
            let (words_before, words_after) = (words(&was), words(&is));
            let by_words = TextDiff::from_slices(&words_before, &words_after);
            text.push_str(&side(&by_words, ChangeTag::Delete, '-', &was));
            text.push_str(&side(&by_words, ChangeTag::Insert, '+', &is));
        }
    }
    Some(text)
}

fn texts<'t>(old: &'t [u8], new: &'t [u8]) -> Option<(&'t str, &'t str)> {
    let texts = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    (old.len().max(new.len()) <= DIFF_LIMIT).then_some(texts)
}

/// Words, and by itself each blank and sign between them.
fn words(mut text: &str) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || "{}[]()\"',:=".contains(c);
    let mut words = Vec::new();
    while let Some(first) = text.chars().next() {
        let end = if is_between(first) { Some(first.len_utf8()) } else { text.find(is_between) };
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        words.push(word);
        text = rest;
    }
    words
}

/// The lines of one side, if it has anything that the other has not. `whole`: the side with every word.
fn side<'t>(by_words: &TextDiff<'t, 't, 't, str>, tag: ChangeTag, sign: char, whole: &str) -> String {
    let mut hidden = String::new();
    let mut is_changed = false;
    for change in by_words.iter_all_changes() {
        let word = change.value();
        is_changed |= change.tag() == tag;
        if change.tag() == tag || change.tag() == ChangeTag::Equal && !word.contains(char::is_alphanumeric) {
            hidden.push_str(word);
        } else if change.tag() == ChangeTag::Equal {
            hidden.push('…');
        }
    }
    let lines = whole.lines().zip(hidden.lines()).filter(|_| is_changed);
    lines.map(|(line, hidden)| format!("{sign}{}\n", with_key(line, hidden))).collect()
}

/// A line with hidden words, in which its key is shown: without it nobody can tell what changes.
fn with_key(line: &str, hidden: &str) -> String {
    const ENDS: [char; 2] = ['=', ':'];
    let key = line.split_once(ENDS).map(|(key, _)| key);
    // What stands in a text or behind a comma belongs to a value.
    let key = key.filter(|key| key.matches(['"', '\'']).count() % 2 == 0 && !key.contains(','));
    match key.zip(hidden.find(ENDS)) {
        Some((key, end)) => format!("{key}{}", hidden.get(end..).unwrap_or_default()),
        None => hidden.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_of_an_edit_has_keys_and_the_words_that_change_and_no_value_that_stays() {
        for (old, new, expected) in [
            (
                "{\n  \"token\": \"hunter2\"\n}\n",
                "{\n  \"token\": \"hunter2\",\n  \"features\": {\n    \"cdi\": true\n  }\n}\n",
                "@@ -2 +2,4 @@\n+  \"token\": \"…\",\n+  \"features\": {\n+    \"cdi\": true\n+  }\n",
            ),
            (
                "{\"a\":{},\"token\":\"hunter2\",\"b\":{}}",
                "{\"a\":{\"cdi\":true},\"token\":\"hunter2\",\"b\":{\"amd\":1}}",
                "@@ -1 +1 @@\n+{\"a\":{\"cdi\":true},\"…\":\"…\",\"…\":{\"amd\":1}}\n",
            ),
            ("# hunter2\n[a]\nb = 1\n", "# hunter2\n[a]\nb = 2\n", "@@ -3 +3 @@\n-b = 1\n+b = 2\n"),
            (
                "    enable_cdi = false # hunter2\n",
                "    enable_cdi = true # hunter2\n",
                "@@ -1 +1 @@\n-    enable_cdi = false # …\n+    enable_cdi = true # …\n",
            ),
            ("a = [\n  \"hunter2:\"\n]\n", "a = [\n  \"hunter2:\", 1\n]\n", "@@ -2 +2 @@\n+  \"…:\", 1\n"),
            (
                "[\"hunter2\",{\"a\":1}]",
                "[\"hunter2\",{\"a\":2}]",
                "@@ -1 +1 @@\n-[\"…\",{\"…\":1}]\n+[\"…\",{\"…\":2}]\n",
            ),
            ("", "a = 1\n", "@@ -0,0 +1 @@\n+a = 1\n"),
            ("a = 1\nb = 2\n", "b = 2\n", "@@ -1 +0,0 @@\n-a = 1\n"),
        ] {
            assert_eq!(edit_diff(old.as_bytes(), new.as_bytes()).unwrap(), expected, "{old} {new}");
        }
        assert_eq!(diff(b"a\nhunter2\n", b"b\nhunter2\n").unwrap(), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
