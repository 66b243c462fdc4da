//! What a person is told of a text that is not what it should be.

use std::fmt;

use super::{DEEPEST, Fault, Scanner};
use crate::Quoted;

/// Where and why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// From 1 on.
    pub line: usize,
    /// In characters, from 1 on.
    pub column: usize,
    /// What is wrong there: a part of a sentence, such as `the key "x" stands twice`.
    pub problem: String,
}

impl Misread {
    pub(crate) fn of(text: &str, fault: Fault) -> Self {
        let offset = fault.offset();
        let before = text.get(..offset).unwrap_or(text);
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_begin..).unwrap_or_default().chars().count() + 1,
            problem: problem(text, fault),
        }
    }
}

impl Fault {
    fn offset(self) -> usize {
        match self {
            Self::Syntax { offset, .. }
            | Self::TooDeep { offset }
            | Self::Unwanted { offset, .. }
            | Self::Twice { offset, .. }
            | Self::Missing { offset, .. }
            | Self::Unknown { offset, .. }
            | Self::Spelling { offset, .. } => offset,
        }
    }
}

fn problem(text: &str, fault: Fault) -> String {
    match fault {
        Fault::Syntax { offset, expected } if text.len() == offset => {
            format!("the text ends where {expected} should be")
        }
        Fault::Syntax { expected, .. } => format!("not JSON, expected {expected}"),
        Fault::TooDeep { .. } => format!("nested deeper than {DEEPEST}"),
        Fault::Unwanted { offset, expected } => format!("expected {expected}, found {}", found(text, offset)),
        Fault::Twice { key, .. } => format!("the key {} stands twice", Quoted(key)),
        Fault::Missing { key, .. } => format!("the key {} is missing", Quoted(key)),
        Fault::Unknown { offset, known } => {
            format!("the key {} is not known here, only {}", key(text, offset), known.join(", "))
        }
        Fault::Spelling { offset, known } => {
            format!("the key {} is another spelling of {known}", key(text, offset))
        }
    }
}

/// The value at this offset, in a few words.
fn found(text: &str, offset: usize) -> String {
    let mut scanner = Scanner::at(text, offset);
    match scanner.peek() {
        Ok(b'{') => "an object".to_owned(),
        Ok(b'[') => "a list".to_owned(),
        Ok(b'"') => {
            scanner.string().map_or_else(|_| "a string".to_owned(), |text| Quoted(&text.decode()).to_string())
        }
        _ => scanner
            .skip()
            .map_or_else(|_| "something else".to_owned(), |span| Quoted(span.of(text)).to_string()),
    }
}

fn key(text: &str, offset: usize) -> String {
    let key = Scanner::at(text, offset).string();
    key.map_or_else(|_| "there".to_owned(), |key| Quoted(&key.decode()).to_string())
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {})", self.problem, self.line, self.column)
    }
}

impl std::error::Error for Misread {}
