//! Files of which it is checked what they are after they are open, so that nobody can swap them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The kernel's `O_NOFOLLOW`, `O_DIRECTORY` and `O_NONBLOCK` (include/uapi/asm-generic/fcntl.h; the Arm
/// and PowerPC families have the first two elsewhere).
#[cfg(any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64"))]
mod flag {
    pub(super) const NOFOLLOW: i32 = 0o10_0000;
    pub(super) const DIRECTORY: i32 = 0o4_0000;
    pub(super) const NONBLOCK: i32 = 0o4000;
}
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64")))]
mod flag {
    pub(super) const NOFOLLOW: i32 = 0o40_0000;
    pub(super) const DIRECTORY: i32 = 0o20_0000;
    pub(super) const NONBLOCK: i32 = 0o4000;
}

/// The kernel's answer to `O_NOFOLLOW` on a link.
const ELOOP: i32 = 40;

/// Why a file was not taken.
#[derive(Debug)]
pub enum Error {
    /// Opening or reading failed.
    Io(io::Error),
    /// It is no regular file.
    NotRegular,
    /// It is longer than what is read of such a file.
    TooLong { limit: u64 },
    /// Somebody else than its owner-to-be could have written it; with how.
    Foreign(String),
    /// It is not UTF-8.
    NotText,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) if error.raw_os_error() == Some(ELOOP) => f.write_str("is a symbolic link"),
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::NotRegular => f.write_str("is no regular file"),
            Self::TooLong { limit } => write!(f, "is longer than {limit} bytes"),
            Self::Foreign(how) => write!(f, "is not root's alone: {how}"),
            Self::NotText => f.write_str("is not UTF-8 text"),
        }
    }
}

impl Error {
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Somebody put a link where a file was to be.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Io(error) if error.raw_os_error() == Some(ELOOP))
    }
}

/// Opens a regular file for reading, never through a link in its last place, never waiting for a fifo.
pub fn regular(path: &Path) -> Result<(File, Metadata), Error> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flag::NOFOLLOW | flag::NONBLOCK)
        .open(path)
        .map_err(Error::Io)?;
    checked_regular(file)
}

/// The same through a link, as runc would open it: to be looked at only.
pub fn regular_behind_links(path: &Path) -> Result<(File, Metadata), Error> {
    let file = OpenOptions::new().read(true).custom_flags(flag::NONBLOCK).open(path).map_err(Error::Io)?;
    checked_regular(file)
}

/// The same for reading and writing in place.
pub fn regular_for_writing(path: &Path) -> Result<(File, Metadata), Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flag::NOFOLLOW | flag::NONBLOCK)
        .open(path)
        .map_err(Error::Io)?;
    checked_regular(file)
}

/// Opens a folder that is no link.
pub fn folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flag::NOFOLLOW | flag::DIRECTORY | flag::NONBLOCK).open(path)
}

fn checked_regular(file: File) -> Result<(File, Metadata), Error> {
    let metadata = file.metadata().map_err(Error::Io)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(Error::NotRegular) }
}

/// Reads a whole file of at most `limit` bytes that was opened with its metadata.
pub fn bytes(file: &File, metadata: &Metadata, limit: u64) -> Result<Vec<u8>, Error> {
    if metadata.len() > limit {
        return Err(Error::TooLong { limit });
    }
    // One byte more than the file has: the last read then finds its end without growing the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).map_or(0, |len| len + 1));
    file.take(limit + 1).read_to_end(&mut bytes).map_err(Error::Io)?;
    match u64::try_from(bytes.len()) {
        Ok(len) if len <= limit => Ok(bytes),
        _ => Err(Error::TooLong { limit }),
    }
}

/// Reads a text that only its owner can have written: a regular file of `owner`'s, which neither its group
/// nor others may write. On a machine that is user 0; inside a user namespace, that namespace's root.
pub fn trusted_text(path: &Path, limit: u64, owner: u32) -> Result<String, Error> {
    let (file, metadata) = regular(path)?;
    check_owner(&metadata, owner)?;
    String::from_utf8(bytes(&file, &metadata, limit)?).map_err(|_| Error::NotText)
}

/// The owner, and no write bit for group or others.
pub fn check_owner(metadata: &Metadata, owner: u32) -> Result<(), Error> {
    if metadata.uid() != owner {
        return Err(Error::Foreign(format!("its owner is user {}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(Error::Foreign(format!("its mode {:04o} lets others write", metadata.mode() & 0o7777)));
    }
    Ok(())
}
