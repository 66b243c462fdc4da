//! A table that has another name by now, and what the program that renamed it has written out beside ours.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Key, is_empty, leaves};

/// A table, and what it is called later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: Vec<String>,
    pub to: Vec<String>,
}

impl Moved {
    /// Our keys where they stand then: those that a document does not hold any more where they were.
    pub(crate) fn keys(&self, keys: &[Key], document: &Value) -> Vec<Key> {
        let is_there =
            |key: &Key| key.path.iter().try_fold(document, |value, name| value.get(name)).is_some();
        keys.iter().filter(|key| !is_there(key)).filter_map(|key| self.key(key)).collect()
    }

    fn key(&self, key: &Key) -> Option<Key> {
        let rest = key.path.strip_prefix(self.from.as_slice())?;
        Some(Key { path: [&self.to, rest].concat(), set: key.set.clone() })
    }

    /// What a path was before, where it is in this table.
    pub(crate) fn older(&self, path: &[String]) -> Option<Vec<String>> {
        Some([self.from.as_slice(), path.strip_prefix(self.to.as_slice())?].concat())
    }
}

/// What somebody has put into a table of ours: keys that are in none of `known` as they are there, by their way.
/// `is_moved`: what renames tables also writes out what was left to default (nothing, as nearly all of them are), and
/// gives a key of ours another name.
pub(crate) fn theirs(now: &Value, known: &[&Value], is_moved: bool) -> Vec<Vec<String>> {
    let now = leaves(now);
    let known: Vec<_> = known.iter().flat_map(|table| leaves(table)).collect();
    let is_missing = |way: &[String]| now.iter().all(|(there, _)| there != way);
    let is_renamed = |way: &[String], value: &Value| {
        let folder = |way: &[String]| way.split_last().map(|(_, folder)| folder.to_vec());
        known.iter().any(|(old, ours)| *ours == value && folder(old) == folder(way) && is_missing(old))
    };
    let is_ours = |way: &Vec<String>, value: &Value| {
        known.iter().any(|(at, ours)| at == way && *ours == value)
            || is_moved && (is_nothing(value) || is_renamed(way, value))
    };
    now.iter()
        .filter(|(way, value)| !is_empty(value) && !is_ours(way, value))
        .map(|(way, _)| way.clone())
        .collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(table) => table.is_empty(),
    }
}
