//! This crate's error. Callers pass it on and never match on it.

use std::fmt;

use crate::quoted::harmless;

/// The longest sentence of serde_json that is repeated, in characters.
const LONGEST: usize = 240;

/// Why something cannot be read, given or edited: one sentence, without the file's path, which the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

pub(crate) fn refuse<T>(sentence: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(sentence))
}

/// Why a text is not what it should be. serde_json repeats keys and values of any length, as they are.
pub(crate) fn malformed(what: &str, error: &serde_json::Error) -> Error {
    Error::new(harmless(&format!("{what}: {error}"), LONGEST))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.0
    }
}
