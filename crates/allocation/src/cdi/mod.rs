//! CDI specs (Container Device Interface 1.1.0), such as `/etc/cdi/amd.json`.
//!
//! [`Spec::parse`] takes what is JSON and has the right types; [`Spec::faults`] says what is wrong by the
//! rules of the specification. Strings are borrowed from the text where they can be: the wrapper reads a
//! spec of 64 partitions at each create.

mod faults;
mod grant;
mod outline;
mod read;

use std::borrow::Cow;

use crate::Error;

pub use faults::Fault;
pub use grant::Grant;
pub use outline::Outline;

/// The hooks that the OCI runtime-spec knows.
pub const HOOK_NAMES: [&str; 6] =
    ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

/// What a spec of AMD's GPUs is about.
pub const KIND: &str = "amd.com/gpu";

/// Edits that CDI knows and that are not read here.
const UNREAD_EDITS: [&str; 2] = ["netDevices", "intelRdt"];

/// A CDI spec file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec<'a> {
    /// `cdiVersion`.
    pub version: Cow<'a, str>,
    /// `vendor/class`.
    pub kind: Cow<'a, str>,
    /// Whether there are annotations, which need 0.6.0.
    pub annotated: bool,
    pub devices: Vec<Device<'a>>,
    /// `containerEdits`: made once, whichever devices are asked for.
    pub edits: Edits<'a>,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

/// A device that can be asked for by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device<'a> {
    pub name: Cow<'a, str>,
    pub edits: Edits<'a>,
    /// Whether there are annotations, which need 0.6.0.
    pub annotated: bool,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

/// What is to be changed in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits<'a> {
    pub device_nodes: Vec<DeviceNode<'a>>,
    /// `KEY=VALUE`.
    pub env: Vec<Cow<'a, str>>,
    pub mounts: Vec<Mount<'a>>,
    pub hooks: Vec<Hook<'a>>,
    /// Host gids.
    pub additional_gids: Vec<u32>,
    /// Kinds of edits that are not read here, by name: `netDevices`, `intelRdt`, and what CDI does not know.
    pub others: Vec<String>,
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNode<'a> {
    /// The path in the container.
    pub path: Cow<'a, str>,
    /// The path on the host, where it is another one: see [`DeviceNode::host`].
    pub host_path: Option<Cow<'a, str>>,
    /// `type`: `c`, `b`, `u` or `p`; None: as the host's node is.
    pub kind: Option<Cow<'a, str>>,
    /// None: as the host's node has it.
    pub major: Option<i64>,
    pub minor: Option<i64>,
    pub uid: Option<u32>,
    /// Permission bits.
    pub file_mode: Option<u32>,
    /// None: the engine decides, and docker takes 0.
    pub gid: Option<u32>,
    /// See [`DeviceNode::access`].
    pub permissions: Option<Cow<'a, str>>,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

impl DeviceNode<'_> {
    /// The path of the host's node.
    #[must_use]
    pub fn host(&self) -> &str {
        match &self.host_path {
            Some(path) if !path.is_empty() => path,
            _ => &self.path,
        }
    }

    /// What the device cgroup shall allow: `rwm` if the spec does not say, nothing for `none`.
    #[must_use]
    pub fn access(&self) -> &str {
        match self.permissions.as_deref() {
            None | Some("") => "rwm",
            Some("none") => "",
            Some(access) => access,
        }
    }
}

impl Edits<'_> {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount<'a> {
    pub host_path: Cow<'a, str>,
    pub container_path: Cow<'a, str>,
    pub options: Vec<Cow<'a, str>>,
    /// `type`; None: a bind mount by its options.
    pub kind: Option<Cow<'a, str>>,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

/// A hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook<'a> {
    /// `hookName`: where it belongs in the OCI spec, such as `createContainer`.
    pub name: Cow<'a, str>,
    pub path: Cow<'a, str>,
    pub args: Vec<Cow<'a, str>>,
    /// `KEY=VALUE`.
    pub env: Vec<Cow<'a, str>>,
    /// Seconds.
    pub timeout: Option<i64>,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

impl<'a> Spec<'a> {
    /// Reads a spec.
    ///
    /// # Errors
    /// The text is not JSON, a value has the wrong type, or a key appears twice.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let outline = Outline::parse(text)?;
        outline.only(0..outline.devices().count())
    }
}

#[cfg(test)]
mod tests;
