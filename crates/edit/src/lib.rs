//! Byte-preserving edits of other people's TOML and JSON: pure functions from text to text.

mod document;
mod entry;
mod json;
mod lines;
mod moved;
mod toml;

use serde::{Deserialize, Serialize};

use entry::Owner;
use json::Json;
pub use moved::Moved;
use toml::Tree;

/// The managed keys of a file, and what they hold. It is data, so that a receipt can hold it and a later run can
/// revert it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub format: Format,
    pub keys: Vec<Key>,
    /// Tables that the file's owner may have renamed since, for a newer release of what reads it. A revert takes the
    /// managed keys out of them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Toml,
    Json,
}

/// A managed key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The path from the top of the document: `["features", "cdi"]`. An edit makes the tables that are
    /// missing on the way.
    pub path: Vec<String>,
    pub set: Set,
}

/// What rocworker puts at a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// This value, in place of any other.
    Value(serde_json::Value),
    /// A list that has this member; the others stay.
    Member(serde_json::Value),
    /// Like `Member`, for a list that has a `default` while no file writes it out. A written list replaces
    /// the default, on which other programs may rely, so a new list begins with the default. A revert takes
    /// the member out, and the default too unless the list's owner has added to it. In JSON an empty list
    /// counts as missing: Go's readers treat both alike.
    Beside { member: serde_json::Value, default: Vec<serde_json::Value> },
    /// This value where the key is missing, because the rest means nothing without it (`version` of
    /// containerd's file). It may be a table. A revert leaves the key where the file's owner has put a key
    /// beside it since, which may need it.
    Needed(serde_json::Value),
    /// A table that is managed as long as its key `identity` (`path`, or `options/BinaryName` of a table in it) holds
    /// what it holds in `value`. Others may put keys beside it (arguments of a runtime): without the table they mean
    /// nothing, so that a revert removes it as a whole. An edit writes `value` where there is no table; else it sets
    /// `identity` and adds what is missing. A table without `identity` is a managed one that its owner broke, unless a
    /// key of `instead` differs from `value`.
    Entry {
        value: serde_json::Value,
        identity: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instead: Vec<String>,
    },
}

impl Set {
    /// The value of a key that was not there.
    fn fresh(&self) -> serde_json::Value {
        match self {
            Self::Value(value) | Self::Needed(value) | Self::Entry { value, .. } => value.clone(),
            Self::Member(member) => vec![member.clone()].into(),
            Self::Beside { member, default } => default.iter().chain([member]).cloned().collect(),
        }
    }

    /// Whether `rest` is what a new list holds beside its member: the list's owner has not added to it.
    fn is_default(&self, rest: &[serde_json::Value]) -> bool {
        rest.is_empty() || matches!(self, Self::Beside { default, .. } if default == rest)
    }
}

/// A text without the managed keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reverted {
    /// `None`: the file was not there before, and holds nothing but managed keys.
    pub text: Option<String>,
    /// The keys that their owner has changed since, which stay, each as a person would name it.
    pub left: Vec<String>,
    /// The entries that went with keys that their owner had put into them, each with the names of those; and the comments
    /// that stood on a managed line.
    pub went: Vec<String>,
}

impl Reverted {
    /// A sentence about what stays and what goes with an entry.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let parts = [
            ("rocworker keeps what was changed since", &self.left),
            ("rocworker also removes what was added", &self.went),
        ];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Fault {
    /// The line of the fault, from 1.
    pub line: usize,
    pub problem: String,
}

impl Format {
    /// The text as JSON values; a date of TOML becomes its text.
    ///
    /// # Errors
    /// The text is not of this format.
    pub fn read(self, text: &str) -> Result<serde_json::Value, Fault> {
        match self {
            Self::Toml => Tree::read(split_bom(text).1),
            Self::Json => serde_json::from_str(split_bom(text).1)
                .map_err(|error| Fault { line: error.line(), problem: error.to_string() }),
        }
    }
}

