use serde_json::{Map, Value};

use super::scan::{BOM, Document, Place};
use super::style::{Layout, Style, layout_after, layout_in};
use super::{blocked, is_blank, name, object_document, replaced};
use crate::{Fault, Key, Set};

pub(crate) fn apply(keys: &[Key], text: &str) -> Result<String, Fault> {
    // A file without a value counts as an empty object, and gets the line end that a text file has.
    let mut text = if is_blank(text) && !keys.is_empty() {
        let bom = if text.starts_with(BOM) { BOM.to_string() } else { String::new() };
        format!("{bom}{{}}{}", if text.contains("\r\n") { "\r\n" } else { "\n" })
    } else {
        text.to_owned()
    };
    if keys.is_empty() && is_blank(&text) {
        return Ok(text);
    }
    object_document(&text)?;
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
    let (part, value) = match document.find(&key.path)? {
        Place::Blocked { at, depth } => return Err(blocked(&document, key, at, depth)),
        Place::Missing { at, depth } => return insert(&document, key, at, depth).map(Some),
        Place::Value(part) => {
            let value = document.value(part.clone());
            (part, value)
        }
    };
    let style = Style::of(&document);
    match &key.set {
        Set::Needed(_) => Ok(None),
        Set::Entry { value: wanted, .. } => match document.byte(part.start) {
            b'n' => Ok(Some(replaced(text, part, &style.value(wanted, layout_of(&document, &key.path))))),
            b'{' => entry(key, text),
            _ => Err(blocked(&document, key, part.start, key.path.len())),
        },
        Set::Value(wanted) if value.as_ref() == Some(wanted) => Ok(None),
        Set::Value(wanted) => {
            let with = style.value(wanted, layout_of(&document, &key.path));
            Ok(Some(replaced(text, part, &with)))
        }
        Set::Member(wanted) | Set::Beside { member: wanted, .. } => match document.byte(part.start) {
            b'[' if !document.list(part.start).items.is_empty() => Ok(add(&document, part.start, wanted)),
            b'n' | b'[' => Ok(Some(replaced(text, part, &style.value(&key.set.fresh(), Layout::Inline)))),
            _ => {
                let problem =
                    format!("{} is {} where a list is needed", name(&key.path), document.kind(part.start));
                Err(Fault { line: document.line(part.start), problem })
            }
        },
    }
}

/// In an entry that is there: the identity, and what is missing of the rest.
fn entry(key: &Key, text: &str) -> Result<Option<String>, Fault> {
    let mut changed = None;
    for leaf in key.set.leaves() {
        let text = changed.as_deref().unwrap_or(text);
        let key = key.below(&leaf);
        let is_there = matches!(Document::new(text)?.find(&key.path)?, Place::Value(_));
        if leaf.is_identity || !is_there {
            changed = set(&key, text)?.or(changed);
        }
    }
    Ok(changed)
}

/// Adds to the list that begins here and holds something; `None` where the member is there already.
fn add(document: &Document<'_>, at: usize, wanted: &Value) -> Option<String> {
    let list = document.list(at);
    if list.items.iter().any(|item| document.value(item.clone()).as_ref() == Some(wanted)) {
        return None;
    }
    let style = Style::of(document);
    let item = style.value(wanted, Layout::Inline);
    let last = list.items.last()?;
    let from = list.items.iter().rev().nth(1).map_or(list.span.start + 1, |item| item.end);
    let between = style.between(layout_after(document, from..last.start));
    Some(replaced(document.text, last.end..last.end, &format!("{between}{item}")))
}

/// Adds what is missing of the path to the object, or null, that begins at `at`.
fn insert(document: &Document<'_>, key: &Key, at: usize, depth: usize) -> Result<String, Fault> {
    let style = Style::of(document);
    let value = key.set.fresh();
    let (way, rest) = key.path.split_at(depth);
    let [first, rest @ ..] = rest else {
        return Err(Fault {
            line: document.line(at),
            problem: "a key without a name cannot be set".to_owned(),
        });
    };
    let value =
        rest.iter().rev().fold(value, |value, part| Value::Object(Map::from_iter([(part.clone(), value)])));
    if document.byte(at) != b'{' {
        let with = style.object(first, &value, layout_of(document, way));
        let end = at + "null".len();
        return Ok(replaced(document.text, at..end, &with));
    }
    let object = document.object(at);
    let Some(last) = object.items.last() else {
        let with = style.object(first, &value, layout_of(document, way));
        return Ok(replaced(document.text, object.span, &with));
    };
    let layout = layout_in(document, &object);
    let between = style.between(layout);
    let member = style.member(first, &value, layout);
    Ok(replaced(document.text, last.value.end..last.value.end, &format!("{between}{member}")))
}

/// How the value at a path that is there stands.
fn layout_of<'a>(document: &Document<'a>, path: &[String]) -> Layout<'a> {
    let Some((last, way)) = path.split_last() else { return Layout::Lines("") };
    let Ok(Place::Value(holder)) = document.find(way) else { return Layout::Inline };
    let object = document.object(holder.start);
    let mut from = object.span.start + 1;
    for member in &object.items {
        if member.name.as_ref() == Some(last) {
            return layout_after(document, from..member.key.start);
        }
        from = member.value.end;
    }
    Layout::Inline
}
