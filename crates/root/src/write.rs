use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::Pid;

use crate::open::read_up_to;
use crate::{Error, Kind, Meta, Root, flags, xattr};

/// Mode and owner of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// `None` leaves it to whoever runs the program.
    pub owner: Option<(u32, u32)>,
}

/// Whether a write changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Bytes, mode and owner were those already: nothing was touched.
    Unchanged,
    Changed,
}

/// What a killed run leaves behind has this prefix, and its pid at the end.
const TEMPORARY: &str = ".rocworker-";

/// The mode of a file that is not whole yet: no editor leaves one that can be written and not read.
const HALF_WRITTEN: u32 = 0o200;

impl Root {
    /// Puts a file in place, whole: a temporary file beside it with its final mode and owner, fsync, rename,
    /// fsync of the folder. Not at all when bytes, mode and owner are already right. Missing folders of the path
    /// are made; a symbolic link anywhere on the way is refused, for somebody could have planted it.
    ///
    /// # Errors
    /// Says which step failed on which path; the old file is then still whole.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8], how: Attributes) -> Result<Written, Error> {
        self.put(path.as_ref(), bytes, how)
    }

    fn put(&self, path: &Path, bytes: &[u8], how: Attributes) -> Result<Written, Error> {
        let failed = |action, errno| Error::io(action, self.shown(path), errno);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed("write", Errno::EISDIR));
        };
        let folder = self.folder_for_writing(parent)?;
        if self.already_right(&folder, path, bytes, how)? {
            return Ok(Written::Unchanged);
        }
        self.check_flags(path)?;
        self.sweep(path);
        let temporary = temporary(name);
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        // A file that only others may read has nothing to be carried over by us.
        let replaced = openat(&folder, name, flags, Mode::empty()).ok();
        let result = self
            .fill(path, &folder, &temporary, bytes, how, replaced.as_ref())
            .and_then(|()| self.rename(path, &folder, &temporary, name))
            .and_then(|()| self.fsync(path, &folder));
        result.map_err(|errno| {
            // The temporary file is ours and unnamed elsewhere; if it cannot go either, the first error is the news.
            self.unlink(path, &folder, &temporary).ok();
            failed("write", errno)
        })?;
        Ok(Written::Changed)
    }

    /// Puts a symbolic link in place of what stands there, whole, as [`Root::write`] does a file.
    ///
    /// # Errors
    /// As [`Root::write`].
    pub fn write_link(&self, path: impl AsRef<Path>, target: &Path) -> Result<Written, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("write the link", self.shown(path), errno);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed(Errno::EISDIR));
        };
        let folder = self.folder_for_writing(parent)?;
        match self.lstat(path) {
            Ok(meta) if meta.kind == Kind::Link && self.read_link(path)? == target => {
                return Ok(Written::Unchanged);
            }
            Ok(meta) if !matches!(meta.kind, Kind::Link | Kind::Regular) => {
                return Err(Error::NotAFile { path: self.shown(path), found: meta.kind.described() });
            }
            _ => {}
        }
        self.check_flags(path)?;
        self.sweep(path);
        let temporary = temporary(name);
        self.unlink(path, &folder, &temporary).ok();
        let result = self
            .symlink(path, target, &folder, &temporary)
            .and_then(|()| self.rename(path, &folder, &temporary, name))
            .and_then(|()| self.fsync(path, &folder));
        result.map_err(|errno| {
            self.unlink(path, &folder, &temporary).ok();
            failed(errno)
        })?;
        Ok(Written::Changed)
    }

    /// Takes away what killed writes of a path left beside it: temporary files of it whose process is gone. What
    /// cannot be taken away hinders nothing.
    pub fn sweep(&self, path: impl AsRef<Path>) {
        self.sweep_those(path.as_ref(), |pid| kill(pid, None) == Err(Errno::ESRCH));
    }

    /// The same, and those whose process seems to live: after a boot its number is another's. Only for who keeps
    /// every other writer of the path out.
    pub fn sweep_all(&self, path: impl AsRef<Path>) {
        self.sweep_those(path.as_ref(), |_| true);
    }

    fn sweep_those(&self, path: &Path, is_left: impl Fn(Pid) -> bool) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(folder) = self.open_folder(parent) else { return };
        let prefix = prefix(name);
        for name in self.list(parent).unwrap_or_else(|_| Vec::new()) {
            let pid =
                name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|pid| std::str::from_utf8(pid).ok());
            let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { continue };
            if is_left(Pid::from_raw(pid)) {
                self.unlink(path, &folder, &name).ok();
            }
        }
    }

    /// Whether a killed run has left this file before it was whole.
    #[must_use]
    pub fn is_half_written(&self, left: impl AsRef<Path>) -> bool {
        self.lstat(left).is_ok_and(|meta| meta.kind == Kind::Regular && meta.mode == HALF_WRITTEN)
    }

    fn already_right(
        &self,
        folder: &OwnedFd,
        path: &Path,
        bytes: &[u8],
        how: Attributes,
    ) -> Result<bool, Error> {
        let Some(name) = path.file_name() else { return Ok(false) };
        let meta = match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Meta::from_stat(&stat),
            Err(Errno::ENOENT) => return Ok(false),
            Err(errno) => return Err(Error::io("stat", self.shown(path), errno)),
        };
        match meta.kind {
            Kind::Regular => {}
            other => return Err(Error::NotAFile { path: self.shown(path), found: other.described() }),
        }
        let owner_right = how.owner.is_none_or(|(uid, gid)| (meta.uid, meta.gid) == (uid, gid));
        if meta.mode != how.mode || !owner_right || usize::try_from(meta.len) != Ok(bytes.len()) {
            return Ok(false);
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(folder, name, flags, Mode::empty())
            .map_err(|errno| Error::io("open", self.shown(path), errno))?;
        match read_up_to(&file, bytes.len(), || self.shown(path)) {
            Ok(found) => Ok(found == bytes),
            Err(Error::TooLarge { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a file that nobody else can open before it is whole, with what the one that it will replace has: flags,
    /// access control list, extended attributes. Of its folder it takes nothing.
    pub(crate) fn fill(
        &self,
        path: &Path,
        folder: &OwnedFd,
        name: &OsStr,
        bytes: &[u8],
        how: Attributes,
        replaced: Option<&OwnedFd>,
    ) -> Result<(), Errno> {
        // A killed run with the same pid may have left one; it is ours by its name.
        self.unlink(path, folder, name).ok();
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        self.crash_point("openat", path);
        let file = openat(folder, name, flags, Mode::from_bits_truncate(HALF_WRITTEN))?;
        self.crash_point("fremovexattr", path);
        xattr::drop_acl(&file)?;
        if let Some(replaced) = replaced {
            self.crash_point("ioctl", path);
            flags::copy(replaced, &file)?;
        }
        self.write_all(path, &file, bytes)?;
        if let Some(owner) = how.owner {
            self.chown(path, &file, owner)?;
        }
        // After the owner, whose change takes a file's capabilities away (capabilities(7)); before the mode, which an
        // access control list changes.
        if let Some(replaced) = replaced {
            self.crash_point("fsetxattr", path);
            xattr::copy(replaced, &file)?;
        }
        self.chmod(path, &file, how.mode)?;
        self.fsync(path, &file)
    }
}

/// The name under which a file is written before it is renamed.
pub(crate) fn temporary(name: &OsStr) -> OsString {
    let mut temporary = prefix(name);
    temporary.push(std::process::id().to_string());
    temporary
}

/// What each temporary name of a file begins with; the rest is a pid.
pub(crate) fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(TEMPORARY);
    prefix.push(name);
    prefix.push(".");
    prefix
}
