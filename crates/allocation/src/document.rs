//! Documents that are kept in files between calls: a JSON object in one line, which begins with its schema
//! version.
//!
//! The files outlive an update of the program that wrote them. So the version is read first, and a newer one
//! is reported as such, whatever else is new in the file.

use inventory::hip_worker::HipWorker;
use inventory::published::{self, Published};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::{malformed, refuse};

/// A kind of document.
pub trait Document: Serialize + DeserializeOwned {
    /// The version that is written; older ones are read, too.
    const SCHEMA_VERSION: u32;
    /// The document's name in messages.
    const NAME: &'static str;

    /// Reads a document.
    ///
    /// # Errors
    /// The text is malformed, has unknown keys, or a newer schema version: the end of a sentence about the
    /// document.
    fn parse(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let malformed = |error| malformed(&format!("is no {}", Self::NAME), &error);
        let Version { schema_version } = serde_json::from_str(text).map_err(malformed)?;
        if schema_version > Self::SCHEMA_VERSION {
            return refuse(format!(
                "has schema_version {schema_version} of a newer version (this one reads {}): use one version of rocworker",
                Self::SCHEMA_VERSION
            ));
        }
        serde_json::from_str(text).map_err(malformed)
    }

    /// The document as text, one line.
    ///
    /// # Errors
    /// None in practice: every part of these documents can be written as JSON.
    fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self).map(|line| line + "\n").map_err(|error| Error::new(error.to_string()))
    }
}

impl Document for HipWorker {
    const SCHEMA_VERSION: u32 = 1;
    const NAME: &'static str = "file of the HIP worker";
}

impl Document for Published {
    const SCHEMA_VERSION: u32 = published::SCHEMA_VERSION;
    const NAME: &'static str = "file of the daemon";
}
