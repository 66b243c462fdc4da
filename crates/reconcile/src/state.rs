//! What stands at a path.

use std::fmt;
use std::path::{Path, PathBuf};

use root::{Attributes, Kind, Meta, Root};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::dpkg::{self, Database, Status};
use crate::{module, package};

/// More than any file that is edited or replaced: the wrapper's program has a mebibyte, a configuration less.
pub(crate) const LIMIT: usize = 64 << 20;

/// What stands at a path, in so many words that a receipt can hold it; the bytes of a file stand elsewhere.
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

/// The SHA-256 of a file's bytes, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(&Sha256::digest(bytes))
    }

    /// As `sha256sum` prints it; `None` of what is no SHA-256.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_ascii_lowercase()))
    }

    pub(crate) fn from_hash(hash: &[u8]) -> Self {
        Self(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What was found at a path. The digest of a file is worked out only when something is to be done about it: the
/// wrapper's program has a mebibyte, and an apply that changes nothing should not hash it.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    File { bytes: Vec<u8>, mode: u32, uid: u32, gid: u32 },
    Else(State),
}

/// Why it cannot be told what stands there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unseen {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error(transparent)]
    Dpkg(#[from] dpkg::Error),
}

impl Found {
    /// What stands at a path, a link at its end not followed; of a package, what dpkg knows; of a module, what the kernel
    /// says.
    pub(crate) fn look(root: &Root, path: &Path) -> Result<Self, Unseen> {
        if let Some(name) = module::named(path) {
            let is_loaded = module::is_loaded(root, name);
            return Ok(Self::Else(if is_loaded { State::Loaded } else { State::Absent }));
        }
        match package::named(path) {
            Some(name) => Ok(Self::Else(State::of_package(&Database::read(root)?, name)?)),
            None => Ok(Self::look_at_file(root, path)?),
        }
    }

    fn look_at_file(root: &Root, path: &Path) -> Result<Self, root::Error> {
        // Before the path itself: nothing is compared with what a planted link leads to.
        root.check_way(path)?;
        let meta = match root.lstat(path) {
            Ok(meta) => meta,
            Err(error) if error.is_not_found() => return Ok(Self::Else(State::Absent)),
            Err(error) => return Err(error),
        };
        let Meta { mode, uid, gid, .. } = meta;
        Ok(match meta.kind {
            Kind::Regular => match root.read(path, LIMIT) {
                Ok(bytes) => Self::File { bytes, mode, uid, gid },
                // Somebody has taken it away in between.
                Err(error) if error.is_not_found() => Self::Else(State::Absent),
                Err(error) => return Err(error),
            },
            Kind::Link => Self::Else(State::Link { target: root.read_link(path)? }),
            Kind::Character { .. } => Self::Else(State::Node { mode, uid, gid }),
            other => Self::Else(State::Other { what: other.described().to_owned() }),
        })
    }

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
    pub(crate) fn of_package(database: &Database, name: &str) -> Result<Self, dpkg::Error> {
        let there = database.there(name)?;
        Ok(there.map_or(Self::Absent, |there| Self::Package { version: there.version, status: there.status }))
    }

    /// What a file of ours will be once it is written: `owner` is what the action says, or who runs this.
    pub(crate) fn of_file(bytes: &[u8], attributes: Attributes) -> Self {
        let (uid, gid) = owner(attributes);
        Self::File { sha256: Digest::of(bytes), mode: attributes.mode, uid, gid }
    }

    pub(crate) fn digest(&self) -> Option<&Digest> {
        if let Self::File { sha256, .. } = self { Some(sha256) } else { None }
    }
}

/// As a person reads it.
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
            Self::Package { version, status: Status::Installed } => f.write_str(version),
            Self::Package { version, status } => write!(f, "{version}, {}", status.word()),
            Self::Other { what } => f.write_str(what),
        }
    }
}

/// Who will own a file that is written: as it is wanted, or who runs this.
pub(crate) fn owner(attributes: Attributes) -> (u32, u32) {
    attributes.owner.unwrap_or_else(runner)
}

fn runner() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}
