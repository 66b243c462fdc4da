//! Edits a text of any format. A format locates a key, and spells a value.

use serde_json::Value;

use crate::entry::Owner;
use crate::moved::unmanaged;
use crate::{Fault, Key, Moved, Reverted, Set, dotted, split_bom};

/// A parsed text, without a byte order mark. Each change answers with the whole new text.
pub(crate) trait Document: Sized {
    /// The format's name for a table.
    const TABLE: &str;

    fn parse(text: String) -> Result<Self, Fault>;
    fn text(&self) -> &str;
    /// Whether the text has no key and no comment.
    fn is_empty(&self) -> bool;
    /// Comments in the text, in its order.
    fn comments(&self) -> Vec<&str> {
        Vec::new()
    }
    /// The value at a path; a date, and a number that fits no type, becomes its text.
    fn value(&self, path: &[String]) -> Result<Option<Value>, Fault>;
    /// A fault that names what is at a path, where something else is needed.
    fn blocked(&self, path: &[String], needed: &str) -> Fault;
    /// Puts a value at a path that holds none.
    fn insert(&self, path: &[String], value: &Value) -> Result<String, Fault>;
    fn replace(&self, path: &[String], value: &Value) -> Result<String, Fault>;
    /// Adds to a list; `fresh` replaces one that the format's readers take for none.
    fn add(&self, path: &[String], member: &Value, fresh: &Value) -> Result<String, Fault>;
    /// Takes a member out of a list.
    fn cut(&self, path: &[String], nth: usize) -> Result<String, Fault>;
    /// Puts back what a path held before, as it was spelled.
    fn restore(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault>;
    /// Removes a key, and the tables on the way to it that are then empty and were not there before.
    fn remove(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault>;
}

/// A text before the first edit, in which a table may have had another name.
pub(crate) struct Before<'a, D> {
    pub(crate) document: D,
    moved: Option<&'a Moved>,
}

impl<D: Document> Before<'_, D> {
    /// The path that the text has for a key: perhaps that before the move.
    pub(crate) fn path(&self, path: &[String]) -> Result<Vec<String>, Fault> {
        match self.moved.and_then(|moved| moved.older(path)) {
            Some(older) if self.document.value(path)?.is_none() => Ok(older),
            _ => Ok(path.to_vec()),
        }
    }

    fn value(&self, path: &[String]) -> Result<Option<Value>, Fault> {
        self.document.value(&self.path(path)?)
    }
}

pub(crate) fn apply<D: Document>(keys: &[Key], text: &str) -> Result<String, Fault> {
    let (bom, body) = split_bom(text);
    if keys.is_empty() && body.trim_ascii().is_empty() {
        return Ok(text.to_owned());
    }
    let document = keys.iter().try_fold(D::parse(body.to_owned())?, set)?;
    Ok(format!("{bom}{}", document.text()))
}

fn set<D: Document>(document: D, key: &Key) -> Result<D, Fault> {
    let path = &key.path;
    let Some(held) = document.value(path)? else {
        return D::parse(document.insert(path, &key.set.fresh())?);
    };
    let changed = match (&key.set, &held) {
        (Set::Needed(_), _) => return Ok(document),
        (Set::Value(value), held) if value == held => return Ok(document),
        (Set::Value(value), _) | (Set::Entry { value, .. }, Value::Null) => document.replace(path, value)?,
        // The identity first: the keys beside it are then written in its style.
        (Set::Entry { .. }, Value::Object(_)) => {
            return key.leaves().iter().try_fold(document, |document, (is_identity, leaf)| {
                let is_due = *is_identity || document.value(&leaf.path)?.is_none();
                if is_due { set(document, leaf) } else { Ok(document) }
            });
        }
        (Set::Entry { .. }, _) => return Err(document.blocked(path, D::TABLE)),
        (Set::Member(member) | Set::Beside { member, .. }, held) => match held {
            Value::Array(list) if list.contains(member) => return Ok(document),
            Value::Array(_) | Value::Null => document.add(path, member, &key.set.fresh())?,
            _ => return Err(document.blocked(path, "a list")),
        },
    };
    D::parse(changed)
}

/// `moved`: the table of these keys had another name before.
pub(crate) fn revert<D: Document>(
    keys: &[Key],
    text: &str,
    before: Option<&str>,
    moved: Option<&Moved>,
) -> Result<Reverted, Fault> {
    // The text is as the edit left it: exactly what was there comes back.
    if moved.is_none() && apply::<D>(keys, before.unwrap_or_default()).as_deref() == Ok(text) {
        return Ok(Reverted { text: before.map(str::to_owned), ..Reverted::default() });
    }
    take_out::<D>(keys, text, before, moved)
}

