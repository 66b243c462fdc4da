//! Render nodes by name.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A DRM render node: the `128` of `renderD128`. The kernel takes that number for the node's minor
/// (drivers/gpu/drm/drm_drv.c), but whoever needs the minor asks the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Render(u32);

impl Render {
    /// Reads `renderD128` or `/dev/dri/renderD128`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix("/dev/dri/").unwrap_or(text).strip_prefix("renderD")?;
        let is_plain = number == "0" || number.starts_with(|first: char| matches!(first, '1'..='9'));
        number.parse().ok().filter(|_| is_plain).map(Self)
    }

    /// The number in the name.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// `/dev/dri/renderD128`.
    #[must_use]
    pub fn path(self) -> String {
        format!("/dev/dri/{self}")
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
