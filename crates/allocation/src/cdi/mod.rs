//! CDI specs (Container Device Interface 1.1.0), such as `/etc/cdi/amd.json`.
//!
//! [`Spec::parse`] takes what is JSON and has the right types; [`Spec::faults`] says what is wrong by the
//! rules of the specification.

mod faults;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{Error, error::malformed};

pub use faults::Fault;

/// The hooks that the OCI runtime-spec knows.
pub const HOOK_NAMES: [&str; 6] =
    ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

/// The kind of a spec of AMD's GPUs.
pub const KIND: &str = "amd.com/gpu";

/// A CDI spec file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default, rename = "cdiVersion")]
    pub version: String,
    /// `vendor/class`.
    #[serde(default)]
    pub kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: Keys,
    #[serde(default, deserialize_with = "or_default")]
    pub devices: Vec<Device>,
    /// Made once, whichever devices are asked for.
    #[serde(default, rename = "containerEdits", deserialize_with = "or_default")]
    pub edits: Edits,
    /// Keys that CDI does not know.
    #[serde(flatten)]
    pub unknown: Keys,
}

/// A device that can be asked for by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Device {
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: Keys,
    #[serde(default, rename = "containerEdits", deserialize_with = "or_default")]
    pub edits: Edits,
    /// Keys that CDI does not know.
    #[serde(flatten)]
    pub unknown: Keys,
}

/// The edits that an engine makes to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edits {
    #[serde(default, deserialize_with = "or_default")]
    pub device_nodes: Vec<DeviceNode>,
    /// `KEY=VALUE`.
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub mounts: Vec<Mount>,
    #[serde(default, deserialize_with = "or_default")]
    pub hooks: Vec<Hook>,
    /// Host gids.
    #[serde(default, deserialize_with = "or_default")]
    pub additional_gids: Vec<u32>,
    /// Kinds of edits that are not read here, by name: `netDevices`, `intelRdt`, and what CDI does not know.
    #[serde(flatten)]
    pub others: Keys,
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNode {
    /// The path in the container.
    #[serde(default)]
    pub path: String,
    /// The path on the host, where it is another one: see [`DeviceNode::host`].
    pub host_path: Option<String>,
    /// `type`: `c`, `b`, `u` or `p`; None: as the host's node is.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `None`: the number of the host's node.
    pub major: Option<i64>,
    pub minor: Option<i64>,
    pub uid: Option<u32>,
    /// Permission bits.
    pub file_mode: Option<u32>,
    /// `None`: the engine decides, and docker takes 0.
    pub gid: Option<u32>,
    /// What the device cgroup allows: some of `rwm`; `None` allows all of it, and `none` nothing.
    pub permissions: Option<String>,
    /// Keys that CDI does not know.
    #[serde(flatten)]
    pub unknown: Keys,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    #[serde(default)]
    pub host_path: String,
    #[serde(default)]
    pub container_path: String,
    #[serde(default, deserialize_with = "or_default")]
    pub options: Vec<String>,
    /// `None`: a bind mount, if its options say so.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Keys that CDI does not know.
    #[serde(flatten)]
    pub unknown: Keys,
}

/// A hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Hook {
    /// The hook's name in the OCI spec, such as `createContainer`.
    #[serde(default, rename = "hookName")]
    pub name: String,
    #[serde(default)]
    pub path: String,
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<String>,
    /// `KEY=VALUE`.
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<String>,
    /// Seconds.
    pub timeout: Option<i64>,
    /// Keys that CDI does not know.
    #[serde(flatten)]
    pub unknown: Keys,
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// The text is not JSON, a value has the wrong type, or a key appears twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| malformed("not a CDI spec", &error))
    }
}

impl DeviceNode {
    /// The path of the host's node.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host_path.as_deref().filter(|path| !path.is_empty()).unwrap_or(&self.path)
    }
}

impl Edits {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The keys of an object whose values do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(pub Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Keys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// `null` is as good as absent.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests;
