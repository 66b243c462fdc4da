//! What is kept in files between one call and the next: a JSON object in one line, which begins with the
//! version of its schema.
//!
//! The files outlive an update of the program that wrote them. So the version is read first, and a newer one
//! is named as such, whatever else is new in it.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of document, and what is said of one that cannot be used.
pub trait Document: Serialize + DeserializeOwned {
    /// The version that is written; older ones are read, too.
    const SCHEMA_VERSION: u32;
    /// In front of what serde_json says.
    const MALFORMED: &'static str;

    /// What is said of this newer version.
    fn newer(version: u32) -> String;
}

/// A document that cannot be used.
#[derive(Debug)]
pub struct Error {
    sentence: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

/// Reads a document.
///
/// # Errors
/// It is malformed, has unknown keys, or a newer schema version.
pub fn parse<D: Document>(text: &str) -> Result<D, Error> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let malformed = |error: serde_json::Error| Error { sentence: format!("{}: {error}", D::MALFORMED) };
    let version: Version = serde_json::from_str(text).map_err(malformed)?;
    if version.schema_version > D::SCHEMA_VERSION {
        return Err(Error { sentence: D::newer(version.schema_version) });
    }
    serde_json::from_str(text).map_err(malformed)
}

/// The document as text, one line.
///
/// # Errors
/// None that can be met: every part of these documents can be written as JSON.
pub fn to_json<D: Document>(document: &D) -> Result<String, serde_json::Error> {
    serde_json::to_string(document).map(|line| line + "\n")
}
