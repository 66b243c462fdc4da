//! Render nodes by name.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::write_number;

/// A DRM render node: the `128` of `renderD128`. The kernel takes that number for the node's minor
/// (drivers/gpu/drm/drm_drv.c), but whoever needs the minor asks the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Render(u32);

impl Render {
    /// Reads `renderD128` or `/dev/dri/renderD128`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_bytes(text.as_bytes())
    }

    /// The same of a name as the kernel gives it.
    #[must_use]
    pub fn from_bytes(name: &[u8]) -> Option<Self> {
        let number = match name.strip_prefix(b"/dev/dri/renderD") {
            Some(number) => number,
            None => name.strip_prefix(b"renderD")?,
        };
        // A digit at a time: the library's way through core costs four times as much. Ten can be too many.
        let mut value = 0_u64;
        for digit in number {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.wrapping_mul(10).wrapping_add(digit.into());
        }
        let is_plain = match number {
            [] => false,
            [b'0', more @ ..] => more.is_empty(),
            digits => digits.len() <= 10,
        };
        u32::try_from(value).ok().filter(|_| is_plain).map(Self)
    }

    /// The number in the name.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// `/dev/dri/renderD128`.
    #[must_use]
    pub fn path(self) -> String {
        let mut path = String::with_capacity(24);
        self.write_path(&mut path);
        path
    }

    pub(crate) fn write_path(self, out: &mut String) {
        out.push_str("/dev/dri/renderD");
        write_number(out, self.0.into());
    }
}

impl fmt::Display for Render {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "renderD{}", self.0)
    }
}

impl Serialize for Render {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.path())
    }
}

impl<'de> Deserialize<'de> for Render {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"a render node like /dev/dri/renderD128")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Render;

    #[test]
    fn reads_a_render_node_by_name_or_path_and_nothing_else() {
        let table = [
            ("renderD128", Some("/dev/dri/renderD128")),
            ("/dev/dri/renderD191", Some("/dev/dri/renderD191")),
            ("renderD0", Some("/dev/dri/renderD0")),
            ("renderD0128", None),
            ("renderD", None),
            ("renderD-1", None),
            ("renderD+1", None),
            ("renderD99999999999", None),
            ("/dev/dri/../dri/renderD128", None),
            ("/dev/renderD128", None),
            ("card0", None),
            ("RenderD128", None),
        ];
        for (text, expected) in table {
            assert_eq!(Render::parse(text).map(Render::path).as_deref(), expected, "{text:?}");
        }
    }
}
