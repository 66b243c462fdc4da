//! A table whose owner one key of it tells ([`Set::Entry`]).

use serde_json::Value;

use super::{Key, Set};

/// A key of an entry.
pub(crate) struct Leaf<'a> {
    pub(crate) way: Vec<String>,
    pub(crate) value: &'a Value,
    pub(crate) is_identity: bool,
}

/// The values of a table and of the tables in it, each with its path from the table.
pub(crate) fn leaves(table: &Value) -> Vec<(Vec<String>, &Value)> {
    let Value::Object(entries) = table else { return vec![(Vec::new(), table)] };
    let below = entries.iter().flat_map(|(name, inner)| {
        leaves(inner).into_iter().map(move |(path, leaf)| ([vec![name.clone()], path].concat(), leaf))
    });
    below.collect()
}

/// Who wrote an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It has the managed identity.
    Managed,
    /// It has no identity.
    Unknown,
    /// It has another identity, or is no table.
    Unmanaged,
}

impl Owner {
    /// Of what stands where an entry should; unknown where the key is no entry.
    pub(crate) fn of(entry: &Value, key: &Set) -> Self {
        let Set::Entry { value: ours, identity, instead } = key else { return Self::Unknown };
        let held = entry.pointer(&format!("/{identity}")).filter(|held| !is_empty(held));
        let says_else = |name: &String| {
            entry.get(name).is_some_and(|said| !is_empty(said) && Some(said) != ours.get(name))
        };
        match held {
            _ if !entry.is_object() => Self::Unmanaged,
            Some(held) if Some(held) == ours.pointer(&format!("/{identity}")) => Self::Managed,
            Some(_) => Self::Unmanaged,
            None if instead.iter().any(says_else) => Self::Unmanaged,
            None => Self::Unknown,
        }
    }
}

/// Whether an engine takes the value for a key that is not there.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

impl Set {
    /// The values of an entry, each with its path from the entry.
    pub(crate) fn leaves(&self) -> Vec<Leaf<'_>> {
        let Self::Entry { value, identity, .. } = self else { return Vec::new() };
        let of = |(way, value): (Vec<String>, _)| {
            let is_identity = way.iter().map(String::as_str).eq(identity.split('/'));
            Leaf { way, value, is_identity }
        };
        leaves(value).into_iter().map(of).collect()
    }
}

impl Key {
    /// A key of an entry as one by itself.
    pub(crate) fn below(&self, leaf: &Leaf<'_>) -> Self {
        let path = [self.path.as_slice(), &leaf.way].concat();
        Self { path, set: Set::Value(leaf.value.clone()) }
    }
}
