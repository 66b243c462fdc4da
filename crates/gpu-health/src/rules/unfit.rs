//! Puts the TOML reader's errors into an operator's words.

use super::parse::Fault;

/// How many characters of a value an error shows.
const SHOWN: usize = 40;

/// serde's names of the types in a file of rules.
const EXPECTED: [(&str, &str); 5] = [
    ("f64", "a number"),
    ("i64", "a whole number of at most 19 digits"),
    ("a string", "a text in quotes"),
    ("a map", "a table in braces"),
    ("struct", "a table in braces"),
];

pub(super) fn fault(text: &str, error: &toml::de::Error) -> Fault {
    let span = error.span().unwrap_or(text.len()..text.len());
    let value = text.get(span.clone()).unwrap_or_default();
    let said = error.message();
    let (at, problem) = match (said.strip_prefix("missing field `"), wanted(said)) {
        // The fault concerns the whole file: the key belongs above the file's first table.
        (Some(key), _) if span.start == 0 => {
            let key = key.trim_end_matches('`');
            (first_table(text), format!("{key} is missing: write it above the first [[rule]]"))
        }
        (_, Some(wanted)) => (span.start, format!("{} is not {wanted}", short(value))),
        _ => (span.start, said.to_owned()),
    };
    Fault { at, problem: format!("{problem}: docs/health.md describes this file") }
}

fn wanted(said: &str) -> Option<&'static str> {
    let (problem, expected) = said.rsplit_once(", expected ")?;
    let is_of_value = problem.starts_with("invalid type") || problem.starts_with("invalid value");
    let expected = if expected.starts_with("struct ") { "struct" } else { expected };
    let known = EXPECTED.iter().find(|(serdes, _)| *serdes == expected && is_of_value);
    known.map(|(_, wanted)| *wanted)
}

fn short(value: &str) -> String {
    let value: String =
        value.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    let dots = if value.chars().count() > SHOWN { "…" } else { "" };
    value.chars().take(SHOWN).collect::<String>() + dots
}

fn first_table(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            return at;
        }
        at += line.len();
    }
    at
}
