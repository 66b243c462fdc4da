//! The state of a path.

use std::fmt;
use std::path::PathBuf;

use root::Attributes;
use serde::{Deserialize, Serialize};

use crate::apt::dpkg::Status;
use crate::digest::Digest;

/// The limit for files that are edited or replaced: the wrapper's program has a mebibyte, a configuration
/// less.
pub(crate) const LIMIT: usize = 64 << 20;

/// A state that is short enough for a receipt; the bytes of a file are kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    Absent,
    File {
        sha256: Digest,
        /// Permission bits.
        mode: u32,
        uid: u32,
        gid: u32,
    },
    Link {
        target: PathBuf,
    },
    Node {
        mode: u32,
        uid: u32,
        gid: u32,
    },
    /// A module of the kernel that is loaded.
    Loaded,
    /// A value of the kernel.
    Value {
        text: String,
    },
    /// A package, as far as dpkg has come with it.
    Package {
        version: String,
        status: Status,
    },
    /// A folder, fifo, socket or block device: nothing that is ever replaced.
    Other {
        what: String,
    },
}

/// A state as it was found. The digest of a file is computed only for a change: the wrapper's program has a
/// mebibyte, and an apply that changes nothing should not hash it.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    File { bytes: Vec<u8>, mode: u32, uid: u32, gid: u32 },
    Else(State),
}

impl Found {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::File { bytes, mode, uid, gid } => {
                State::File { sha256: Digest::of(bytes), mode: *mode, uid: *uid, gid: *gid }
            }
            Self::Else(state) => state.clone(),
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Else(State::Absent))
    }

    /// Empty for all but a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        if let Self::File { bytes, .. } = self { bytes } else { &[] }
    }
}

impl State {
    /// The state of a managed file after its write. Without an owner in the action, the program's user owns
    /// it.
    pub(crate) fn of_file(bytes: &[u8], attributes: Attributes) -> Self {
        let (uid, gid) = owner(attributes);
        Self::File { sha256: Digest::of(bytes), mode: attributes.mode, uid, gid }
    }

    /// The digest of a file's content.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        if let Self::File { sha256, .. } = self { Some(sha256) } else { None }
    }
}

/// The state in words for a person.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("nothing"),
            Self::File { mode, uid, gid, .. } => write!(f, "a file, mode {mode:04o}, owner {uid}:{gid}"),
            Self::Link { target } => write!(f, "a link to {}", target.display()),
            Self::Node { mode, uid, gid } => {
                write!(f, "a device node, mode {mode:04o}, owner {uid}:{gid}")
            }
            Self::Loaded => f.write_str("loaded"),
            Self::Value { text } => f.write_str(text),
            Self::Package { version, status: Status::Installed } => f.write_str(version),
            Self::Package { version, status } => write!(f, "{version}, {status}"),
            Self::Other { what } => f.write_str(what),
        }
    }
}

/// The owner of a written file: the wanted one, or the program's user.
pub(crate) fn owner(attributes: Attributes) -> (u32, u32) {
    attributes.owner.unwrap_or_else(|| (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()))
}
