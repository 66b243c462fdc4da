//! A table with a later name, and what the program that renamed it wrote beside the managed keys.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Key;
use super::entry::{is_empty, leaves};

/// A table, and its later name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: Vec<String>,
    pub to: Vec<String>,
}

impl Moved {
    /// The managed keys under their later path: those that a document no longer holds at the earlier one.
    pub(crate) fn keys(&self, keys: &[Key], document: &Value) -> Vec<Key> {
        let is_there =
            |key: &Key| key.path.iter().try_fold(document, |value, name| value.get(name)).is_some();
        let later = |key: &Key| {
            let rest = key.path.strip_prefix(self.from.as_slice())?;
            Some(Key { path: [&self.to, rest].concat(), set: key.set.clone() })
        };
        keys.iter().filter(|key| !is_there(key)).filter_map(later).collect()
    }

    /// The earlier path of one in this table.
    pub(crate) fn older(&self, path: &[String]) -> Option<Vec<String>> {
        Some([self.from.as_slice(), path.strip_prefix(self.to.as_slice())?].concat())
    }
}

/// The paths of the values that its owner has put into a managed table: `known` has no such value there.
/// `is_moved`: the program that renames tables also writes defaults out, nearly all of them empty, and may rename a
/// managed key.
pub(crate) fn unmanaged(now: &Value, known: &Value, is_moved: bool) -> Vec<Vec<String>> {
    let (now, known) = (leaves(now), leaves(known));
    let is_missing = |way: &[String]| now.iter().all(|(there, _)| there != way);
    let is_renamed = |way: &[String], value: &Value| {
        let folder = |way: &[String]| way.split_last().map(|(_, folder)| folder.to_vec());
        known.iter().any(|(old, managed)| *managed == value && folder(old) == folder(way) && is_missing(old))
    };
    let is_managed = |way: &Vec<String>, value: &Value| {
        known.iter().any(|(at, managed)| at == way && *managed == value)
            || is_moved && (is_nothing(value) || is_renamed(way, value))
    };
    now.iter()
        .filter(|(way, value)| !is_empty(value) && !is_managed(way, value))
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
