//! Sizes of memory.

use std::fmt::{self, Formatter};

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A size as people write it: `512M`, `8G`, `8GiB`, a number of bytes, or `unlimited`. Units are powers of 1024, as
/// docker's `--shm-size` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Bytes(u64),
    Unlimited,
}

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
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 512M or 8G, a number of bytes, or unlimited")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        Size::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
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
