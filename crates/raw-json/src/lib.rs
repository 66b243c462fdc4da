//! JSON of other programs, read without a byte of it lost: the members of an object in their order, each value as the text
//! spells it.
//!
//! serde_json's raw values are slices of the text that it reads. So a part of a text says where it is ([`span`]), and an
//! edit replaces it there ([`spliced`]). Numbers, escapes, blanks, keys that appear twice and any depth stay as they are.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The characters that JSON treats as white space (RFC 8259, 2).
pub const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A key of an object and its value, as the text spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key with its quotation marks.
    pub key: &'a str,
    pub value: &'a str,
}

/// The value that a text is, without the blanks around it.
///
/// # Errors
/// The text is no JSON.
pub fn value(text: &str) -> serde_json::Result<&str> {
    serde_json::from_str::<&RawValue>(text).map(RawValue::get)
}

/// The members of an object in their order, also those whose key appears twice.
///
/// # Errors
/// The text is no JSON, or no object.
pub fn members(object: &str) -> serde_json::Result<Vec<Member<'_>>> {
    serde_json::from_str::<Members<'_>>(object).map(|members| members.0)
}

/// The elements of a list.
///
/// # Errors
/// The text is no JSON, or no list.
pub fn elements(list: &str) -> serde_json::Result<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(list)?;
    Ok(elements.into_iter().map(RawValue::get).collect())
}

/// The place of a part in a text, in bytes. `part` must be a slice of `text`.
#[must_use]
pub fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// The text with other text in the place of some parts of it, which do not overlap. Of several at one place the first
/// comes first.
#[must_use]
pub fn spliced(text: &str, edits: impl IntoIterator<Item = (Range<usize>, String)>) -> String {
    let mut edits: Vec<_> = edits.into_iter().collect();
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let (mut edited, mut kept) = (String::with_capacity(text.len()), 0);
    for (span, with) in edits {
        edited += text.get(kept..span.start).unwrap_or_default();
        edited += &with;
        kept = span.end;
    }
    edited + text.get(kept..).unwrap_or_default()
}

/// A string as Go's decoder reads it: half of a surrogate pair becomes U+FFFD, where serde_json has no text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'a> Text<'a> {
    /// Reads a string; `None` where the value is another one.
    #[must_use]
    pub fn of(value: &'a str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Read<'a> {
            type Value = Text<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Text(match std::str::from_utf8(bytes) {
                    Ok(text) => text.into(),
                    Err(_) => without_halves(bytes).into(),
                }))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Text(without_halves(bytes).into()))
            }
        }
        deserializer.deserialize_bytes(Read(PhantomData))
    }
}

/// serde_json gives half of a pair as three bytes, which UTF-8 has not: ED first.
fn without_halves(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        if chunk.invalid() == [0xed] {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_its_members_as_they_are_spelled_and_as_often() {
        let text = r#" {"a" : 1.0e2, "\u0061":[ 1, {"a":-0}],"\ud800":"\ud800" } "#;
        let object = value(text).unwrap();
        let found = members(object).unwrap();
        let spelled: Vec<_> = found.iter().map(|member| (member.key, member.value)).collect();
        let expected =
            [("\"a\"", "1.0e2"), (r#""\u0061""#, r#"[ 1, {"a":-0}]"#), (r#""\ud800""#, r#""\ud800""#)];
        assert_eq!(spelled, expected);
        for member in &found {
            assert_eq!(text.get(span(text, member.value)), Some(member.value));
        }
        assert_eq!(elements(found[1].value).unwrap(), ["1", r#"{"a":-0}"#]);
        for no_object in ["[]", "1", "{", "{} {}", r#"{"a":01}"#] {
            assert!(members(no_object).is_err(), "{no_object}");
        }
    }

    #[test]
    fn a_string_is_what_go_makes_of_it() {
        for (spelled, expected) in [
            (r#""plain""#, Some("plain")),
            (r#""\u0041\n\ud83d\ude00é""#, Some("A\n😀é")),
            (r#""a\ud800b\udc00\ud800\ud83d\ude00�""#, Some("a\u{fffd}b\u{fffd}\u{fffd}😀\u{fffd}")),
            ("5", None),
            ("null", None),
        ] {
            assert_eq!(Text::of(spelled).as_deref(), expected, "{spelled}");
        }
    }

    #[test]
    fn no_depth_is_too_much() {
        let text = format!(r#"{{"a":{}1{},"b":2}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(members(&text).unwrap()[1].value, "2");
    }

    #[test]
    fn parts_are_replaced_where_they_are() {
        let text = "one two three";
        let edits = [(8..13, String::new()), (0..3, "1".to_owned()), (8..8, "and ".to_owned())];
        assert_eq!(spliced(text, edits), "1 two and ");
    }
}
