//! A table, one key of which identifies its owner ([`Set::Entry`]).

use serde_json::Value;

use super::{Key, Set};

/// The values of a table and of the tables in it, each with its path from the table.
pub(crate) fn leaves(table: &Value) -> Vec<(Vec<String>, &Value)> {
    let Value::Object(entries) = table else { return vec![(Vec::new(), table)] };
    let below = entries.iter().flat_map(|(name, inner)| {
        leaves(inner).into_iter().map(move |(path, leaf)| ([vec![name.clone()], path].concat(), leaf))
    });
    below.collect()
}

/// The writer of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// rocworker: the entry has the managed identity.
    Managed,
    /// The entry has no identity.
    Unknown,
    /// Somebody else: the entry has another identity, or is no table.
    Unmanaged,
}

impl Owner {
    /// The owner of a text's value in the place of an entry; unknown where the key is no entry.
    pub(crate) fn of(entry: &Value, key: &Set) -> Self {
        let Set::Entry { value: managed, identity, instead } = key else { return Self::Unknown };
        let held = entry.pointer(&format!("/{identity}")).filter(|held| !is_empty(held));
        let says_else = |name: &String| {
            entry.get(name).is_some_and(|value| !is_empty(value) && Some(value) != managed.get(name))
        };
        match held {
            _ if !entry.is_object() => Self::Unmanaged,
            Some(held) if Some(held) == managed.pointer(&format!("/{identity}")) => Self::Managed,
            Some(_) => Self::Unmanaged,
            None if instead.iter().any(says_else) => Self::Unmanaged,
            None => Self::Unknown,
        }
    }
}

/// Whether an engine treats the value as a missing key.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

impl Key {
    /// The values of an entry as keys by themselves, the identity first, each with whether it is that.
    pub(crate) fn leaves(&self) -> Vec<(bool, Self)> {
        let Set::Entry { value, identity, .. } = &self.set else { return Vec::new() };
        let key = |(way, value): (Vec<String>, &Value)| {
            let path = [self.path.as_slice(), &way].concat();
            (way.join("/") == *identity, Self { path, set: Set::Value(value.clone()) })
        };
        let mut keys: Vec<(bool, Self)> = leaves(value).into_iter().map(key).collect();
        keys.sort_by_key(|(is_identity, _)| !is_identity);
        keys
    }
}
