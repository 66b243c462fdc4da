//! The entries of the short lists that an edit has to look into.
//!
//! These are read by serde_json, which takes no key in another case, and would pass such a one by as unknown,
//! while Go's decoder takes it for the field, over the value that the field has already. An entry with a key
//! in another case, or with one twice, is refused, not guessed at.

use std::borrow::Cow;

use serde::Deserialize;

use super::Error;
use crate::{
    cdi,
    gids::IdMapping,
    json::{Container, Fault, Scanner},
    splice::Place,
};

/// An entry of such a list.
pub(crate) trait Entry<'a>: Deserialize<'a> {
    /// The keys that are read.
    const KEYS: &'static [&'static str];
}

/// A gid.
impl Entry<'_> for u32 {
    const KEYS: &'static [&'static str] = &[];
}

impl Entry<'_> for IdMapping {
    const KEYS: &'static [&'static str] = &["containerID", "hostID", "size"];
}

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

impl<'a> Entry<'a> for Device<'a> {
    const KEYS: &'static [&'static str] = &["path", "type", "major", "minor"];
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

impl<'a> Entry<'a> for Rule<'a> {
    const KEYS: &'static [&'static str] = &["allow", "type", "major", "minor", "access"];
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

impl<'a> Entry<'a> for Namespace<'a> {
    const KEYS: &'static [&'static str] = &["type", "path"];
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

impl<'a> Entry<'a> for Mount<'a> {
    const KEYS: &'static [&'static str] = &["destination", "type", "source", "options"];
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

impl<'a> Entry<'a> for Hook<'a> {
    const KEYS: &'static [&'static str] = &["path", "args", "env", "timeout"];
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
pub(crate) fn read<'a, T: Entry<'a>>(text: &'a str, place: Place, key: &str) -> Result<Vec<T>, Error> {
    let Place::Here(container) = place else { return Ok(Vec::new()) };
    if container.empty {
        return Ok(Vec::new());
    }
    if let Some((written, known)) = other_spelling(text, container, T::KEYS)? {
        let reason = format!("an entry has the key {written} instead of {known}");
        return Err(Error::Unreadable { key: key.to_owned(), reason });
    }
    serde_json::from_str(container.span.of(text)).map_err(|error| {
        let message = error.to_string();
        // The position counts from the beginning of the list, which nobody would know.
        let reason = message.rsplit_once(" at line ").map_or(&*message, |(reason, _)| reason);
        Error::Unreadable { key: key.to_owned(), reason: reason.to_owned() }
    })
}

/// The first key of an entry that Go's decoder takes for one of `keys` and serde_json does not.
fn other_spelling<'a>(
    text: &'a str,
    list: Container,
    keys: &[&'static str],
) -> Result<Option<(Cow<'a, str>, &'static str)>, Fault> {
    let mut found = None;
    if keys.is_empty() {
        return Ok(found);
    }
    Scanner::at(text, list.span.start).array(|scanner| {
        if scanner.peek()? != b'{' {
            return scanner.skip().map(drop);
        }
        let object = scanner.object(|scanner, key| {
            if let Some(known) = keys.iter().find(|known| key.names(known)) {
                let written = key.decode();
                if written != *known {
                    found.get_or_insert((written, *known));
                }
            }
            scanner.skip().map(drop)
        });
        object.map(drop)
    })?;
    Ok(found)
}
