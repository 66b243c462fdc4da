//! A table whose owner one key of it tells ([`Set::Entry`]).

use super::before::Before;
use super::tree::{self, Tree};
use super::{insert, remove};
use crate::moved::unmanaged;
use crate::{Fault, Key, Owner, Reverted, Set, dotted};

/// The text with the entry in it.
pub(super) fn set(key: &Key, text: String) -> Result<String, Fault> {
    let tree = Tree::parse(&text)?;
    let Some(found) = tree.find(&key.path) else { return insert::insert(&tree, &key.path, &key.set.fresh()) };
    if !found.item.is_table_like() {
        return Err(tree.in_the_way(&key.path, found, "a table"));
    }
    // The identity first: the keys beside it are then written in its style.
    let (identity, rest): (Vec<_>, Vec<_>) = key.set.leaves().into_iter().partition(|leaf| leaf.is_identity);
    identity.iter().chain(&rest).try_fold(text, |text, leaf| {
        let key = key.below(leaf);
        if !leaf.is_identity && Tree::parse(&text)?.find(&key.path).is_some() {
            return Ok(text);
        }
        super::set(&key, text)
    })
}

/// The text without the entry, unless it is unmanaged.
pub(super) fn unset(
    key: &Key,
    text: String,
    before: &Before<'_>,
    said: &mut Reverted,
) -> Result<String, Fault> {
    let Set::Entry { value: ours, .. } = &key.set else { return Ok(text) };
    let tree = Tree::parse(&text)?;
    let Some(found) = tree.find(&key.path) else { return Ok(text) };
    let (now, was) = (tree::json(found.item), before.find(&key.path).map(|step| tree::json(step.item)));
    if was.as_ref() == Some(&now) {
        return Ok(text);
    }
    if Owner::of(&now, &key.set) == Owner::Unmanaged {
        said.left.push(dotted(&key.path));
        return Ok(text);
    }
    if was.is_some() {
        // The entry was there before the first edit: only the keys that the edit wrote go.
        let leaves = key.set.leaves();
        return leaves
            .iter()
            .rev()
            .try_fold(text, |text, leaf| super::unset(&key.below(leaf), text, before, said));
    }
    let added = unmanaged(&now, &[ours], before.is_moved());
    if !added.is_empty() {
        let names: Vec<String> = added.iter().map(|way| dotted(way)).collect();
        said.went.push(format!("{} (with {})", dotted(&key.path), names.join(", ")));
    }
    remove::removed(&text, &key.path, before)
}
