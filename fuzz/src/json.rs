//! JSON as serde_json reads it, a level at a time, with what its tree of values loses: keys that stand twice, the
//! order of keys, and how a number is written.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The text with `\ufffd` for each half of a surrogate pair that stands alone. serde_json refuses such a string;
/// Go's decoder, which is runc's, reads U+FFFD there, and so does the product.
pub(crate) fn as_go_decodes(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let unit = |at: usize| {
            let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
            let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hexadecimal.then(|| u32::from_str_radix(digits, 16).ok())?
        };
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(&text[done..at]);
                out.push_str("\\ufffd");
                done = at + 6;
                6
            }
            (Some(_), _) => 6,
            (None, _) => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[done..]) }
}

/// Keys with their values as they stand in the text, in its order. None: it is no object.
pub(crate) fn members(raw: &str) -> Option<Vec<(String, &str)>> {
    struct Members<'a>(Vec<(String, &'a str)>);

    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                members.push((key, value.get()));
            }
            Ok(Members(members))
        }
    }

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(InOrder)
        }
    }

    serde_json::from_str::<Members<'_>>(raw).ok().map(|members| members.0)
}

/// The elements of a list as they stand in the text. None: it is no list.
pub(crate) fn elements(raw: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

pub(crate) fn value<T: DeserializeOwned>(raw: &str) -> Option<T> {
    serde_json::from_str(raw).ok()
}

/// A whole number that may be negative. `-0` is one to Go and to the product; serde_json takes it for a float.
pub(crate) fn signed(raw: &str) -> Option<i64> {
    if raw == "-0" { Some(0) } else { value(raw) }
}

/// What `null` and absence are, and what stands there otherwise; the outer None: it cannot be read.
pub(crate) fn optional<'a, T>(
    raw: Option<&'a str>,
    read: impl FnOnce(&'a str) -> Option<T>,
) -> Option<Option<T>> {
    match raw {
        None | Some("null") => Some(None),
        Some(raw) => read(raw).map(Some),
    }
}

/// The elements of a list, of which none may be unreadable; none at all where it is absent or `null`.
pub(crate) fn list<'a, T>(raw: Option<&'a str>, read: impl FnMut(&'a str) -> Option<T>) -> Option<Vec<T>> {
    let elements = optional(raw, elements)?.unwrap_or_default();
    elements.into_iter().map(read).collect()
}

/// Whether a text is one object and nothing else, as serde_json has it, to any depth.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
