//! Edits of strict JSON: what is not ours stays byte for byte, spellings of numbers, escapes and blanks among it.

mod apply;
mod revert;
mod scan;
mod style;

#[cfg(test)]
mod tests;

use super::{Fault, Key};
use scan::Document;

pub(super) use apply::apply;
pub(super) use revert::revert;

/// A text in which nothing stands, of which dockerd makes `{}`.
fn is_blank(text: &str) -> bool {
    text.strip_prefix(scan::BOM).unwrap_or(text).chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}

/// The document, whose outermost value must be an object.
fn object_document(text: &str) -> Result<Document<'_>, Fault> {
    let document = Document::new(text)?;
    if document.byte(document.root) == b'{' {
        return Ok(document);
    }
    let problem = format!("the file holds {} and not an object", document.kind(document.root));
    Err(Fault { line: document.line(document.root), problem })
}

/// A key as a person would name it: `features.cdi`.
pub(super) fn name(path: &[String]) -> String {
    let plain = |part: &String| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let parts = path.iter().map(|part| if plain(part) { part.clone() } else { format!("{part:?}") });
    parts.collect::<Vec<_>>().join(".")
}

/// The text with `with` in the place of a part of it.
fn replaced(text: &str, part: std::ops::Range<usize>, with: &str) -> String {
    let before = text.get(..part.start).unwrap_or_default();
    let after = text.get(part.end..).unwrap_or_default();
    format!("{before}{with}{after}")
}

fn blocked(document: &Document<'_>, key: &Key, at: usize, depth: usize) -> Fault {
    let way = name(key.path.get(..depth).unwrap_or_default());
    let problem = format!("{way} is {} where an object is needed", document.kind(at));
    Fault { line: document.line(at), problem }
}
