//! Where the parts of a JSON text stand. serde_json tells: its raw values are parts of the text that it reads.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Fault, dotted, split_bom};

/// A text that is strict JSON: no comment, no comma too many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    pub(super) root: &'a str,
}

/// A key of an object and its value, as the text spells them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

/// Where a path leads to. `key` is the spelling of the last key on the way; the root has none.
#[derive(Debug)]
pub(super) enum Place<'a> {
    Value {
        key: Option<&'a str>,
        value: &'a str,
    },
    /// `value` is the last one on the way, mostly an object or null; `depth` parts of the path lead there.
    Missing {
        key: Option<&'a str>,
        value: &'a str,
        depth: usize,
    },
}

impl<'a> Document<'a> {
    /// # Errors
    /// The text is not JSON, or not an object.
    pub(super) fn new(text: &'a str) -> Result<Self, Fault> {
        let root = serde_json::from_str::<&RawValue>(split_bom(text).1).map_err(|error| {
            let message = error.to_string();
            let problem = message.split(" at line ").next().unwrap_or(&message).to_owned();
            Fault { line: error.line().max(1), problem: format!("this is not JSON: {problem}") }
        })?;
        let document = Self { text, root: root.get() };
        if is_object(document.root) {
            return Ok(document);
        }
        Err(document.fault(root.get(), format!("the file holds {} and not an object", kind(root.get()))))
    }

    pub(super) fn span(&self, part: &str) -> Range<usize> {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        start..start + part.len()
    }

    pub(super) fn member_span(&self, member: Member<'_>) -> Range<usize> {
        self.span(member.key).start..self.span(member.value).end
    }

    pub(super) fn fault(&self, part: &str, problem: String) -> Fault {
        Fault { line: self.before(part).matches('\n').count() + 1, problem }
    }

    pub(super) fn before(&self, part: &str) -> &'a str {
        self.text.get(..self.span(part).start).unwrap_or_default()
    }

    /// The text with something else in the place of a part of it.
    pub(super) fn replaced(&self, span: Range<usize>, with: &str) -> String {
        let before = self.text.get(..span.start).unwrap_or_default();
        let after = self.text.get(span.end..).unwrap_or_default();
        format!("{before}{with}{after}")
    }

    /// # Errors
    /// A key of the path stands twice in one object: which one counts is each reader's own choice.
    pub(super) fn find(&self, path: &[String]) -> Result<Place<'a>, Fault> {
        let (mut key, mut value) = (None, self.root);
        for (depth, part) in path.iter().enumerate() {
            let mut named = members(value).into_iter().filter(|member| member.name().as_ref() == Some(part));
            let Some(member) = named.next() else { return Ok(Place::Missing { key, value, depth }) };
            if let Some(second) = named.next() {
                let line = self.fault(member.key, String::new()).line;
                let problem = format!(
                    "the key {part:?} stands on line {line} already: keep one of the two, since it is each \
                     reader's choice which one counts"
                );
                return Err(self.fault(second.key, problem));
            }
            (key, value) = (Some(member.key), member.value);
        }
        Ok(Place::Value { key, value })
    }

    pub(super) fn blocked(&self, path: &[String], value: &str, needed: &str) -> Fault {
        self.fault(value, format!("{} is {} where {needed} is needed", dotted(path), kind(value)))
    }

    /// # Errors
    /// As [`Self::find`].
    pub(super) fn value(&self, path: &[String]) -> Result<Option<&'a str>, Fault> {
        match self.find(path)? {
            Place::Value { value, .. } => Ok(Some(value)),
            Place::Missing { .. } => Ok(None),
        }
    }
}

impl Member<'_> {
    /// `None`: the escapes stand for no text.
    pub(super) fn name(&self) -> Option<String> {
        serde_json::from_str(self.key).ok()
    }
}

pub(super) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// Whether this is an object or a list with something in it.
pub(super) fn holds_items(value: &str) -> bool {
    !members(value).is_empty() || !items(value).is_empty()
}

/// The value, if its numbers fit a type.
pub(super) fn parsed(value: &str) -> Option<Value> {
    serde_json::from_str(value).ok()
}

fn kind(value: &str) -> &'static str {
    match value.as_bytes() {
        [b'{', ..] => "an object",
        [b'[', ..] => "a list",
        [b'"', ..] => "a text",
        [b't' | b'f', ..] => "true or false",
        [b'n', ..] => "null",
        _ => "a number",
    }
}

/// The members of a list; none where it is no list.
pub(super) fn items(value: &str) -> Vec<&str> {
    let items: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

/// The members of an object, keys that stand twice among them; none where it is no object.
pub(super) fn members(value: &str) -> Vec<Member<'_>> {
    serde_json::from_str::<Members<'_>>(value).unwrap_or_default().0
}

#[derive(Default)]
struct Members<'a>(Vec<Member<'a>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push(Member { key: key.get(), value: value.get() });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}
