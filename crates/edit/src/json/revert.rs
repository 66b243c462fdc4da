use serde_json::Value;

use super::scan::{Document, Place};
use super::{apply, is_blank, name, object_document, replaced};
use crate::{Fault, Key, Owner, Reverted, Set, is_empty as says_nothing};

pub(crate) fn revert(keys: &[Key], text: &str, before: Option<&str>) -> Result<Reverted, Fault> {
    // Nobody has changed it since: as it was, byte for byte.
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
    object_document(text)?;
    let was = match before.filter(|before| !is_blank(before)) {
        Some(before) => Some(object_document(before).map_err(|fault| Fault {
            problem: format!("(in what stood here before) {}", fault.problem),
            ..fault
        })?),
        None => None,
    };
    let (needed, ours): (Vec<&Key>, Vec<&Key>) =
        keys.iter().partition(|key| matches!(key.set, Set::Needed(_)));
    let mut said = Reverted::default();
    let mut text = text.to_owned();
    for key in ours.into_iter().rev() {
        text = without(key, &text, was.as_ref(), &mut said)?;
    }
    // What the rest needs goes with the last of the rest.
    let mut bare = text.clone();
    for key in needed {
        bare = without(key, &bare, was.as_ref(), &mut Reverted::default())?;
    }
    if is_empty(&bare)? {
        let text = if before.is_none_or(|before| is_blank(before) || is_empty(before) == Ok(true)) {
            before.map(str::to_owned)
        } else {
            Some(bare)
        };
        return Ok(Reverted { text, ..said });
    }
    Ok(Reverted { text: Some(text), ..said })
}

fn is_empty(text: &str) -> Result<bool, Fault> {
    let document = object_document(text)?;
    Ok(document.object(document.root).items.is_empty())
}

/// The text without this key, or with what it held before.
fn without(key: &Key, text: &str, was: Option<&Document<'_>>, said: &mut Reverted) -> Result<String, Fault> {
    let document = Document::new(text)?;
    // Something else on the way, or nothing: then the key is gone, and perhaps the table that we made for it is not.
    let Place::Value(part) = document.find(&key.path)? else {
        return prune(key, text, was);
    };
    let old = part_of(was, &key.path)?;
    let value = document.value(part.clone());
    match &key.set {
        Set::Value(ours) | Set::Needed(ours) => {
            let held = old.as_ref().map(|(was, part)| was.value(part.clone()));
            if held.as_ref() == Some(&value) {
                return Ok(text.to_owned());
            }
            if value.as_ref() != Some(ours) {
                said.left.push(name(&key.path));
                return Ok(text.to_owned());
            }
            match old {
                Some((was, old)) => Ok(replaced(text, part, was.raw(old))),
                None => prune(key, &remove_key(&document, &key.path)?, was),
            }
        }
        Set::Entry { value: ours, .. } => {
            let held = old.as_ref().map(|(was, part)| was.value(part.clone()));
            let is_as_before = held.as_ref() == Some(&value);
            let held = held.flatten();
            // What somebody had written before us is theirs, though it names ours.
            let owner = |it: &Option<Value>| it.as_ref().map(|it| Owner::of(it, &key.set));
            if is_as_before || owner(&held) == Some(Owner::Ours) {
                return Ok(text.to_owned());
            }
            if !matches!(owner(&value), Some(Owner::Ours | Owner::Nobody)) {
                said.left.push(name(&key.path));
                return Ok(text.to_owned());
            }
            let theirs = added(value.as_ref(), &[Some(ours), held.as_ref()]);
            if !theirs.is_empty() {
                said.went.push(format!("{} (with {})", name(&key.path), theirs.join(", ")));
            }
            match old {
                Some((was, old)) => Ok(replaced(text, part, was.raw(old))),
                None => prune(key, &remove_key(&document, &key.path)?, was),
            }
        }
        Set::Member(ours) | Set::Beside { member: ours, .. } => {
            let was_there = old.as_ref().is_some_and(|(was, part)| {
                let held = was.value(part.clone());
                matches!(held, Some(Value::Array(items)) if items.contains(ours))
            });
            if was_there || document.byte(part.start) != b'[' {
                return Ok(text.to_owned());
            }
            let list = document.list(part.start);
            let is_ours = |item: &std::ops::Range<usize>| document.value(item.clone()).as_ref() == Some(ours);
            let Some(nth) = list.items.iter().position(is_ours) else { return Ok(text.to_owned()) };
            let others = list.items.iter().enumerate().filter(|(at, _)| *at != nth);
            let rest: Option<Vec<Value>> = others.map(|(_, item)| document.value(item.clone())).collect();
            let nothing_else = rest.is_some_and(|rest| key.set.is_default(&rest));
            match old {
                // It was empty, or null.
                Some((was, old)) if nothing_else && !holds_items(was, &old) => {
                    Ok(replaced(text, part, was.raw(old)))
                }
                None if nothing_else => prune(key, &remove_key(&document, &key.path)?, was),
                _ if list.items.len() == 1 => Ok(replaced(text, part, "[]")),
                _ => Ok(replaced(text, item_part(&list.items, nth), "")),
            }
        }
    }
}

