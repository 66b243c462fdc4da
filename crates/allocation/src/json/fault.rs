//! Where and why reading stopped, and the sentence that says so.

use super::{DEEPEST, Scanner};
use crate::{Error, Quoted};

/// Why scanning stopped, at a byte of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is not JSON: this was expected.
    Syntax(&'static str),
    TooDeep,
    /// It is JSON, but not this, which is wanted here.
    Unwanted(&'static str),
    /// The object has this key twice.
    Twice(&'static str),
    /// The object lacks this key.
    Missing(&'static str),
    /// The key is none of these, which are all that are known here.
    Unknown(&'static [&'static str]),
    /// The key is another spelling of this one, which is known here.
    Spelling(&'static str),
}

impl Fault {
    /// What is wrong, and where: `the key "x" appears twice (line 1, column 7)`. Lines and columns count from 1, columns
    /// in characters.
    pub(crate) fn of(self, text: &str) -> Error {
        let before = text.get(..self.offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error::new(format!("{} (line {line}, column {column})", self.problem_of(text)))
    }

    fn problem_of(self, text: &str) -> String {
        let Self { offset, problem } = self;
        match problem {
            Problem::Syntax(expected) if text.len() == offset => {
                format!("the text ends where {expected} should be")
            }
            Problem::Syntax(expected) => format!("not JSON, expected {expected}"),
            Problem::TooDeep => format!("nested deeper than {DEEPEST}"),
            Problem::Unwanted(expected) => format!("expected {expected}, found {}", found(text, offset)),
            Problem::Twice(key) => format!("the key {} appears twice", Quoted(key)),
            Problem::Missing(key) => format!("the key {} is missing", Quoted(key)),
            Problem::Unknown(known) => {
                format!("the key {} is not known here, only {}", found(text, offset), known.join(", "))
            }
            Problem::Spelling(known) => {
                format!("the key {} is another spelling of {known}", found(text, offset))
            }
        }
    }
}

/// The value or key at this offset, in a few words.
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