/// Reverts as [`revert`] does, where the text's owner has changed it, too.
pub(crate) fn take_out<D: Document>(
    keys: &[Key],
    text: &str,
    before: Option<&str>,
    moved: Option<&Moved>,
) -> Result<Reverted, Fault> {
    let (bom, body) = split_bom(text);
    if body.trim_ascii().is_empty() {
        return Ok(Reverted { text: before.map(|_| text.to_owned()), ..Reverted::default() });
    }
    let mut document = D::parse(body.to_owned())?;
    let comments: Vec<String> = document.comments().into_iter().map(str::to_owned).collect();
    let was = D::parse(split_bom(before.unwrap_or_default()).1.to_owned()).map_err(|fault| Fault {
        problem: format!("(in the file before the first edit) {}", fault.problem),
        ..fault
    })?;
    let (needed, managed): (Vec<&Key>, Vec<&Key>) =
        keys.iter().rev().partition(|key| matches!(key.set, Set::Needed(_)));
    let before_us = Before { document: was, moved };
    let mut run = Revert { before: &before_us, needed: &needed, reverted: Reverted::default() };
    for key in managed.into_iter().chain(needed.iter().copied()) {
        document = run.unset(document, key)?;
    }
    // rocworker writes no comment into another's file: one that goes with a managed key is its owner's.
    let mut kept = document.comments();
    for comment in comments {
        match kept.iter().position(|it| *it == comment) {
            Some(at) => drop(kept.remove(at)),
            None => run.reverted.went.push(format!("the comment {comment:?}")),
        }
    }
    let is_gone = document.is_empty() && before_us.document.is_empty();
    let text = if is_gone { before.map(str::to_owned) } else { Some(format!("{bom}{}", document.text())) };
    Ok(Reverted { text, ..run.reverted })
}

struct Revert<'a, D> {
    before: &'a Before<'a, D>,
    needed: &'a [&'a Key],
    reverted: Reverted,
}

impl<D: Document> Revert<'_, D> {
    fn unset(&mut self, document: D, key: &Key) -> Result<D, Fault> {
        let path = &key.path;
        // Perhaps the table that was made for it is still there.
        let Some(now) = document.value(path)? else { return D::parse(document.remove(path, self.before)?) };
        let then = self.before.value(path)?;
        if then.as_ref() == Some(&now) {
            return Ok(document);
        }
        let is_moved = self.before.moved.is_some();
        let changed = match (&key.set, &now) {
            (Set::Member(member) | Set::Beside { member, .. }, Value::Array(list)) => {
                let had = then.as_ref().and_then(Value::as_array);
                let is_held = had.is_some_and(|had| had.contains(member));
                let Some(nth) = list.iter().position(|known| known == member).filter(|_| !is_held) else {
                    return Ok(document);
                };
                let mut rest = list.clone();
                rest.remove(nth);
                if had.is_some_and(|had| !had.is_empty()) || !key.set.is_default(&rest) {
                    document.cut(path, nth)?
                } else {
                    self.restored(&document, path, then.is_some())?
                }
            }
            (Set::Needed(_), _) if then.is_some() || self.has_company(&document, path)? => {
                return Ok(document);
            }
            (Set::Needed(managed), _) if is_moved && unmanaged(&now, managed, true).is_empty() => {
                document.remove(path, self.before)?
            }
            (Set::Value(managed) | Set::Needed(managed), _) if now == *managed => {
                self.restored(&document, path, then.is_some())?
            }
            (Set::Entry { value, .. }, _) if Owner::of(&now, &key.set) != Owner::Unmanaged => {
                // The entry was there before the first edit: only the keys that the edit wrote go.
                if then.as_ref().is_some_and(Value::is_object) {
                    return key
                        .leaves()
                        .iter()
                        .rev()
                        .try_fold(document, |it, (_, leaf)| self.unset(it, leaf));
                }
                let added: Vec<String> =
                    unmanaged(&now, value, is_moved).iter().map(|it| dotted(it)).collect();
                if !added.is_empty() {
                    self.reverted.went.push(format!("{} (with {})", dotted(path), added.join(", ")));
                }
                self.restored(&document, path, then.is_some())?
            }
            _ => {
                self.reverted.left.push(dotted(path));
                return Ok(document);
            }
        };
        D::parse(changed)
    }

    fn restored(&self, document: &D, path: &[String], was_there: bool) -> Result<String, Fault> {
        if was_there { document.restore(path, self.before) } else { document.remove(path, self.before) }
    }

    /// Whether the text's owner has put a key beside this one since the edit, which may need it.
    fn has_company(&self, document: &D, path: &[String]) -> Result<bool, Fault> {
        let Some((_, folder)) = path.split_last() else { return Ok(false) };
        let beside = document.value(folder)?;
        for name in beside.iter().filter_map(Value::as_object).flat_map(|table| table.keys()) {
            let other = [folder, std::slice::from_ref(name)].concat();
            if self.needed.iter().all(|key| key.path != other) && self.before.value(&other)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
