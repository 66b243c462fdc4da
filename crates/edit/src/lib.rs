//! Changes of files that are somebody else's: pure functions from text to text.

mod entry;
mod json;
mod moved;
mod toml;

use serde::{Deserialize, Serialize};

use entry::{Leaf, Owner, is_empty, leaves};
pub use moved::Moved;

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
    /// A table that is ours unless its key `identity` holds something else than in `value` (`path`, or
    /// `options/BinaryName` of a table in it), whatever others have put beside that (arguments of a runtime): they may
    /// tune it, and it goes or stays as one, since without it they mean nothing. `value` is what it holds when it is
    /// made; in one that is there, `identity` is set, and what is missing of the rest. One without its `identity` is
    /// ours that somebody has broken, unless a key of `instead` says something else than ours does.
    Entry {
        value: serde_json::Value,
        identity: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instead: Vec<String>,
    },
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

impl Reverted {
    /// What a person should know of it.
    pub fn told(&self) -> Option<String> {
        let some = |names: &[String], said: &str| {
            (!names.is_empty()).then(|| format!("{} {said}", names.join(", ")))
        };
        let left = some(
            &self.left,
            match self.left.len() {
                1 => "stays: somebody has changed it",
                _ => "stay: somebody has changed them",
            },
        );
        let went = some(&self.went, "went, which somebody has added to");
        let told: Vec<String> = left.into_iter().chain(went).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
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
            Self::Json => serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
                .map_err(|error| Fault { line: error.line(), problem: error.to_string() }),
        }
    }

    /// A key as a person would name it.
    fn name(self, path: &[String]) -> String {
        match self {
            Self::Toml => toml::name(path),
            Self::Json => json::name(path),
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
    /// The text is not of its format, or something that is no table stands where one is needed.
    pub fn apply(&self, text: &str) -> Result<String, Fault> {
        match self.format {
            Format::Toml => toml::apply(&self.keys, text),
            Format::Json => json::apply(&self.keys, text),
        }
    }

    /// What of it goes before `new` takes its place. Of an entry that `new` keeps, in which there may be something of
    /// somebody else's, only what it holds otherwise than before.
    #[must_use]
    pub fn given_up_for(&self, new: &Self) -> Self {
        let given_up = |old: &Key| {
            let Set::Entry { identity, .. } = &old.set else { return vec![old.clone()] };
            let kept = new.keys.iter().find_map(|key| match &key.set {
                Set::Entry { value, identity: same, .. } if key.path == old.path && same == identity => {
                    Some(value)
                }
                _ => None,
            });
            let Some(kept) = kept else { return vec![old.clone()] };
            let kept = leaves(kept);
            let is_kept =
                |leaf: &Leaf<'_>| leaf.is_identity || kept.contains(&(leaf.way.clone(), leaf.value));
            let rest = old.set.leaves().into_iter().filter(|leaf| !is_kept(leaf));
            rest.map(|leaf| old.below(&leaf)).collect()
        };
        let keys = self.keys.iter().flat_map(given_up).collect();
        Self { format: self.format, keys, moved: self.moved.clone() }
    }

    /// The first entry that this would take for ours in a text though it names nothing and `held` knows none of this
    /// name: somebody else's.
    ///
    /// # Errors
    /// The text is not of its format.
    pub fn somebody_elses(&self, text: &str, held: Option<&Self>) -> Result<Option<String>, Fault> {
        let is_held = |key: &Key| {
            held.is_some_and(|held| held.keys.iter().any(|known| known.path.starts_with(&key.path)))
        };
        let is_entry = |key: &Key| matches!(key.set, Set::Entry { .. });
        let mut entries = self.keys.iter().filter(|key| is_entry(key) && !is_held(key)).peekable();
        if entries.peek().is_none() || text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(None);
        }
        let document = self.format.read(text)?;
        let theirs = entries.find(|key| {
            let entry = key.path.iter().try_fold(&document, |value, name| value.get(name));
            entry.is_some_and(|it| !it.is_null() && Owner::of(it, &key.set) == Owner::Nobody)
        });
        Ok(theirs.map(|key| self.format.name(&key.path)))
    }

    /// Takes our keys out again. A key that still holds ours goes back to what it was `before` (`None`: the file
    /// was not there), or away, with the tables that this leaves empty and that were not there before; a key that
    /// somebody has changed since is theirs, stays and is told.
    ///
    /// # Errors
    /// The text is not of its format.
    pub fn revert(&self, text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
        let mut reverted = match self.format {
            Format::Toml => toml::revert(&self.keys, text, before, None)?,
            Format::Json => return json::revert(&self.keys, text, before),
        };
        let held = if self.moved.is_empty() { serde_json::Value::Null } else { self.format.read(text)? };
        for moved in &self.moved {
            let Some(text) = reverted.text.as_deref() else { continue };
            let keys = moved.keys(&self.keys, &held);
            if keys.is_empty() {
                continue;
            }
            let more = toml::revert(&keys, text, before, Some(moved))?;
            reverted.text = more.text;
            reverted.left.extend(more.left);
            reverted.went.extend(more.went);
        }
        Ok(reverted)
    }
}
