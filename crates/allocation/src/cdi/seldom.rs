//! What a spec seldom says.
//!
//! A spec of 64 partitions has hundreds of nodes with a path, a mode, a group and permissions each, and nothing else. All else stands
//! apart, so that the memory of those is what they need: the first touch of each page of it costs as much as a call of the
//! kernel.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use super::{Hook, Mount};

/// Reads as the default of `T` where nothing was put into it.
#[derive(Clone, Debug, Default)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T> Seldom<T> {
    /// With nothing in it.
    pub(super) const NOTHING: Self = Self(None);

    /// Whether nothing was put into it.
    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }
}

impl<T> From<T> for Seldom<T> {
    fn from(value: T) -> Self {
        Self(Some(Box::new(value)))
    }
}

impl<T: PartialEq> PartialEq for Seldom<T>
where
    Self: Deref<Target = T>,
{
    fn eq(&self, other: &Self) -> bool {
        self.is_nothing() && other.is_nothing() || **self == **other
    }
}

impl<T: Eq> Eq for Seldom<T> where Self: Deref<Target = T> {}

/// For a type whose default is a constant, with that.
macro_rules! reads_as {
    ($type:ident $(<$a:lifetime>)?, $nothing:expr) => {
        impl $(<$a>)? Deref for Seldom<$type $(<$a>)?> {
            type Target = $type $(<$a>)?;

            fn deref(&self) -> &Self::Target {
                static NOTHING: $type = $nothing;
                self.0.as_deref().unwrap_or(&NOTHING)
            }
        }

        impl $(<$a>)? DerefMut for Seldom<$type $(<$a>)?> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                self.0.get_or_insert_default()
            }
        }
    };
}

/// What a device seldom has beside a name and edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoreOfDevice {
    /// Whether there are annotations, which need 0.6.0.
    pub annotated: bool,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

/// Edits beside device nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoreEdits<'a> {
    /// `KEY=VALUE`.
    pub env: Vec<Cow<'a, str>>,
    pub mounts: Vec<Mount<'a>>,
    pub hooks: Vec<Hook<'a>>,
    /// Host gids.
    pub additional_gids: Vec<u32>,
    /// Kinds of edits that are not read here, by name: `netDevices`, `intelRdt`, and what CDI does not know.
    pub others: Vec<String>,
}

/// What a node seldom has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoreOfNode<'a> {
    /// The path on the host, where it is another one: see [`super::DeviceNode::host`].
    pub host_path: Option<Cow<'a, str>>,
    /// `type`: `c`, `b`, `u` or `p`; None: as the host's node is.
    pub kind: Option<Cow<'a, str>>,
    /// None: as the host's node has it.
    pub major: Option<i64>,
    pub minor: Option<i64>,
    pub uid: Option<u32>,
    /// Keys that CDI does not know.
    pub unknown: Vec<String>,
}

reads_as!(MoreOfDevice, MoreOfDevice { annotated: false, unknown: Vec::new() });

reads_as!(
    MoreEdits<'a>,
    MoreEdits {
        env: Vec::new(),
        mounts: Vec::new(),
        hooks: Vec::new(),
        additional_gids: Vec::new(),
        others: Vec::new()
    }
);

reads_as!(
    MoreOfNode<'a>,
    MoreOfNode { host_path: None, kind: None, major: None, minor: None, uid: None, unknown: Vec::new() }
);