/// The names of what is in an entry and in none of `known` as it is there.
fn added(entry: Option<&Value>, known: &[Option<&Value>]) -> Vec<String> {
    let is_known = |key: &str, value: &Value| {
        known.iter().flatten().any(|known| known.get(key).is_some_and(|known| known == value))
    };
    let entries = entry.and_then(Value::as_object).into_iter().flatten();
    let theirs = entries.filter(|(key, value)| !says_nothing(value) && !is_known(key, value));
    theirs.map(|(key, _)| name(std::slice::from_ref(key))).collect()
}

type Part<'d, 'a> = (&'d Document<'a>, std::ops::Range<usize>);

fn part_of<'d, 'a>(was: Option<&'d Document<'a>>, path: &[String]) -> Result<Option<Part<'d, 'a>>, Fault> {
    let Some(was) = was else { return Ok(None) };
    match was.find(path)? {
        Place::Value(part) => Ok(Some((was, part))),
        Place::Missing { .. } | Place::Blocked { .. } => Ok(None),
    }
}

/// Whether this is an object or a list with something in it.
fn holds_items(document: &Document<'_>, part: &std::ops::Range<usize>) -> bool {
    match document.byte(part.start) {
        b'{' => !document.object(part.start).items.is_empty(),
        b'[' => !document.list(part.start).items.is_empty(),
        _ => false,
    }
}

/// Takes away what the key's way consists of, from its end, as far as it is empty and was not there before.
fn prune(key: &Key, text: &str, was: Option<&Document<'_>>) -> Result<String, Fault> {
    let mut text = text.to_owned();
    for depth in (1..key.path.len()).rev() {
        let way = key.path.get(..depth).unwrap_or_default();
        let document = Document::new(&text)?;
        let Place::Value(part) = document.find(way)? else { continue };
        if document.byte(part.start) != b'{' || holds_items(&document, &part) {
            break;
        }
        match part_of(was, way)? {
            Some((was, old)) => {
                if !holds_items(was, &old) {
                    text = replaced(&text, part, was.raw(old));
                }
                break;
            }
            None => text = remove_key(&document, way)?,
        }
    }
    Ok(text)
}

/// The text without the key at a path, which is there.
fn remove_key(document: &Document<'_>, path: &[String]) -> Result<String, Fault> {
    let Some((last, way)) = path.split_last() else { return Ok(document.text.to_owned()) };
    let Place::Value(holder) = document.find(way)? else { return Ok(document.text.to_owned()) };
    let object = document.object(holder.start);
    let Some(nth) = object.items.iter().position(|member| member.name.as_ref() == Some(last)) else {
        return Ok(document.text.to_owned());
    };
    let part = if object.items.len() == 1 {
        object.span.start + 1..object.span.end - 1
    } else {
        let spans: Vec<_> = object.items.iter().map(|item| item.key.start..item.value.end).collect();
        item_part(&spans, nth)
    };
    Ok(replaced(document.text, part, ""))
}

/// What goes with one of several items: what leads to it where it is the last, as it came, else what leads from it
/// to the next.
fn item_part(items: &[std::ops::Range<usize>], nth: usize) -> std::ops::Range<usize> {
    let item = items.get(nth).cloned().unwrap_or_default();
    match (items.get(nth + 1), nth.checked_sub(1).and_then(|before| items.get(before))) {
        (Some(next), _) => item.start..next.start,
        (None, Some(before)) => before.end..item.end,
        (None, None) => item,
    }
}
