//! A path that is written, and the name beside it under which a new file becomes whole.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::symlinkat;
use rustix::fs::RenameFlags;

use crate::open::open_in;
use crate::{Error, Kind, Root, flags, xattr};

/// Mode and owner of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// `None` leaves it to whoever runs the program.
    pub owner: Option<(u32, u32)>,
}

/// What is put at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum New<'a> {
    File {
        bytes: &'a [u8],
        how: Attributes,
    },
    /// A symbolic link, as it is written.
    Link(&'a Path),
    Nothing,
}

/// What a killed run leaves behind has this prefix, and its pid at the end.
const TEMPORARY: &str = ".rocworker-";

/// The mode of a file that is not whole yet: no editor leaves one that can be written and not read.
const HALF_WRITTEN: u32 = 0o200;

/// A path that is written, and the name beside it under which a new file becomes whole.
pub(crate) struct Slot<'a> {
    pub(crate) root: &'a Root,
    pub(crate) path: &'a Path,
    pub(crate) folder: OwnedFd,
    pub(crate) name: &'a OsStr,
    pub(crate) temporary: OsString,
}

impl Root {
    /// `folder`: that of the path.
    pub(crate) fn slot<'a>(&'a self, path: &'a Path, folder: OwnedFd) -> Result<Slot<'a>, Error> {
        let (_, name) = self.split(path, "write")?;
        let mut temporary = prefix(name);
        temporary.push(std::process::id().to_string());
        Ok(Slot { root: self, path, folder, name, temporary })
    }

    /// Files beside a path that a killed run has left: half of a new one, or an old one that it had displaced.
    #[must_use]
    pub fn left_beside(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        self.beside(path.as_ref(), is_pid)
    }

    /// Whether a killed run has left this file before it was whole.
    #[must_use]
    pub fn is_half_written(&self, left: impl AsRef<Path>) -> bool {
        self.lstat(left).is_ok_and(|meta| meta.kind == Kind::Regular && meta.mode == HALF_WRITTEN)
    }

    /// Files beside a path whose names are its temporary ones up to the pid; `is_it` looks at what follows.
    pub(crate) fn beside(&self, path: &Path, is_it: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
        let prefix = prefix(name);
        let is_beside = |name: &OsStr| name.as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(&is_it);
        let names = self.list(parent).unwrap_or_default();
        names.into_iter().filter(|name| is_beside(name)).map(|name| parent.join(name)).collect()
    }
}

impl Slot<'_> {
    /// Makes the new file or link under the temporary name.
    pub(crate) fn prepare(&self, new: New<'_>) -> Result<(), Errno> {
        // A killed run with the same pid may have left one.
        self.drop_temporary().ok();
        match new {
            New::Nothing => Ok(()),
            New::Link(target) => {
                self.root.crash_point("symlinkat", self.path);
                symlinkat(target, &self.folder, self.temporary.as_os_str())
            }
            New::File { bytes, how } => self.fill(bytes, how),
        }
    }

    /// Makes a file that no other user can open before it is whole, with what the one that it will replace has: flags,
    /// access control list, extended attributes. Of its folder it takes nothing.
    fn fill(&self, bytes: &[u8], how: Attributes) -> Result<(), Errno> {
        let Self { root, path, folder, .. } = self;
        // A file that only others may read has no attributes that this user could carry over.
        let replaced = open_in(folder, self.name).ok();
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        root.crash_point("openat", path);
        let mode = Mode::from_bits_truncate(HALF_WRITTEN);
        let file = openat(folder, self.temporary.as_os_str(), flags, mode)?;
        root.crash_point("fremovexattr", path);
        xattr::drop_acl(&file)?;
        if let Some(replaced) = &replaced {
            root.crash_point("ioctl", path);
            flags::copy(replaced, &file)?;
        }
        root.write_all(path, &file, bytes)?;
        if let Some(owner) = how.owner {
            root.chown(path, &file, owner)?;
        }
        // After the owner, whose change takes a file's capabilities away (capabilities(7)); before the mode, which an
        // access control list changes.
        if let Some(replaced) = &replaced {
            root.crash_point("fsetxattr", path);
            xattr::copy(replaced, &file)?;
        }
        root.chmod(path, &file, how.mode)?;
        root.fsync(path, &file)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr, how: RenameFlags) -> Result<(), Errno> {
        self.root.rename(self.path, (&self.folder, from), (&self.folder, to), how)
    }

    pub(crate) fn drop_temporary(&self) -> Result<(), Errno> {
        self.root.unlink(self.path, &self.folder, &self.temporary)
    }

    pub(crate) fn failed(&self, verb: &'static str, errno: Errno) -> Error {
        Error::io(verb, self.root.shown(self.path), errno)
    }
}

/// What each temporary name of a file begins with; the rest is a pid.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(TEMPORARY);
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Whether the rest of a temporary name is whole: a pid.
pub(crate) fn is_pid(rest: &[u8]) -> bool {
    !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)
}
