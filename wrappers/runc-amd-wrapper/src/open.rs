//! Files of which it is checked what they are after they are open, so that nobody can swap them.

use std::ffi::{CStr, CString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::sys::{self, Begin, Errno, Fd, Stat, flag};

/// Read at once of a file that grows meanwhile.
const GROWN: usize = 4096;

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
        // By its number: the table of kinds stands on a page that nothing else needs.
        matches!(self, Self::Io(error) if error.raw_os_error() == Some(Errno::NOT_FOUND.0))
    }

    /// Somebody put a link where a file was to be.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Io(error) if error.raw_os_error() == Some(ELOOP))
    }
}

/// Opens a regular file for reading, never waiting for a fifo. Through a link, as runc would open it: to be looked at
/// only.
pub fn regular_behind_links(path: &Path) -> Result<(File, Metadata), Error> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flag::NONBLOCK.cast_signed())
        .open(path)
        .map_err(Error::Io)?;
    checked_regular(file)
}

/// The same for reading and writing in place, never through a link in its last place.
pub fn regular_for_writing(path: &Path) -> Result<(File, Metadata), Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((flag::NOFOLLOW | flag::NONBLOCK).cast_signed())
        .open(path)
        .map_err(Error::Io)?;
    checked_regular(file)
}

/// The file with its metadata, where it is a regular one.
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
    Trusted::at(path, owner)?.text(limit)
}

/// The same at a path that begins in a folder.
pub(crate) fn trusted_text_from(
    from: Begin<'_>,
    path: &CStr,
    limit: u64,
    owner: u32,
) -> Result<String, Error> {
    Trusted::from(from, path, owner)?.text(limit)
}

/// A file of which [`trusted_text`] would read.
#[derive(Debug)]
pub(crate) struct Trusted {
    file: Fd,
    found: Stat,
}

impl Trusted {
    pub(crate) fn at(path: &Path, owner: u32) -> Result<Self, Error> {
        let name = c_string(path).map_err(|errno| Error::Io(errno.into()))?;
        Self::from(Begin::WorkingFolder, &name, owner)
    }

    fn from(from: Begin<'_>, path: &CStr, owner: u32) -> Result<Self, Error> {
        let (file, found) = regular_from(from, path)?;
        check_who_may_write(found.uid, found.mode, owner)?;
        Ok(Self { file, found })
    }

    /// In bytes, as it was when it was opened.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.found.size).unwrap_or(usize::MAX)
    }

    pub(crate) fn text(self, limit: u64) -> Result<String, Error> {
        allocation::into_text(whole(&self.file, &self.found, limit)?).ok_or(Error::NotText)
    }
}

/// Opens a regular file for reading, never through a link in its last place, never waiting for a fifo; with the
/// kernel's calls alone, as few as there can be: every create reads some such files.
pub(crate) fn regular_from(from: Begin<'_>, path: &CStr) -> Result<(Fd, Stat), Error> {
    let io = |errno: Errno| Error::Io(errno.into());
    let file = sys::open_from(from, path, flag::NOFOLLOW | flag::NONBLOCK, 0).map_err(io)?;
    let found = sys::stat_of(&file).map_err(io)?;
    if found.is_regular() { Ok((file, found)) } else { Err(Error::NotRegular) }
}

/// Reads a whole file of at most `limit` bytes, of which nothing has been read.
pub(crate) fn whole(file: &Fd, found: &Stat, limit: u64) -> Result<Vec<u8>, Error> {
    let too_long = |_| Error::TooLong { limit };
    let limit_len = usize::try_from(limit).map_err(too_long)?;
    let size = usize::try_from(found.size).map_err(too_long)?;
    if size > limit_len {
        return Err(Error::TooLong { limit });
    }
    let mut bytes = Vec::with_capacity(size + 1);
    loop {
        // One byte more than the file had: what comes short of that has come to its end.
        let most = if bytes.len() <= size { size + 1 - bytes.len() } else { GROWN };
        let read = sys::read(file, &mut bytes, most).map_err(|errno| Error::Io(errno.into()))?;
        if bytes.len() > limit_len {
            return Err(Error::TooLong { limit });
        }
        if read == 0 || bytes.len() == size {
            return Ok(bytes);
        }
    }
}

/// A path for the kernel's own calls, which takes none with a NUL in it.
pub(crate) fn c_string(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVALID)
}

/// The owner, and no write bit for group or others.
pub(crate) fn check_who_may_write(uid: u32, mode: u32, owner: u32) -> Result<(), Error> {
    if uid != owner {
        return Err(Error::Foreign(format!("its owner is user {uid}")));
    }
    if mode & 0o022 != 0 {
        return Err(Error::Foreign(format!("its mode {:04o} lets others write", mode & 0o7777)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

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
