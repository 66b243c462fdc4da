//! Changes of files that are somebody else's: pure functions from text to text.

mod json;
mod toml;

use serde::{Deserialize, Serialize};

/// Which keys of a file are ours, and what they hold. Data, so that a receipt can hold it and take the keys out
/// again long after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub format: Format,
    pub keys: Vec<Key>,
    /// Tables that the file's owner may have had renamed since, for a newer release of what reads it: our keys are taken
    /// out of them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Toml,
    Json,
}

/// A table, and what it is called later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: Vec<String>,
    pub to: Vec<String>,
    /// A table beneath it that is ours as a whole: what renames tables also writes out what is left to default in them.
    pub whole: Vec<String>,
}

/// One key that is ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// From the top of the document: `["features", "cdi"]`. Tables on the way are made where they are missing.
    pub path: Vec<String>,
    pub set: Set,
}

/// What a key should hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// This value, whatever it was.
    Value(serde_json::Value),
    /// A list that has this among its members; the others stay.
    Member(serde_json::Value),
    /// The same of a list that has a `default` where it is not written out: what is written takes the default's place,
    /// which others may rely on, so that a list of ours begins with it. On the way back ours goes, and the default as
    /// well where nothing else has come to stand beside it; a list that somebody has added to keeps it. In JSON an
    /// empty list is none: Go's readers cannot tell the two apart.
    Beside { member: serde_json::Value, default: Vec<serde_json::Value> },
    /// This value where there is none, because the rest means nothing without it (`version` of containerd's file).
    /// It may be a table. On the way back it stays where somebody has put something beside it since: that may need
    /// it as well.
    Needed(serde_json::Value),
    /// A table that is ours as long as its key `identity` holds what it holds in `value`, whatever others have put
    /// beside that (arguments of a runtime): they may tune it, and it goes as one, since without it they mean nothing.
    /// `value` is what it holds when it is made; in one that is there, `identity` alone is set. JSON only: of a TOML
    /// file leaves are ours.
    Entry { value: serde_json::Value, identity: String },
}

impl Set {
    /// What a key holds that was not there.
    fn fresh(&self) -> serde_json::Value {
        match self {
            Self::Value(value) | Self::Needed(value) | Self::Entry { value, .. } => value.clone(),
            Self::Member(member) => vec![member.clone()].into(),
            Self::Beside { member, default } => default.iter().chain([member]).cloned().collect(),
        }
    }

    /// Whether these are a list of ours without its member: nothing of it is anybody's.
    fn is_default(&self, rest: &[serde_json::Value]) -> bool {
        rest.is_empty() || matches!(self, Self::Beside { default, .. } if default == rest)
    }
}

/// A text without our keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reverted {
    /// `None`: nothing but ours was in it, and the file was not there before: it goes.
    pub text: Option<String>,
    /// Keys that hold something else than ours by now and were left, each as a person would name it.
    pub left: Vec<String>,
    /// Entries of ours that went with something of somebody else's in them, each with its names.
    pub went: Vec<String>,
}

/// Why a text cannot be edited. The file is then left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Fault {
    /// From 1.
    pub line: usize,
    pub problem: String,
}

impl Format {
    /// What a text says, as JSON has it; a date of TOML becomes its text.
    ///
    /// # Errors
    /// The text is not of this format.
    pub fn read(self, text: &str) -> Result<serde_json::Value, Fault> {
        match self {
            Self::Toml => toml::read(text),
            Self::Json => serde_json::from_str(text)
                .map_err(|error| Fault { line: error.line(), problem: error.to_string() }),
        }
    }
}

impl Format {
    fn revert(self, keys: &[Key], text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
        match self {
            Self::Toml => toml::revert(keys, text, before),
            Self::Json => json::revert(keys, text, before),
        }
    }
}

impl Edit {
    /// An edit of a file whose tables keep their names.
    #[must_use]
    pub fn new(format: Format, keys: Vec<Key>) -> Self {
        Self { format, keys, moved: Vec::new() }
    }

    /// The text with our keys in it; comments, order, line ends and every key that is not ours stay as they are. A
    /// text that has them already comes back byte for byte.
    ///
    /// # Errors
    /// The text is not of its format, something that is no table stands where one is needed, or an [`Set::Entry`] is
    /// wanted of a TOML file.
    pub fn apply(&self, text: &str) -> Result<String, Fault> {
        match self.format {
            Format::Toml => toml::apply(&self.keys, text),
            Format::Json => json::apply(&self.keys, text),
        }
    }

    /// What of it goes before `new` takes its place: all but the entries that `new` keeps under another identity, in
    /// which there may be something of somebody else's.
    #[must_use]
    pub(crate) fn given_up_for(&self, new: &Self) -> Self {
        let is_kept = |old: &&Key| {
            let Set::Entry { identity, .. } = &old.set else { return false };
            new.keys.iter().any(|key| {
                key.path == old.path
                    && matches!(&key.set, Set::Entry { identity: same, .. } if same == identity)
            })
        };
        let keys = self.keys.iter().filter(|key| !is_kept(key)).cloned().collect();
        Self { format: self.format, keys, moved: self.moved.clone() }
    }

    /// Takes our keys out again. A key that still holds ours goes back to what it was `before` (`None`: the file
    /// was not there), or away, with the tables that this leaves empty and that were not there before; a key that
    /// somebody has changed since is theirs, stays and is told.
    ///
    /// # Errors
    /// The text is not of its format.
    pub fn revert(&self, text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
        let mut reverted = self.format.revert(&self.keys, text, before)?;
        for moved in &self.moved {
            let Some(text) = reverted.text.as_deref() else { continue };
            let keys = moved.keys(&self.keys, &self.format.read(text)?);
            if keys.is_empty() {
                continue;
            }
            let more = self.format.revert(&keys, text, before)?;
            reverted.text = more.text;
            reverted.left.extend(more.left);
            reverted.went.extend(more.went);
        }
        Ok(reverted)
    }
}

impl Moved {
    /// Our keys where they stand then, in a document that holds them there.
    fn keys(&self, keys: &[Key], document: &serde_json::Value) -> Vec<Key> {
        let at = |path: &[String]| path.iter().try_fold(document, |value, key| value.get(key));
        let there: Vec<Key> = keys.iter().filter_map(|key| self.key(key)).collect();
        let whole = [self.to.as_slice(), &self.whole].concat();
        let (inside, outside): (Vec<Key>, Vec<Key>) =
            there.into_iter().partition(|key| key.path.starts_with(&whole));
        let is_ours = |key: &Key| matches!(&key.set, Set::Value(ours) if at(&key.path) == Some(ours));
        match at(&whole) {
            // What it holds is told as ours, so that all of it goes.
            Some(table) if !inside.is_empty() && inside.iter().all(is_ours) => {
                let key = Key { path: whole, set: Set::Value(table.clone()) };
                outside.into_iter().chain([key]).collect()
            }
            _ => outside.into_iter().chain(inside).collect(),
        }
    }

    fn key(&self, key: &Key) -> Option<Key> {
        let rest = key.path.strip_prefix(self.from.as_slice())?;
        Some(Key { path: [&self.to, rest].concat(), set: key.set.clone() })
    }
}
