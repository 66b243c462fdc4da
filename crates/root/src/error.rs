use std::path::PathBuf;

use nix::errno::Errno;

/// What was attempted, on which path, and what came back. Paths are as a person at a shell would name them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("cannot {action} {}: {}{}", path.display(), errno.desc(), remedy(*errno))]
    Io {
        /// The verb: `open`, `read`, `list`, …
        action: &'static str,
        path: PathBuf,
        errno: Errno,
    },
    /// More bytes than the reader is prepared to take.
    #[error("{} is larger than {limit} bytes: that is not what belongs there", path.display())]
    TooLarge { path: PathBuf, limit: usize },
    /// Bytes that are not UTF-8 where text belongs.
    #[error("{} is not text", path.display())]
    NotText { path: PathBuf },
    /// A folder, fifo, device or link where a regular file belongs.
    #[error("{} is {found}, not a regular file: move it out of the way", path.display())]
    NotAFile { path: PathBuf, found: &'static str },
    /// Something else where a device node belongs.
    #[error("{} is {found}, not a character device", path.display())]
    NotANode { path: PathBuf, found: &'static str },
    /// Another process holds a lock.
    #[error("{} is locked: another rocworker has been at work for {} s; wait for it, or see who holds it: fuser -v {}", path.display(), waited.as_secs(), path.display())]
    Locked { path: PathBuf, waited: std::time::Duration },
    /// The way to a file that would be written is not folders all along.
    #[error("nothing is written to {}: {problem}", path.display())]
    Folder { path: PathBuf, problem: &'static str },
    /// Somebody else's file where only root's is believed.
    #[error("{} belongs to uid {uid}, and only root's is believed: chown root {}", path.display(), path.display())]
    Owner { path: PathBuf, uid: u32 },
    /// A file that others could have written.
    #[error("{} can be written by others (mode {mode:04o}): chmod go-w {}", path.display(), path.display())]
    Writable { path: PathBuf, mode: u32 },
    /// chattr(1) keeps a file, or what is in a folder, from being replaced.
    #[error("{} is {word}, so that nothing is changed there: chattr -{letter} {}", path.display(), path.display())]
    Flagged { path: PathBuf, word: &'static str, letter: char },
    /// Another file than the one that was to be replaced.
    #[error("{} was changed by somebody at the same moment, and stays as they have it: run this again", path.display())]
    Changed { path: PathBuf },
    /// The record of a capture's nodes cannot be believed.
    #[error("{}: {problem}", path.display())]
    Capture { path: PathBuf, problem: String },
}

/// What to do about it, where the kernel's answer tells.
fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => ": make room on that file system",
        Errno::EROFS => ": mount that file system for writing",
        Errno::EBUSY => ": something is mounted there, umount it",
        Errno::ENOTDIR => ": something on the way to it is no folder, move that out of the way",
        _ => "",
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, path: PathBuf, errno: Errno) -> Self {
        Self::Io { action, path, errno }
    }

    /// The same error under the verb of what the caller asked for.
    pub(crate) fn during(self, verb: &'static str) -> Self {
        match self {
            Self::Io { path, errno, .. } => Self::Io { action: verb, path, errno },
            other => other,
        }
    }

    /// Whether nothing stood at the path.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::ENOENT, .. })
    }

    /// Whether the kernel refused for want of a right (EACCES, EPERM). KFD answers so for a GPU that the
    /// device cgroup hides (`kfd_devcgroup_check_permission` in kfd_topology.c).
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::EACCES | Errno::EPERM, .. })
    }
}

/// What was read; `None` where nothing is at the path.
///
/// # Errors
/// Every other error of the read.
pub fn if_there<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some),
    }
}
