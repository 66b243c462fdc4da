//! A tree of YAML as the types of a configuration.
//!
//! A type says what it takes by the method that it calls (`deserialize_bool`), so that no error names a type of Rust.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::fault::{NUMBER, one_of, quoted};
use super::{Fault, Key, Node, Value};

/// A key that is written with `_` where a configuration has `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) line: usize,
    pub(crate) written: String,
    pub(crate) key: String,
}

/// A section with more keys is the file.
const MOST_KEYS: usize = 12;

/// Reads a tree as `T`. Keys that are written with `_` are read, too, and listed.
///
/// # Errors
/// The first part that `T` does not take.
pub(crate) fn read<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<(T, Vec<Spelling>), Fault> {
    let spellings = RefCell::new(Vec::new());
    let read = T::deserialize(Reader { node, spellings: &spellings });
    read.map(|read| (read, spellings.into_inner())).map_err(|fault| fault.on_line(node.line))
}

#[derive(Clone, Copy)]
struct Reader<'de, 's> {
    node: &'de Node,
    spellings: &'s RefCell<Vec<Spelling>>,
}

impl<'de> Reader<'de, '_> {
    fn takes(self, takes: impl Into<String>) -> Fault {
        let is = match &self.node.value {
            _ if self.node.is_empty() => "empty".to_owned(),
            Value::Scalar { text, plain: true }
                if self.node.truth().is_some() || text.parse::<f64>().is_ok() =>
            {
                text.clone()
            }
            Value::Scalar { text, .. } => format!("text ({})", quoted(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a section".to_owned(),
        };
        Fault::value(is, takes)
    }

    fn scalar(self) -> Option<&'de str> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.node.is_empty() => Some(text),
            _ => None,
        }
    }

    fn number(self) -> Option<u64> {
        let Value::Scalar { text, plain: true } = &self.node.value else { return None };
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Fault;

    /// A number is its text here: as a number, 30.10 would be 30.1.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            _ if self.node.is_empty() => visitor.visit_unit(),
            Value::Scalar { text, .. } => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(Items { items: items.iter(), of: self }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0, known: &[], of: self }),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_bool(self.node.truth().ok_or_else(|| self.takes("true or false"))?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let number = self.number().and_then(|number| u32::try_from(number).ok());
        visitor.visit_u32(number.ok_or_else(|| self.takes(NUMBER))?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.scalar().ok_or_else(|| match &self.node.value {
            Value::Scalar { .. } => self.takes("text"),
            _ => self.takes("text, in quotes where it begins with a bracket"),
        });
        visitor.visit_borrowed_str(text?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.node.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::List(_) => self.deserialize_any(visitor),
            _ => Err(self.takes("a list, as [a, b]")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Map(_) => self.deserialize_any(visitor),
            _ => Err(self.takes("keys with values, as {a: b}")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0, known, of: self }),
            _ if known.len() > MOST_KEYS => Err(self.takes("keys with values, as compute-runtime: auto")),
            _ => Err(self.takes(format!("keys with values: {}", known.join(", ")))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let word = self.scalar().ok_or_else(|| self.takes(one_of(known)))?;
        visitor.visit_enum(StrDeserializer::new(word))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct Items<'de, 's> {
    items: std::slice::Iter<'de, Node>,
    of: Reader<'de, 's>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let item = seed.deserialize(Reader { node, ..self.of });
        item.map(Some).map_err(|fault| fault.of_list(node.line))
    }
}

struct Entries<'de, 's> {
    entries: &'de [(Key, Node)],
    /// The number of the entry that comes next.
    next: usize,
    /// The keys of a section; empty where a file names keys of its own.
    known: &'static [&'static str],
    of: Reader<'de, 's>,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, _)) = self.entries.get(self.next) else { return Ok(None) };
        let mut word = key.text.clone();
        let dashed = key.dashed();
        if self.known.contains(&&*dashed) {
            // No text has one spelling twice (tree.rs).
            let mut before = self.entries.iter().take(self.next).map(|(key, _)| key);
            if let Some(first) = before.find(|first| first.dashed() == dashed) {
                return Err(Fault::twice(key.line, dashed, first.line));
            }
            if word != dashed {
                let spelling = Spelling { line: key.line, written: word, key: dashed.clone() };
                self.of.spellings.borrow_mut().push(spelling);
                word = dashed;
            }
        }
        self.next += 1;
        seed.deserialize(StrDeserializer::new(&word))
            .map(Some)
            .map_err(|fault: Fault| fault.on_line(key.line))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let entry = self.next.checked_sub(1).and_then(|last| self.entries.get(last));
        let (key, node) = entry.ok_or_else(|| Fault::at(0, "a value comes without its key"))?;
        let line = if node.is_empty() { key.line } else { node.line };
        seed.deserialize(Reader { node, ..self.of }).map_err(|fault| fault.of_key(&key.text, line))
    }
}
