use serde_json::Value;

use super::document::{Document, Place, holds_items, is_object, items, members, parsed};
use super::{apply, is_blank};
use crate::moved::unmanaged;
use crate::{Fault, Key, Owner, Reverted, Set, dotted};

pub(crate) fn revert(keys: &[Key], text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
    // Nobody has changed the text since: exactly what was there comes back.
    if apply(keys, before.unwrap_or_default()).as_deref() == Ok(text) {
        return Ok(Reverted { text: before.map(str::to_owned), ..Reverted::default() });
    }
    take_out(keys, text, before)
}

/// As [`revert`], of a text that somebody else has changed too.
pub(super) fn take_out(keys: &[Key], text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
    if is_blank(text) {
        return Ok(Reverted { text: before.map(|_| text.to_owned()), ..Reverted::default() });
    }
    Document::new(text)?;
    let was = before.filter(|before| !is_blank(before)).map(Document::new).transpose();
    let was = was.map_err(|fault| Fault {
        problem: format!("(in what stood here before) {}", fault.problem),
        ..fault
    })?;
    let (needed, managed): (Vec<&Key>, Vec<&Key>) =
        keys.iter().partition(|key| matches!(key.set, Set::Needed(_)));
    let mut reverted = Reverted::default();
    let mut text = text.to_owned();
    for key in managed.into_iter().rev() {
        text = without(key, &text, was.as_ref(), &mut reverted)?;
    }
    // A needed key goes with the last of the keys that needed it.
    let mut bare = text.clone();
    for key in needed {
        bare = without(key, &bare, was.as_ref(), &mut Reverted::default())?;
    }
    let is_bare = members(Document::new(&bare)?.root).is_empty();
    reverted.text = if !is_bare {
        Some(text)
    } else if was.is_none_or(|was| members(was.root).is_empty()) {
        before.map(str::to_owned)
    } else {
        Some(bare)
    };
    Ok(reverted)
}

/// The text without this key, or with what the key held before.
fn without(
    key: &Key,
    text: &str,
    was: Option<&Document<'_>>,
    reverted: &mut Reverted,
) -> Result<String, Fault> {
    let document = Document::new(text)?;
    // The key is gone, and perhaps the table that was made for it is not.
    let Some(held) = document.value(&key.path)? else { return prune(key, text, was) };
    let old = value_of(was, &key.path)?;
    let restored = || match old {
        Some(old) => Ok(document.replaced(document.span(held), old)),
        None => prune(key, &remove_key(&document, &key.path)?, was),
    };
    let now = parsed(held);
    match &key.set {
        Set::Member(member) | Set::Beside { member, .. } => {
            let list = items(held);
            let is_member = |item: &&str| parsed(item).as_ref() == Some(member);
            let Some(nth) = list.iter().position(is_member) else { return Ok(text.to_owned()) };
            if old.is_some_and(|old| items(old).iter().any(is_member)) {
                return Ok(text.to_owned());
            }
            let others = list.iter().enumerate().filter(|(at, _)| *at != nth);
            let others: Option<Vec<Value>> = others.map(|(_, item)| parsed(item)).collect();
            let nothing_else = others.is_some_and(|others| key.set.is_default(&others));
            if nothing_else && !old.is_some_and(holds_items) {
                return restored();
            }
            if list.len() == 1 {
                return Ok(document.replaced(document.span(held), "[]"));
            }
            let spans: Vec<_> = list.into_iter().map(|item| document.span(item)).collect();
            Ok(document.replaced(item_span(&spans, nth), ""))
        }
        Set::Value(_) | Set::Needed(_) | Set::Entry { .. } => {
            let then = old.map(parsed);
            let owner = |value: &Option<Value>| match &key.set {
                Set::Value(ours) | Set::Needed(ours) if value.as_ref() == Some(ours) => Owner::Unknown,
                Set::Entry { .. } => {
                    value.as_ref().map_or(Owner::Unmanaged, |value| Owner::of(value, &key.set))
                }
                _ => Owner::Unmanaged,
            };
            // Somebody wrote the entry before the first edit: it stays, though it has the managed identity.
            if then.as_ref() == Some(&now) || then.as_ref().is_some_and(|then| owner(then) == Owner::Managed)
            {
                return Ok(text.to_owned());
            }
            if owner(&now) == Owner::Unmanaged {
                reverted.left.push(dotted(&key.path));
                return Ok(text.to_owned());
            }
            if let Set::Entry { value, .. } = &key.set {
                let known = [Some(value), then.as_ref().and_then(Option::as_ref)];
                let known: Vec<&Value> = known.into_iter().flatten().collect();
                let added = now.as_ref().map_or_else(Vec::new, |now| unmanaged(now, &known, false));
                if !added.is_empty() {
                    let names: Vec<String> = added.iter().map(|path| dotted(path)).collect();
                    reverted.went.push(format!("{} (with {})", dotted(&key.path), names.join(", ")));
                }
            }
            restored()
        }
    }
}

fn value_of<'a>(was: Option<&Document<'a>>, path: &[String]) -> Result<Option<&'a str>, Fault> {
    was.map_or(Ok(None), |was| was.value(path))
}

/// Removes the objects on the way to a key, from its end, that are empty and were not there before.
fn prune(key: &Key, text: &str, was: Option<&Document<'_>>) -> Result<String, Fault> {
    let mut text = text.to_owned();
    for depth in (1..key.path.len()).rev() {
        let way = key.path.get(..depth).unwrap_or_default();
        let document = Document::new(&text)?;
        let Some(held) = document.value(way)? else { continue };
        if !is_object(held) || holds_items(held) {
            break;
        }
        text = match value_of(was, way)? {
            Some(old) if holds_items(old) => break,
            Some(old) => return Ok(document.replaced(document.span(held), old)),
            None => remove_key(&document, way)?,
        };
    }
    Ok(text)
}

/// The text without the key at a path, which is there.
fn remove_key(document: &Document<'_>, path: &[String]) -> Result<String, Fault> {
    let Place::Value { key: Some(key), .. } = document.find(path)? else {
        return Ok(document.text.to_owned());
    };
    let holder = document.value(path.split_last().map_or(&[], |(_, way)| way))?.unwrap_or_default();
    let members = members(holder);
    let nth = members.iter().position(|member| std::ptr::eq(member.key, key)).unwrap_or_default();
    let span = if members.len() == 1 {
        document.span(holder).start + 1..document.span(holder).end - 1
    } else {
        item_span(&members.iter().map(|member| document.member_span(*member)).collect::<Vec<_>>(), nth)
    };
    Ok(document.replaced(span, ""))
}

/// One of several items with the comma that goes with it: the one in front of the last item, else the one behind.
fn item_span(items: &[std::ops::Range<usize>], nth: usize) -> std::ops::Range<usize> {
    let item = items.get(nth).cloned().unwrap_or_default();
    match (items.get(nth + 1), nth.checked_sub(1).and_then(|before| items.get(before))) {
        (Some(next), _) => item.start..next.start,
        (None, Some(before)) => before.end..item.end,
        (None, None) => item,
    }
}
