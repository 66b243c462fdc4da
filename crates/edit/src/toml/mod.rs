//! Edits of TOML. toml_edit tells where each key and value stands; an edit splices, and leaves all other bytes alone.
//! docs/dependencies.md says which bytes toml_edit would change if it wrote its document out.

mod array;
mod before;
mod entry;
mod insert;
mod lines;
mod remove;
mod tree;
mod write;

use serde_json::Value;
use toml_edit::Item;

use super::moved::unmanaged;
use super::{Fault, Key, Moved, Reverted, Set, dotted, split_bom};
use before::Before;
use tree::Tree;

/// A text as JSON has it; a date becomes its text.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    let tree = Tree::parse(split_bom(text).1)?;
    Ok(tree::json(tree.item()))
}

pub(super) fn apply(keys: &[Key], text: &str) -> Result<String, Fault> {
    let (bom, body) = split_bom(text);
    // Without a key to set, too: a text that is no TOML must not count as in sync.
    let mut body = Tree::parse(body).map(|_| body.to_owned())?;
    for key in keys {
        body = set(key, body)?;
    }
    Ok(format!("{bom}{body}"))
}

fn set(key: &Key, text: String) -> Result<String, Fault> {
    let tree = Tree::parse(&text)?;
    let found = tree.find(&key.path);
    let new = match (&key.set, found) {
        (Set::Entry { .. }, _) => return entry::set(key, text),
        (Set::Needed(_), Some(_)) => return Ok(text),
        (_, None) => insert::insert(&tree, &key.path, &key.set.fresh())?,
        (Set::Value(value), Some(found)) if tree::json(found.item) == *value => return Ok(text),
        (Set::Value(value), Some(found)) => match tree::plain(found.item) {
            Some(old) => lines::spliced(&text, [(tree::known(old.span())?, write::value(value)?)]),
            None => return Err(tree.in_the_way(&key.path, found, "a value")),
        },
        (Set::Member(member) | Set::Beside { member, .. }, Some(found)) => match found.item.as_array() {
            Some(array) if array::position(array, member).is_some() => return Ok(text),
            Some(array) => array::added(&text, array, &write::value(member)?)?,
            None => return Err(tree.in_the_way(&key.path, found, "a list")),
        },
    };
    Ok(new)
}

/// `moved`: the table of these keys had another name before.
pub(super) fn revert(
    keys: &[Key],
    text: &str,
    before: Option<&str>,
    moved: Option<&Moved>,
) -> Result<Reverted, Fault> {
    // Nobody has changed the text since: exactly what was there comes back.
    if moved.is_none() && apply(keys, before.unwrap_or_default()).is_ok_and(|ours| ours == text) {
        return Ok(Reverted { text: before.map(str::to_owned), ..Reverted::default() });
    }
    let (bom, body) = split_bom(text);
    let was = Before::new(split_bom(before.unwrap_or_default()).1, moved)?;
    let mut body = Tree::parse(body).map(|_| body.to_owned())?;
    let mut said = Reverted::default();
    let (needed, plain): (Vec<&Key>, Vec<&Key>) =
        keys.iter().rev().partition(|key| matches!(key.set, Set::Needed(_)));
    for key in plain {
        body = unset(key, body, &was, &mut said)?;
    }
    for key in &needed {
        body = unset_needed(key, &needed, body, &was, &mut said)?;
    }
    said.left.reverse();
    let nothing = before.is_none() && body.trim().is_empty();
    Ok(Reverted { text: (!nothing).then(|| format!("{bom}{body}")), ..said })
}

fn unset(key: &Key, text: String, before: &Before<'_>, said: &mut Reverted) -> Result<String, Fault> {
    if let Set::Entry { .. } = key.set {
        return entry::unset(key, text, before, said);
    }
    let tree = Tree::parse(&text)?;
    let Some(found) = tree.find(&key.path) else { return Ok(text) };
    let was = before.find(&key.path).map(|step| step.item);
    let (now, then) = (tree::json(found.item), was.map(tree::json));
    if then.as_ref() == Some(&now) {
        return Ok(text);
    }
    if let Set::Member(member) | Set::Beside { member, .. } = &key.set
        && let Some(array) = found.item.as_array()
    {
        let was_there =
            was.and_then(Item::as_array).is_some_and(|was| array::position(was, member).is_some());
        let Some(at) = array::position(array, member).filter(|_| !was_there) else { return Ok(text) };
        let mut rest = now.as_array().cloned().unwrap_or_default();
        rest.remove(at);
        return match was {
            None if key.set.is_default(&rest) => remove::removed(&text, &key.path, before),
            _ => array::without(&text, array, at),
        };
    }
    let is_ours = matches!(&key.set, Set::Value(ours) if now == *ours);
    match (tree::plain(found.item), was.and_then(tree::plain)) {
        (Some(value), Some(old)) if is_ours => {
            let old = before.tree().slice(tree::known(old.span())?).to_owned();
            Ok(lines::spliced(&text, [(tree::known(value.span())?, old)]))
        }
        (value, _) if is_ours && (value.is_some() || was.is_none()) => {
            remove::removed(&text, &key.path, before)
        }
        _ => {
            said.left.push(dotted(&key.path));
            Ok(text)
        }
    }
}

/// A needed key goes with the keys that needed it, unless somebody has put another one beside it.
fn unset_needed(
    key: &Key,
    needed: &[&Key],
    text: String,
    before: &Before<'_>,
    said: &mut Reverted,
) -> Result<String, Fault> {
    let tree = Tree::parse(&text)?;
    let Some(found) = tree.find(&key.path) else { return Ok(text) };
    if before.find(&key.path).is_some() {
        return Ok(text);
    }
    let (_, folder) = key.path.split_last().unwrap_or((&EMPTY, &[]));
    let beside = tree.names_in(folder).into_iter().filter(|name| {
        let path = [folder, std::slice::from_ref(name)].concat();
        before.find(&path).is_none() && needed.iter().all(|key| key.path != path)
    });
    if beside.count() > 0 {
        return Ok(text);
    }
    let Set::Needed(ours) = &key.set else { return Ok(text) };
    let now = tree::json(found.item);
    let is_ours = now == *ours || before.is_moved() && unmanaged(&now, &[ours], true).is_empty();
    if !is_ours {
        said.left.push(dotted(&key.path));
        return Ok(text);
    }
    remove::removed(&text, &key.path, before)
}

const EMPTY: String = String::new();
