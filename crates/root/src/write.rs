use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, fchmod, fstatat};
use nix::unistd::{Gid, Pid, Uid, UnlinkatFlags, fchown, fsync, symlinkat, unlinkat, write};

use crate::open::read_up_to;
use crate::xattr;
use crate::{Error, Kind, Meta, Root};

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

impl Root {
    /// Puts a file in place, whole: a temporary file beside it with its final mode and owner, fsync, rename,
    /// fsync of the folder. Not at all when bytes, mode and owner are already right. Missing folders of the path
    /// are made; a symbolic link anywhere on the way is refused, for somebody could have planted it.
    ///
    /// # Errors
    /// Says which step failed on which path; the old file is then still whole.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8], how: Attributes) -> Result<Written, Error> {
        self.put(path.as_ref(), bytes, how, false)
    }

    /// Puts a file in place of the symbolic link that stands there, as [`Root::write`] does in place of a file: at no
    /// time is nothing there. What the link points at stays as it is.
    ///
    /// # Errors
    /// As [`Root::write`].
    pub fn replace_link(
        &self,
        path: impl AsRef<Path>,
        bytes: &[u8],
        how: Attributes,
    ) -> Result<Written, Error> {
        self.put(path.as_ref(), bytes, how, true)
    }

    fn put(&self, path: &Path, bytes: &[u8], how: Attributes, over_link: bool) -> Result<Written, Error> {
        let failed = |action, errno| Error::io(action, self.shown(path), errno);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed("write", Errno::EISDIR));
        };
        let folder = self.folder_for_writing(parent)?;
        let is_link = || self.lstat(path).is_ok_and(|meta| meta.kind == Kind::Link);
        if !(over_link && is_link()) && self.already_right(&folder, path, bytes, how)? {
            return Ok(Written::Unchanged);
        }
        self.sweep(path);
        let temporary = temporary(name);
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        // A file that only others may read has nothing to be carried over by us.
        let replaced = openat(&folder, name, flags, Mode::empty()).ok();
        let result = fill(&folder, &temporary, bytes, how, replaced.as_ref())
            .and_then(|()| renameat(&folder, temporary.as_os_str(), &folder, name))
            .and_then(|()| fsync(&folder));
        result.map_err(|errno| {
            // The temporary file is ours and unnamed elsewhere; if it cannot go either, the first error is the news.
            unlinkat(&folder, temporary.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
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
        self.sweep(path);
        let temporary = temporary(name);
        unlinkat(&folder, temporary.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
        let result = symlinkat(target, &folder, temporary.as_os_str())
            .and_then(|()| renameat(&folder, temporary.as_os_str(), &folder, name))
            .and_then(|()| fsync(&folder));
        result.map_err(|errno| {
            unlinkat(&folder, temporary.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
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
        let prefix = [TEMPORARY.as_bytes(), name.as_bytes(), b"."].concat();
        for name in self.list(parent).unwrap_or_else(|_| Vec::new()) {
            let pid = name.as_bytes().strip_prefix(&*prefix).and_then(|pid| std::str::from_utf8(pid).ok());
            let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { continue };
            if is_left(Pid::from_raw(pid)) {
                unlinkat(&folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
            }
        }
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
}

/// The name under which a file is written before it is renamed.
fn temporary(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(TEMPORARY);
    temporary.push(name);
    temporary.push(".");
    temporary.push(std::process::id().to_string());
    temporary
}

fn fill(
    folder: &OwnedFd,
    name: &OsString,
    bytes: &[u8],
    how: Attributes,
    replaced: Option<&OwnedFd>,
) -> Result<(), Errno> {
    // A killed run with the same pid may have left one; it is ours by its name.
    unlinkat(folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(folder, name.as_os_str(), flags, Mode::from_bits_truncate(0o600))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match write(file.as_fd(), rest) {
            Ok(0) => return Err(Errno::ENOSPC),
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    // Before the mode: setting an access control list changes it.
    if let Some(replaced) = replaced {
        xattr::copy(replaced, &file)?;
    }
    if let Some((uid, gid)) = how.owner {
        fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    fchmod(&file, Mode::from_bits_truncate(how.mode))?;
    fsync(&file)
}
