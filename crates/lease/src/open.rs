//! Opens files first and checks them then, so that no other program can swap them.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Why a file was not taken.
#[derive(Debug)]
pub enum Error {
    /// Opening or reading failed.
    Io(io::Error),
    /// The file is no regular one.
    NotRegular,
    /// The file is longer than what is read of such a file.
    TooLong { limit: u64 },
    /// A user other than the file's expected owner could have written it; the text says how.
    Foreign(String),
    /// The file is not UTF-8.
    NotText,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(_) if self.is_link() => f.write_str("is a symbolic link"),
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::NotRegular => f.write_str("is no regular file"),
            Self::TooLong { limit } => write!(f, "is longer than {limit} bytes"),
            Self::Foreign(how) => write!(f, "is not root's alone: {how}"),
            Self::NotText => f.write_str("is not UTF-8 text"),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Error {
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::NotFound)
    }

    /// A link is where a file was to be.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Io(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()))
    }
}

/// Opens a regular file, never waiting for a fifo.
///
/// # Errors
/// The file cannot be opened, or is not a regular one.
pub fn regular(path: &Path, flags: OFlags) -> Result<(File, Metadata), Error> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(Error::NotRegular) }
}

/// Reads a whole file of at most `limit` bytes that was opened with its metadata.
///
/// # Errors
/// The file cannot be read, or is longer.
pub fn bytes(file: &File, metadata: &Metadata, limit: u64) -> Result<Vec<u8>, Error> {
    if metadata.len() > limit {
        return Err(Error::TooLong { limit });
    }
    // With room for one byte more than the file has, the last read finds the end without growing the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).map_or(0, |len| len + 1));
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(len) if len <= limit => Ok(bytes),
        _ => Err(Error::TooLong { limit }),
    }
}

/// Reads a text that only its owner can have written: a regular file of `owner`'s, which neither its group
/// nor others may write. On a machine that is user 0; inside a user namespace, that namespace's root.
///
/// # Errors
/// The file cannot be read, is no text, or others can have written it.
pub fn trusted_text(path: &Path, limit: u64, owner: u32) -> Result<String, Error> {
    let (file, metadata) = regular(path, OFlags::NOFOLLOW)?;
    check_who_may_write(metadata.uid(), metadata.mode(), owner)?;
    String::from_utf8(bytes(&file, &metadata, limit)?).map_err(|_| Error::NotText)
}

/// Whether both describe one file, under whatever names.
pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The owner, and no write bit for group or others.
pub fn check_who_may_write(uid: u32, mode: u32, owner: u32) -> Result<(), Error> {
    if uid != owner {
        return Err(Error::Foreign(format!("its owner is user {uid}")));
    }
    if mode & 0o022 != 0 {
        return Err(Error::Foreign(format!("its mode {:04o} lets others write", mode & 0o7777)));
    }
    Ok(())
}

/// The sentence that says what is not as it must be below `/run/rocworker`: what it is, as a person calls it, where, the
/// kernel's answer and what to do. `attempt` is what cannot be done to it.
pub fn failed(what: &str, path: &Path, attempt: &str, error: impl Into<Error>) -> String {
    let error = error.into();
    let problem = match &error {
        Error::Io(io) if io.kind() == ErrorKind::NotADirectory => {
            "is no folder, or a symbolic link".to_owned()
        }
        Error::Io(io) if !error.is_link() => format!("cannot be {attempt}: {io}"),
        error => error.to_string(),
    };
    format!("{what} {} {problem}{}", path.display(), remedy(&error))
}

/// The end of the sentence.
fn remedy(error: &Error) -> &'static str {
    match error {
        error if error.is_link() => ": remove it",
        Error::Io(error) => match error.kind() {
            ErrorKind::NotADirectory | ErrorKind::IsADirectory => ": remove it",
            ErrorKind::InvalidFilename => ": give the container a shorter id, or runc a shorter --root",
            // What the kernel says of a socket that is to be opened as a file.
            _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => ": remove it",
            _ => remedy_of_write(error),
        },
        Error::NotRegular => ": remove it",
        Error::Foreign(_) => ": make it so, or remove it",
        Error::TooLong { .. } | Error::NotText => "",
    }
}

/// What to do where a file could not be written, as the end of a sentence.
pub fn remedy_of_write(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull => ": make room on that file system",
        ErrorKind::ReadOnlyFilesystem => ": mount that file system for writing",
        ErrorKind::FileTooLarge => ": raise LimitFSIZE= of the engine's service",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_text_is_read_whole_up_to_its_limit() {
        let place = tempfile::tempdir().unwrap();
        let owner = place.path().metadata().unwrap().uid();
        let path = place.path().join("text");
        for length in [0, 1, 4095, 4096, 4097, 10_000] {
            std::fs::write(&path, "x".repeat(length)).unwrap();
            let read = trusted_text(&path, 10_000, owner).unwrap();
            assert_eq!(read.len(), length);
        }
        assert!(matches!(trusted_text(&path, 9_999, owner), Err(Error::TooLong { limit: 9_999 })));
        assert!(matches!(trusted_text(&path, 10_000, owner + 1), Err(Error::Foreign(_))));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(trusted_text(&path, 9, owner), Err(Error::NotText)));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o662)).unwrap();
        assert!(matches!(trusted_text(&path, 9, owner), Err(Error::Foreign(_))));
        // The kernel says that it has no byte, and gives some: as a file that grows.
        let growing = trusted_text(Path::new("/proc/self/maps"), 1 << 20, owner);
        assert!(matches!(growing, Ok(text) if text.lines().count() > 10));
        assert!(matches!(trusted_text(Path::new("/proc/self/maps"), 100, owner), Err(Error::TooLong { .. })));
    }
}
