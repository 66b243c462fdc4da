//! A container's `config.json` (OCI runtime-spec), read for what matters and edited in place.
//!
//! The text is scanned once, and only the places of what matters are kept. An edit splices text at these
//! places: every other byte stays as it was, unknown fields, order, number spelling and whitespace
//! included.
//!
//! # Whose reading counts
//! runc reads the file with Go's decoder, which unescapes keys, matches them without regard to case, and
//! merges what stands twice. So a key is recognised here in every spelling that Go takes for it, and edited
//! where it stands. Where one that matters stands twice, or has a wrong type, nobody can say what the
//! bundle means: [`Bundle::doubt`] says so and [`Bundle::inject`] refuses; a container that asks for
//! nothing is not hindered by it.

mod error;
mod inject;

use std::borrow::Cow;

pub use error::Error;
pub use inject::{Injection, Node};

use crate::gids::UserNamespace;

/// A bundle's `config.json`, of which only the places of what matters are known.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    text: &'a str,
}

/// A device that the bundle has already, of `linux.devices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    pub path: Cow<'a, str>,
    /// `c`, `b`, `u` or `p`.
    pub kind: Cow<'a, str>,
    pub major: Option<i64>,
    pub minor: Option<i64>,
}

impl<'a> Bundle<'a> {
    /// Finds what matters.
    ///
    /// # Errors
    /// The text is not one JSON object, or is nested deeper than 128.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let _ = Self { text }.text;
        todo!()
    }

    /// Why this bundle cannot be edited, if it cannot: the first key in doubt.
    #[must_use]
    pub fn doubt(&self) -> Option<&Error> {
        todo!()
    }

    /// `process.env`, entry by entry. Where it stands twice, the entries of both.
    pub fn env(&self) -> impl Iterator<Item = &str> {
        [].into_iter()
    }

    /// The keys of `annotations`.
    pub fn annotation_keys(&self) -> impl Iterator<Item = &str> {
        [].into_iter()
    }

    /// The user namespace that the bundle asks for (`linux.namespaces`, `uidMappings`, `gidMappings`).
    ///
    /// # Errors
    /// One of these keys is in doubt.
    pub fn user_namespace(&self) -> Result<UserNamespace, Error> {
        todo!()
    }

    /// `linux.devices`.
    ///
    /// # Errors
    /// The key is in doubt, or an entry is not a device.
    pub fn devices(&self) -> Result<Vec<Device<'a>>, Error> {
        todo!()
    }
}
