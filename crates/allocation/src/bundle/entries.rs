//! The entries of the short lists that an edit has to look into.
//!
//! These are read by serde_json, which is stricter than Go's decoder: it takes no key in another case and
//! none twice. An entry that is written so is refused, not guessed at.

use std::borrow::Cow;

use serde::Deserialize;

use super::Error;
use crate::{cdi, splice::Place};

/// A device that the bundle has already, of `linux.devices`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Device<'a> {
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    /// `c`, `b`, `u` or `p`.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    pub major: Option<i64>,
    pub minor: Option<i64>,
}

/// A rule of the device cgroup, of `linux.resources.devices`.
#[derive(Debug, Deserialize)]
pub(super) struct Rule<'a> {
    pub(super) allow: bool,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) major: Option<i64>,
    pub(super) minor: Option<i64>,
    #[serde(borrow)]
    pub(super) access: Option<Cow<'a, str>>,
}

impl Rule<'_> {
    /// Whether this rule already allows a character device all that `access` says.
    pub(super) fn allows(&self, major: u32, minor: u32, access: &str) -> bool {
        self.allow
            && self.kind.as_deref() == Some("c")
            && self.major == Some(major.into())
            && self.minor == Some(minor.into())
            && self.access.as_deref().is_some_and(|has| access.chars().all(|c| has.contains(c)))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Namespace<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) path: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mount<'a> {
    #[serde(borrow)]
    destination: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    source: Option<Cow<'a, str>>,
    #[serde(borrow)]
    options: Option<Vec<Cow<'a, str>>>,
}

impl Mount<'_> {
    pub(super) fn is(&self, mount: &cdi::Mount<'_>) -> bool {
        self.destination == mount.container_path
            && self.source.as_deref() == Some(&*mount.host_path)
            && self.kind == mount.kind
            && self.options.as_deref().unwrap_or_default() == mount.options
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Hook<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    args: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    env: Option<Vec<Cow<'a, str>>>,
    timeout: Option<i64>,
}

impl Hook<'_> {
    pub(super) fn is(&self, hook: &cdi::Hook<'_>) -> bool {
        self.path == hook.path
            && self.args.as_deref().unwrap_or_default() == hook.args
            && self.env.as_deref().unwrap_or_default() == hook.env
            && self.timeout == hook.timeout
    }
}

/// Reads the entries of a list; none where there is no list.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str, place: Place, key: &str) -> Result<Vec<T>, Error> {
    let Place::Here(container) = place else { return Ok(Vec::new()) };
    if container.empty {
        return Ok(Vec::new());
    }
    serde_json::from_str(container.span.of(text)).map_err(|error| {
        let message = error.to_string();
        // The position counts from the beginning of the list, which nobody would know.
        let reason = message.rsplit_once(" at line ").map_or(&*message, |(reason, _)| reason);
        Error::Unreadable { key: key.to_owned(), reason: reason.to_owned() }
    })
}
