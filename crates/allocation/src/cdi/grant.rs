//! The edits of the devices that a container gets.

use std::fmt;

use super::{DeviceNode, Hook, Mount, Spec};

/// The edits of some devices of a spec and its global ones, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant<'s> {
    /// One for each path in the container.
    pub nodes: Vec<&'s DeviceNode<'s>>,
    pub env: Vec<&'s str>,
    pub mounts: Vec<&'s Mount<'s>>,
    pub hooks: Vec<&'s Hook<'s>>,
    /// Host gids.
    pub additional_gids: Vec<u32>,
}

/// Why devices cannot be given together, or at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// An edit that cannot be made here, by name.
    Unsupported { device: Option<String>, edit: String },
    /// Two different nodes for one path in the container.
    Conflict { path: String },
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { device: Some(device), edit } => {
                write!(f, "the device {} wants the edit {}", crate::Quoted(device), crate::Quoted(edit))?;
            }
            Self::Unsupported { device: None, edit } => {
                write!(f, "containerEdits wants the edit {}", crate::Quoted(edit))?;
            }
            Self::Conflict { path } => {
                return write!(f, "two devices have different nodes for {}", crate::Quoted(path));
            }
        }
        f.write_str(", which this version cannot make")
    }
}

impl std::error::Error for GrantError {}

impl<'a> Spec<'a> {
    /// The edits of these devices (places in [`Spec::devices`]), after the global ones. No devices: no edits.
    ///
    /// # Errors
    /// An edit is of a kind that is not read here, or two nodes contradict each other.
    pub fn grant<'s>(&'s self, devices: impl IntoIterator<Item = usize>) -> Result<Grant<'s>, GrantError>
    where
        'a: 's,
    {
        let _ = devices.into_iter().count();
        todo!()
    }
}
