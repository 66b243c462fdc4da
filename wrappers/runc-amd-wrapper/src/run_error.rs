//! What went wrong below `/run/rocworker`, as a sentence: what was attempted, where, the kernel's answer, and
//! what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::open;

/// What was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Make,
    Open,
    Read,
    Write,
    /// Renaming the whole file into its place.
    Replace,
    Remove,
    Lock,
    /// Taking away the permissions of others.
    Tighten,
}

/// A folder, file or lock that is not as it must be.
#[derive(Debug)]
pub enum Error {
    File {
        /// What is at the path, as a person calls it: `the record`.
        what: &'static str,
        path: PathBuf,
        attempt: Attempt,
        error: open::Error,
    },
    /// The lock was not to be had in time; the rest of the sentence.
    Held { path: PathBuf, rest: String },
}

impl Error {
    pub(crate) fn new(what: &'static str, path: &Path, attempt: Attempt, error: open::Error) -> Self {
        Self::File { what, path: path.to_owned(), attempt, error }
    }

    pub(crate) fn io(what: &'static str, path: &Path, attempt: Attempt) -> impl Fn(io::Error) -> Self {
        move |error| Self::new(what, path, attempt, open::Error::Io(error))
    }
}

impl Attempt {
    /// Behind `cannot be`.
    fn done(self) -> &'static str {
        match self {
            Self::Make => "made",
            Self::Open => "opened",
            Self::Read => "read",
            Self::Write => "written",
            Self::Replace => "put in its place",
            Self::Remove => "removed",
            Self::Lock => "locked",
            Self::Tighten => "closed to others",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { what, path, attempt, error } => {
                write!(f, "{what} {} ", path.display())?;
                match error {
                    open::Error::Io(io) if io.kind() == io::ErrorKind::NotADirectory => {
                        f.write_str("is no folder, or a symbolic link")?;
                    }
                    open::Error::Io(io) if !error.is_link() => {
                        write!(f, "cannot be {}: {io}", attempt.done())?;
                    }
                    error => write!(f, "{error}")?,
                }
                f.write_str(remedy(error))
            }
            Self::Held { path, rest } => write!(f, "the lock {} {rest}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// The end of the sentence.
fn remedy(error: &open::Error) -> &'static str {
    match error {
        error if error.is_link() => ": remove it",
        open::Error::Io(error) => match error.kind() {
            io::ErrorKind::StorageFull => ": make room on that file system",
            io::ErrorKind::ReadOnlyFilesystem => ": mount that file system for writing",
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => ": remove it",
            io::ErrorKind::InvalidFilename => ": give the container a shorter id, or runc a shorter --root",
            // What the kernel says of a socket that is to be opened as a file.
            _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => ": remove it",
            _ => "",
        },
        open::Error::NotRegular => ": remove it",
        open::Error::Foreign(_) => ": make it so, or remove it",
        open::Error::TooLong { .. } | open::Error::NotText => "",
    }
}
