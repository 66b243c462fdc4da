//! Edits of strict JSON. Everything unmanaged stays byte for byte, with its blanks, escapes and spellings of numbers.

mod apply;
mod document;
mod revert;
mod style;

#[cfg(test)]
mod tests;

pub(super) use apply::apply;
pub(super) use revert::revert;

/// Whether a text holds no value; dockerd takes such a file for `{}`.
fn is_blank(text: &str) -> bool {
    text.strip_prefix(document::BOM).unwrap_or(text).chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}

/// A key as a person would name it: `features.cdi`.
pub(super) fn name(path: &[String]) -> String {
    let plain = |part: &String| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let parts = path.iter().map(|part| if plain(part) { part.clone() } else { format!("{part:?}") });
    parts.collect::<Vec<_>>().join(".")
}