/// A key as a person would name it: `plugins."io.containerd.grpc.v1.cri".enable_cdi`.
fn dotted(path: &[String]) -> String {
    let names = path.iter().map(|name| toml_edit::Key::new(name).display_repr().into_owned());
    names.collect::<Vec<_>>().join(".")
}

/// Windows editors write a byte order mark. containerd 1.x and Go's readers of JSON (dockerd's) skip it.
fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

impl Edit {
    /// An edit of a file whose tables keep their names.
    #[must_use]
    pub fn new(format: Format, keys: Vec<Key>) -> Self {
        Self { format, keys, moved: Vec::new() }
    }

    /// The text with the managed keys in it. Comments, order, line ends and all other keys stay as they are; a text
    /// that has the keys already comes back byte for byte.
    ///
    /// # Errors
    /// The text is not of its format, or something is no table where one is needed.
    pub fn apply(&self, text: &str) -> Result<String, Fault> {
        match self.format {
            Format::Toml => document::apply::<Tree>(&self.keys, text),
            Format::Json => document::apply::<Json>(&self.keys, text),
        }
    }

    /// The part of this edit that must go before `new` takes its place. Where `new` keeps an entry, to which
    /// its owner may have added, only the keys whose value changes go.
    #[must_use]
    pub fn given_up_for(&self, new: &Self) -> Self {
        let given_up = |old: &Key| {
            let is_same = |key: &&Key| match (&key.set, &old.set) {
                (Set::Entry { identity, .. }, Set::Entry { identity: same, .. }) => {
                    key.path == old.path && identity == same
                }
                _ => false,
            };
            let Some(kept) = new.keys.iter().find(is_same).map(Key::leaves) else { return vec![old.clone()] };
            let rest = old.leaves().into_iter().filter(|leaf| !leaf.0 && !kept.contains(leaf));
            rest.map(|(_, key)| key).collect()
        };
        let keys = self.keys.iter().flat_map(given_up).collect();
        Self { format: self.format, keys, moved: self.moved.clone() }
    }

    /// The first entry of a text that has a managed entry's path, names nothing, and that `held` does not know:
    /// another program or a person wrote it.
    ///
    /// # Errors
    /// The text is not of its format.
    pub fn unmanaged_entry(&self, text: &str, held: Option<&Self>) -> Result<Option<String>, Fault> {
        let is_held = |key: &Key| {
            held.is_some_and(|held| held.keys.iter().any(|known| known.path.starts_with(&key.path)))
        };
        let is_entry = |key: &Key| matches!(key.set, Set::Entry { .. });
        let mut entries = self.keys.iter().filter(|key| is_entry(key) && !is_held(key)).peekable();
        if entries.peek().is_none() || split_bom(text).1.trim().is_empty() {
            return Ok(None);
        }
        let document = self.format.read(text)?;
        let unmanaged = entries.find(|key| {
            let entry = key.path.iter().try_fold(&document, |value, name| value.get(name));
            entry.is_some_and(|it| !it.is_null() && Owner::of(it, &key.set) == Owner::Unknown)
        });
        Ok(unmanaged.map(|key| dotted(&key.path)))
    }

    /// Takes the managed keys out. A key that still holds the managed value is restored to what it held `before` (`None`:
    /// the file was not there), or goes. With it go the tables that this leaves empty and that were not there before. A key
    /// that its owner has changed since stays, and is named in the answer.
    ///
    /// # Errors
    /// The text is not of its format.
    pub fn revert(&self, text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
        let revert = match self.format {
            Format::Toml => document::revert::<Tree>,
            Format::Json => document::revert::<Json>,
        };
        let mut reverted = revert(&self.keys, text, before, None)?;
        let held = if self.moved.is_empty() { serde_json::Value::Null } else { self.format.read(text)? };
        for moved in &self.moved {
            let Some(text) = reverted.text.as_deref() else { continue };
            let keys = moved.keys(&self.keys, &held);
            if keys.is_empty() {
                continue;
            }
            let more = revert(&keys, text, before, Some(moved))?;
            reverted.text = more.text;
            reverted.left.extend(more.left);
            reverted.went.extend(more.went);
        }
        Ok(reverted)
    }
}
