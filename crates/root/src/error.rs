use std::path::PathBuf;

use nix::errno::Errno;

/// What was attempted, on which path, and the answer. Paths are spelt as at a shell of this machine.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The kernel refused a system call.
    #[error("cannot {action} {}: {}{}", path.display(), errno.desc(), remedy(*errno))]
    Io {
        /// The verb: `open`, `read`, `list`, …
        action: &'static str,
        path: PathBuf,
        errno: Errno,
    },
    /// The kernel did not take a value.
    #[error("{} does not take {value}: {}", path.display(), errno.desc())]
    Value { path: PathBuf, value: String, errno: Errno },
    /// More bytes than the reader is prepared to take.
    #[error("{} is larger than {limit} bytes: that is not what belongs there", path.display())]
    TooLarge { path: PathBuf, limit: usize },
    /// Bytes that are not UTF-8 where text belongs.
    #[error("{} is not text", path.display())]
    NotText { path: PathBuf },
    /// A folder, fifo, device or link where a regular file belongs.
    #[error("{} is {found}, not a regular file: move it out of the way", path.display())]
    NotAFile { path: PathBuf, found: &'static str },
    /// Another process holds a lock.
    #[error("{} is locked: another rocworker has been at work for {} s; wait for it, or see who holds it: fuser -v {}", path.display(), waited.as_secs(), path.display())]
    Locked { path: PathBuf, waited: std::time::Duration },
    /// A part of the way to a written path is no folder, or the path's end is of another kind.
    #[error("nothing is written to {}: {problem}", path.display())]
    Folder { path: PathBuf, problem: &'static str },
    /// An attribute that keeps a file from being believed or replaced, and a command against it, which takes the path.
    #[error("{} {problem} {}", path.display(), path.display())]
    Attribute { path: PathBuf, problem: String },
    /// The file at the path is not the one that was to be replaced.
    #[error("{} was changed at the same moment, and keeps that change: run this again", path.display())]
    Changed { path: PathBuf },
    /// An earlier read of this path has not come back.
    // Without the time, so that a log can know the sentence again.
    #[error("{} does not answer: look for the driver's messages: journalctl -k", path.display())]
    NoAnswer { path: PathBuf, waited: std::time::Duration },
    /// The read was not tried: too many processes or threads already wait for reads that hang.
    #[error("{} was not read: too many reads have not come back; look for the driver's messages: journalctl -k", path.display())]
    NotAsked { path: PathBuf },
    /// The record of a capture's nodes cannot be believed.
    #[error("{}: {problem}", path.display())]
    Capture { path: PathBuf, problem: String },
}

/// rustix's name for an error of the kernel, as nix has it.
#[cfg(feature = "write")]
pub(crate) fn of_rustix(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// The remedy, where the kernel's answer implies one.
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

    /// The kernel's number for the error.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { errno, .. } | Self::Value { errno, .. } => Some(*errno as i32),
            _ => None,
        }
    }

    /// Whether nothing was at the path.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::ENOENT, .. })
    }

    /// Whether the kernel has no such value: the driver does not support it (EOPNOTSUPP, ENODATA), or the
    /// device went while the file was open (ENODEV).
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::EOPNOTSUPP | Errno::ENODATA | Errno::ENODEV, .. })
    }

    /// Whether the kernel called the request invalid (EINVAL).
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::EINVAL, .. })
    }

    /// Whether the kernel refused for lack of a permission (EACCES, EPERM).
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::EACCES | Errno::EPERM, .. })
    }

    /// Whether a driver refused (EPERM), rather than the file's mode (EACCES). KFD answers EPERM for a GPU
    /// that the device cgroup hides (`kfd_devcgroup_check_permission` in kfd_topology.c).
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(self, Self::Io { errno: Errno::EPERM, .. })
    }
}

/// The value that was read; `None` where nothing is at the path.
///
/// # Errors
/// Any other error of the read.
pub fn if_there<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some),
    }
}
