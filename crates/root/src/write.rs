use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, ResolveFlag, openat, renameat};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, fchmod, fstatat, mkdirat};
use nix::unistd::{Gid, Pid, Uid, UnlinkatFlags, fchown, fsync, unlinkat, write};

use crate::open::read_up_to;
use crate::{Error, Kind, Meta, Root, inside};

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
        let path = path.as_ref();
        let failed = |action, errno| Error::io(action, self.shown(path), errno);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed("write", Errno::EISDIR));
        };
        let folder = self.folder_for_writing(parent)?;
        if self.already_right(&folder, path, bytes, how)? {
            return Ok(Written::Unchanged);
        }
        let mut temporary = OsString::from(TEMPORARY);
        temporary.push(name);
        temporary.push(".");
        self.sweep(&folder, parent, &temporary);
        temporary.push(std::process::id().to_string());
        let result = fill(&folder, &temporary, bytes, how)
            .and_then(|()| renameat(&folder, temporary.as_os_str(), &folder, name))
            .and_then(|()| fsync(&folder));
        result.map_err(|errno| {
            // The temporary file is ours and unnamed elsewhere; if it cannot go either, the first error is the news.
            unlinkat(&folder, temporary.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
            failed("write", errno)
        })?;
        Ok(Written::Changed)
    }

    /// Takes away what killed runs left behind: temporary files of this file whose process is gone. What cannot
    /// be taken away hinders nothing.
    fn sweep(&self, folder: &OwnedFd, path: &Path, prefix: &OsString) {
        for name in self.list(path).unwrap_or_else(|_| Vec::new()) {
            let pid =
                name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|pid| std::str::from_utf8(pid).ok());
            let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { continue };
            if kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH) {
                unlinkat(folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
            }
        }
    }

    /// Opens the folder, and makes it and those above it where they are missing, one by one, so that no link is
    /// followed on the way.
    fn folder_for_writing(&self, folder: &Path) -> Result<OwnedFd, Error> {
        match self.open_folder(folder) {
            Err(Errno::ENOENT) => {}
            other => return other.map_err(|errno| self.no_folder(folder, errno)),
        }
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Err(self.no_folder(folder, Errno::ENOENT));
        };
        let above = self.folder_for_writing(above)?;
        let mode = Mode::from_bits_truncate(0o755);
        let failed = |errno| Error::io("make the folder", self.shown(folder), errno);
        match mkdirat(&above, name, mode) {
            Ok(()) => {
                let made = self.open_folder(folder).map_err(|errno| self.no_folder(folder, errno))?;
                // The caller's umask is not what engines that read the folder go by.
                fchmod(&made, mode).map_err(failed)?;
                Ok(made)
            }
            Err(Errno::EEXIST) => self.open_folder(folder).map_err(|errno| self.no_folder(folder, errno)),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn open_folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = Path::new("/").join(inside(path));
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        self.dir.open_with(&path, flags, Mode::empty(), ResolveFlag::RESOLVE_NO_SYMLINKS)
    }

    fn no_folder(&self, path: &Path, errno: Errno) -> Error {
        let path = self.shown(path);
        match errno {
            Errno::ELOOP => Error::Folder {
                path,
                problem: "it is reached through a symbolic link, which somebody could have planted; name the real folder",
            },
            Errno::ENOTDIR => Error::Folder { path, problem: "it is not a folder; move it out of the way" },
            errno => Error::io("open the folder", path, errno),
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

fn fill(folder: &OwnedFd, name: &OsString, bytes: &[u8], how: Attributes) -> Result<(), Errno> {
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
    if let Some((uid, gid)) = how.owner {
        fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    fchmod(&file, Mode::from_bits_truncate(how.mode))?;
    fsync(&file)
}
