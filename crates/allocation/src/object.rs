//! Objects as runc reads them, with Go's decoder.
//!
//! It unescapes keys, takes them for a field without regard to case, and lets the later of two win. So a key is recognised
//! in every spelling that Go takes for it. Where one that matters appears twice, or has a value of another type, it is not
//! clear what the object means: the error says where.

use std::str::FromStr;

use raw_json::{Member, Text, elements, members, span};
use serde::Deserialize;

use crate::{Error, Quoted};

/// The brackets of an object and of an array.
pub(crate) const OBJECT: &str = "{}";
pub(crate) const ARRAY: &str = "[]";

/// An object somewhere in a text.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    text: &'a str,
    pub(crate) value: &'a str,
    members: Vec<Member<'a>>,
}

impl<'a> Object<'a> {
    /// The text as one object.
    pub(crate) fn whole(text: &'a str) -> Result<Self, Error> {
        let value = raw_json::value(text).map_err(|error| Error::new(format!("not JSON: {error}")))?;
        Self::of(text, value)
    }

    /// The object that a part of the text is.
    pub(crate) fn of(text: &'a str, value: &'a str) -> Result<Self, Error> {
        let members = members(value).map_err(|_| unwanted(text, value, "an object"))?;
        Ok(Self { text, value, members })
    }

    /// The text that the object is a part of.
    pub(crate) fn document(&self) -> &'a str {
        self.text
    }

    /// The object at a place that [`Object::container`] gave; `None` where it is `null` or there is none.
    pub(crate) fn within(&self, place: Option<&'a str>) -> Result<Option<Self>, Error> {
        place.filter(|value| *value != "null").map(|value| Self::of(self.text, value)).transpose()
    }

    pub(crate) fn keys(&self) -> Vec<Text<'a>> {
        self.members.iter().filter_map(|member| Text::of(member.key)).collect()
    }

    /// The values of a field in their order, `null` among them.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.members.iter().filter(move |member| is_named(member, name)).map(|member| member.value)
    }

    /// The value of a field, which may appear once; `None` also of `null`, which to Go is as good as absent.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&'a str>, Error> {
        Ok(self.place(name)?.filter(|value| *value != "null"))
    }

    /// Finds a field as [`Object::one`] does, but returns a `null`, too: an edit can replace it.
    fn place(&self, name: &str) -> Result<Option<&'a str>, Error> {
        let mut named = self.members.iter().filter(|member| is_named(member, name));
        let first = named.next().map(|member| member.value);
        match named.next() {
            None => Ok(first),
            Some(second) => {
                Err(fault(self.text, second.key, format!("the key {} appears twice", Quoted(name))))
            }
        }
    }

    /// The object or array of a field, or its `null`, for an edit in its place.
    pub(crate) fn container(&self, name: &str, brackets: &str) -> Result<Option<&'a str>, Error> {
        let place = self.place(name)?;
        match place {
            Some(value) if value != "null" && value.get(..1) != brackets.get(..1) => {
                Err(unwanted(self.text, value, if brackets == OBJECT { "an object" } else { "a list" }))
            }
            place => Ok(place),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<Text<'a>>, Error> {
        self.read(name, "a string")
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.read(name, "true or false")
    }

    /// A whole number, in plain digits.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Error> {
        self.one(name)?.map(|value| number(self.text, value)).transpose()
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<Text<'a>>, Error> {
        self.read(name, "a list of strings").map(Option::unwrap_or_default)
    }

    fn read<T: Deserialize<'a>>(&self, name: &str, wanted: &str) -> Result<Option<T>, Error> {
        let read = |value| serde_json::from_str(value).map_err(|_| unwanted(self.text, value, wanted));
        self.one(name)?.map(read).transpose()
    }

    /// The value of a required field, or an error that names the field.
    pub(crate) fn needed<T>(&self, name: &str, found: Option<T>) -> Result<T, Error> {
        found.ok_or_else(|| fault(self.text, self.value, format!("the key {} is missing", Quoted(name))))
    }
}

/// Whether Go's decoder takes this key for the field `name`, which is ASCII. Go ignores case, and folds two
/// characters outside ASCII to letters (Unicode CaseFolding.txt: U+017F is an s, U+212A is a k).
fn is_named(member: &Member<'_>, name: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    Text::of(member.key).is_some_and(|key| key.chars().map(fold).eq(name.chars().map(fold)))
}

/// The elements of the list at a place of the text; none where there is none.
pub(crate) fn list(place: Option<&str>) -> Vec<&str> {
    // A list that was read before is whole; `null` has no elements.
    place.and_then(|list| elements(list).ok()).unwrap_or_default()
}

/// A whole number of the type's range, in plain digits.
pub(crate) fn number<T: FromStr>(text: &str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|_| unwanted(text, value, "a whole number in its range"))
}

/// An error about a part of the text, with its place: `the key "x" appears twice (line 1, column 7)`. Lines
/// and columns count from 1, columns in characters.
pub(crate) fn fault(text: &str, part: &str, problem: String) -> Error {
    let before = text.get(..span(text, part).start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Error::new(format!("{problem} (line {line}, column {column})"))
}

/// An error about a value that is not of the wanted kind.
pub(crate) fn unwanted(text: &str, value: &str, wanted: &str) -> Error {
    let found = match value.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "a list".to_owned(),
        Some(b'"') => Text::of(value).map_or_else(String::new, |text| Quoted(&text).to_string()),
        _ => Quoted(value).to_string(),
    };
    fault(text, value, format!("expected {wanted}, found {found}"))
}
