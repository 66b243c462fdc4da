use serde_json::{Map, Value};

use super::document::{Document, Place, is_object, items, members, parsed};
use super::is_blank;
use super::style::{Layout, Style};
use crate::{Fault, Key, Set, split_bom};

pub(crate) fn apply(keys: &[Key], text: &str) -> Result<String, Fault> {
    if keys.is_empty() && is_blank(text) {
        return Ok(text.to_owned());
    }
    // A file without a value counts as an empty object, and gets the line end that a text file has.
    let mut text = if is_blank(text) {
        format!("{}{{}}{}", split_bom(text).0, if text.contains("\r\n") { "\r\n" } else { "\n" })
    } else {
        text.to_owned()
    };
    Document::new(&text)?;
    for key in keys {
        if let Some(changed) = set(key, &text)? {
            text = changed;
        }
    }
    Ok(text)
}

/// The text with this key in it; `None` where it is there already.
fn set(key: &Key, text: &str) -> Result<Option<String>, Fault> {
    let document = Document::new(text)?;
    let (at, held) = match document.find(&key.path)? {
        Place::Missing { key: at, value, depth } => {
            return insert(&document, key, at, value, depth).map(Some);
        }
        Place::Value { key, value } => (key, value),
    };
    let style = Style::of(&document);
    let replaced = |wanted: &Value, layout| {
        Ok(Some(document.replaced(document.span(held), &style.value(wanted, layout))))
    };
    let layout = Layout::of_value(&document, at);
    match &key.set {
        Set::Needed(_) => Ok(None),
        Set::Entry { value: wanted, .. } if held == "null" => replaced(wanted, layout),
        Set::Entry { .. } if is_object(held) => entry(key, text),
        Set::Entry { .. } => Err(document.blocked(&key.path, held, "an object")),
        Set::Value(wanted) if parsed(held).as_ref() == Some(wanted) => Ok(None),
        Set::Value(wanted) => replaced(wanted, layout),
        Set::Member(wanted) | Set::Beside { member: wanted, .. } => match items(held).last() {
            Some(last) => Ok(add(&document, held, last, wanted)),
            None if held == "null" || held.starts_with('[') => replaced(&key.set.fresh(), Layout::Inline),
            None => Err(document.blocked(&key.path, held, "a list")),
        },
    }
}

/// In an entry that is there: the identity, and what is missing of the rest.
fn entry(key: &Key, text: &str) -> Result<Option<String>, Fault> {
    let mut changed = None;
    for leaf in key.set.leaves() {
        let text = changed.as_deref().unwrap_or(text);
        let key = key.below(&leaf);
        if leaf.is_identity || Document::new(text)?.value(&key.path)?.is_none() {
            changed = set(&key, text)?.or(changed);
        }
    }
    Ok(changed)
}

/// Adds to a list behind its last item; `None` where the list has it already.
fn add(document: &Document<'_>, list: &str, last: &str, wanted: &Value) -> Option<String> {
    if items(list).into_iter().any(|item| parsed(item).as_ref() == Some(wanted)) {
        return None;
    }
    let style = Style::of(document);
    let end = document.span(last).end;
    let between = style.between(Layout::of(document, last));
    Some(document.replaced(end..end, &format!("{between}{}", style.value(wanted, Layout::Inline))))
}

/// Adds what is missing of the path to `holder`, an object or null, whose key is `at`.
fn insert(
    document: &Document<'_>,
    key: &Key,
    at: Option<&str>,
    holder: &str,
    depth: usize,
) -> Result<String, Fault> {
    let (way, missing) = key.path.split_at(depth);
    if !is_object(holder) && holder != "null" {
        return Err(document.blocked(way, holder, "an object"));
    }
    let [first, missing @ ..] = missing else {
        return Err(document.fault(holder, "a key without a name cannot be set".to_owned()));
    };
    let style = Style::of(document);
    let object = |value, part: &String| Value::Object(Map::from_iter([(part.clone(), value)]));
    let value = missing.iter().rev().fold(key.set.fresh(), object);
    let Some(last) = members(holder).pop() else {
        let with = style.value(&object(value, first), Layout::of_value(document, at));
        return Ok(document.replaced(document.span(holder), &with));
    };
    let layout = Layout::of(document, last.key);
    let end = document.span(last.value).end;
    let member = format!("{}{}", style.between(layout), style.member(first, &value, layout));
    Ok(document.replaced(end..end, &member))
}
