//! Edits of strict JSON. Everything unmanaged stays byte for byte, with its blanks, escapes and spellings of numbers.

mod apply;
mod document;
mod revert;
mod style;

#[cfg(test)]
mod tests;

pub(super) use apply::apply;
pub(super) use revert::revert;

use crate::split_bom;

/// Whether a text holds no value; dockerd takes such a file for `{}`.
fn is_blank(text: &str) -> bool {
    split_bom(text).1.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}
