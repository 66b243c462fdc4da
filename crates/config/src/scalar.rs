//! Values that YAML takes for text or for a number, by how they look.

use std::fmt::{self, Debug, Formatter};

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A size as people write it: `512M`, `8G`, `8GiB`, a number of bytes, or `unlimited`. Units are powers of 1024, as
/// docker's `--shm-size` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Bytes(u64),
    Unlimited,
}

const EXPECTED: &str = "a size such as 512M or 8G, a number of bytes, or unlimited";

impl Size {
    /// The size as wrapper.json has it: bytes, or `unlimited`.
    #[must_use]
    pub fn in_policy(self) -> Value {
        match self {
            Self::Bytes(bytes) => bytes.into(),
            Self::Unlimited => "unlimited".into(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "unlimited" {
            return Some(Self::Unlimited);
        }
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim_start() {
            "" | "B" => 1,
            "K" | "KiB" | "k" => 1 << 10,
            "M" | "MiB" | "m" => 1 << 20,
            "G" | "GiB" | "g" => 1 << 30,
            "T" | "TiB" | "t" => 1 << 40,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(factor)?;
        (bytes > 0).then_some(Self::Bytes(bytes))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_policy().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar { expected: EXPECTED, parse: Self::parse })
    }
}

/// A word of a list, or a parameter's value; YAML reads a bare `0` as a number.
#[derive(Debug, Serialize)]
pub struct Word(pub String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Some(Self(text.to_owned()));
        deserializer.deserialize_any(Scalar { expected: "a word or a number", parse })
    }
}

/// What people write without quotes, whatever YAML takes it for.
struct Scalar<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Scalar<T> {
    fn parsed<E: Error>(&self, text: &str, shown: impl Debug) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format!("{shown:?} is not {}", self.expected)))
    }
}

impl<'de, T> Visitor<'de> for Scalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.parsed(text, text)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.parsed(&number.to_string(), number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.parsed(&number.to_string(), number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<T, E> {
        Err(E::custom("a number with a point loses digits: put it in quotes, as \"30.10\""))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<T, A::Error> {
        let expected = self.expected;
        Err(A::Error::custom(format!(
            "a list is not {expected}: put what begins with a bracket in quotes, as \"[::]:9401\""
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::Size::{Bytes, Unlimited};
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_nothing_else_is_a_size() {
        let cases = [
            ("512M", Some(Bytes(512 << 20))),
            ("8G", Some(Bytes(8 << 30))),
            ("8 GiB", Some(Bytes(8 << 30))),
            ("65536", Some(Bytes(65536))),
            ("unlimited", Some(Unlimited)),
            ("0", None),
            ("8GB", None),
            ("-1", None),
            ("", None),
            ("G", None),
            ("20000000T", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Size::parse(text), expected, "{text:?}");
        }
    }
}
