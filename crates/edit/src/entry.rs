//! A table that is ours by one key of it ([`Set::Entry`]): its keys, and whose it is by what it holds.

use serde_json::Value;

use super::{Key, Set};

/// A key of an entry.
pub(crate) struct Leaf<'a> {
    pub(crate) way: Vec<String>,
    pub(crate) value: &'a Value,
    pub(crate) is_identity: bool,
}

/// What a table holds, tables in it opened: each path from it, and what stands there.
pub(crate) fn leaves(table: &Value) -> Vec<(Vec<String>, &Value)> {
    let Value::Object(entries) = table else { return vec![(Vec::new(), table)] };
    let below = entries.iter().flat_map(|(name, inner)| {
        leaves(inner).into_iter().map(move |(path, leaf)| ([vec![name.clone()], path].concat(), leaf))
    });
    below.collect()
}

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It names ours.
    Ours,
    /// It names nothing.
    Nobody,
    /// It names something else, or is no table.
    Theirs,
}

impl Owner {
    /// Of what stands where an entry should; nobody's where the key is no entry.
    pub(crate) fn of(entry: &Value, key: &Set) -> Self {
        let Set::Entry { value: ours, identity, instead } = key else { return Self::Nobody };
        let held = entry.pointer(&format!("/{identity}")).filter(|held| !is_empty(held));
        let says_else = |name: &String| {
            entry.get(name).is_some_and(|said| !is_empty(said) && Some(said) != ours.get(name))
        };
        match held {
            _ if !entry.is_object() => Self::Theirs,
            Some(held) if Some(held) == ours.pointer(&format!("/{identity}")) => Self::Ours,
            Some(_) => Self::Theirs,
            None if instead.iter().any(says_else) => Self::Theirs,
            None => Self::Nobody,
        }
    }
}

/// What an engine takes for a key that is not there.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

impl Set {
    /// Each key of an entry by its way from there, with what it should hold, and whether it is the identity.
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
