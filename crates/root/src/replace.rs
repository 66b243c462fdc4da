//! Replacing what a caller has looked at, and nothing that came there since.
//!
//! A comparison before a rename leaves a moment in which an edit is lost. So the new file and the old one are exchanged
//! (renameat2(2), `RENAME_EXCHANGE`), and the displaced one is compared. Both are exchanged again where it is not
//! the expected one.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use rustix::fs::RenameFlags;

use crate::slot::{New, Slot, is_pid};
use crate::{Error, Root};

/// How often an exchange is tried while another process writes the file: each try takes microseconds.
const TRIES: usize = 64;

/// The end of a kept file's name, behind the pid. A sweep must not take the file for a temporary one.
const KEPT: &str = ".edit";

/// Distinguishes a file from another, and from itself after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    len: i64,
    modified: (i64, i64),
}

impl Root {
    /// Puts `new` at a path, whole, as [`Root::write`] does, in place of what the caller expects there and of nothing
    /// else. `is_expected` is asked about the path of what was displaced.
    ///
    /// Where the file system cannot exchange two files, the path is looked at right before the rename.
    ///
    /// # Errors
    /// [`Error::Changed`] when something else is at the path: it stays there. Else which step failed on which path.
    pub fn replace(
        &self,
        path: impl AsRef<Path>,
        new: New<'_>,
        is_expected: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let path = path.as_ref();
        let (parent, _) = self.split(path, "write")?;
        let folder = match new {
            New::Nothing => self.folder(parent)?,
            _ => self.folder_for_writing(parent)?,
        };
        self.check_flags(path)?;
        self.sweep(path);
        let slot = self.slot(path, folder)?;
        slot.swap(new, is_expected)?;
        self.fsync(path, &slot.folder).map_err(|errno| slot.failed("write", errno))
    }

    /// Files beside a path that were kept there.
    #[must_use]
    pub fn kept_beside(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        self.beside(path.as_ref(), |rest| rest.strip_suffix(KEPT.as_bytes()).is_some_and(is_pid))
    }

    /// Gives a file that a killed run has left a name that no run writes to or removes.
    ///
    /// # Errors
    /// When the file cannot be renamed, and so stays where it is.
    pub fn keep_beside(&self, left: impl AsRef<Path>) -> Result<(), Error> {
        let left = left.as_ref();
        let mut kept = left.as_os_str().to_owned();
        kept.push(KEPT);
        self.rename_new(left, &kept)
    }

    /// Puts a file back that a killed run has displaced, and removes what is in its place. What was written there in the
    /// meantime stays.
    ///
    /// # Errors
    /// When the file cannot be put back, and so stays where it is.
    pub fn put_back(&self, left: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<(), Error> {
        let (left, path) = (left.as_ref(), path.as_ref());
        let [(_, temporary), (parent, name)] = [self.split(left, "put back")?, self.split(path, "put back")?];
        let slot = Slot { temporary: temporary.to_owned(), ..self.slot(path, self.folder(parent)?)? };
        slot.back(Version::of(&slot.folder, name).ok())?;
        self.fsync(path, &slot.folder).map_err(|errno| slot.failed("put back", errno))
    }
}

impl Slot<'_> {
    /// The path of the temporary name.
    fn beside(&self) -> PathBuf {
        self.path.with_file_name(&self.temporary)
    }

    fn swap(&self, new: New<'_>, is_expected: &dyn Fn(&Path) -> bool) -> Result<(), Error> {
        let verb = if new == New::Nothing { "remove" } else { "write" };
        let prepared = self.prepare(new).and_then(|()| match new {
            New::Nothing => Ok(None),
            _ => Version::of(&self.folder, &self.temporary).map(Some),
        });
        let made = prepared.or_else(|errno| self.give_up(self.failed(verb, errno)))?;
        let moved = match made {
            Some(_) => self.rename(&self.temporary, self.name, RenameFlags::EXCHANGE),
            None => self.rename(self.name, &self.temporary, RenameFlags::NOREPLACE),
        };
        match moved {
            Ok(()) if is_expected(&self.beside()) => {
                self.drop_temporary().map_err(|errno| self.failed(verb, errno))
            }
            Ok(()) => {
                self.back(made)?;
                Err(self.changed())
            }
            // Nothing is at the path, which may be the expected state.
            Err(Errno::ENOENT) if is_expected(self.path) => {
                let Some(_) = made else { return Ok(()) };
                match self.rename(&self.temporary, self.name, RenameFlags::NOREPLACE) {
                    Ok(()) => Ok(()),
                    Err(Errno::EINVAL | Errno::ENOSYS) => self.put_plainly(made, verb, is_expected),
                    Err(Errno::EEXIST) => self.give_up(self.changed()),
                    Err(errno) => self.give_up(self.failed(verb, errno)),
                }
            }
            Err(Errno::ENOENT) => self.give_up(self.changed()),
            Err(Errno::EINVAL | Errno::ENOSYS) => self.put_plainly(made, verb, is_expected),
            Err(errno) => self.give_up(self.failed(verb, errno)),
        }
    }

    /// Replaces on a file system that can neither exchange two files nor refuse to replace one.
    fn put_plainly(
        &self,
        made: Option<Version>,
        verb: &'static str,
        is_expected: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        if !is_expected(self.path) {
            return self.give_up(self.changed());
        }
        let put = match made {
            Some(_) => self.rename(&self.temporary, self.name, RenameFlags::empty()),
            None => self.root.unlink(self.path, &self.folder, self.name),
        };
        put.or_else(|errno| self.give_up(self.failed(verb, errno)))
    }

    /// Puts back what is under the temporary name. `put`: what this run has put at the path. What was written there
    /// since is newer, and stays.
    fn back(&self, mut put: Option<Version>) -> Result<(), Error> {
        let failed = |errno| self.failed("put back", errno);
        for _ in 0..TRIES {
            let displaced = Version::of(&self.folder, &self.temporary).map_err(failed)?;
            if put.is_some() {
                match self.rename(&self.temporary, self.name, RenameFlags::EXCHANGE) {
                    // The file that this run had put there was removed meanwhile.
                    Err(Errno::ENOENT) => put = None,
                    other => other.map_err(failed)?,
                }
            }
            if put.is_none() {
                return match self.rename(&self.temporary, self.name, RenameFlags::NOREPLACE) {
                    // A newer one was written meanwhile.
                    Err(Errno::EEXIST) => self.drop_temporary().map_err(failed),
                    other => other.map_err(failed),
                };
            }
            if put == Some(Version::of(&self.folder, &self.temporary).map_err(failed)?) {
                return self.drop_temporary().map_err(failed);
            }
            put = Some(displaced);
        }
        Err(failed(Errno::EBUSY))
    }

    /// The temporary file is this run's own.
    fn give_up<T>(&self, error: Error) -> Result<T, Error> {
        self.drop_temporary().ok();
        Err(error)
    }

    fn changed(&self) -> Error {
        Error::Changed { path: self.root.shown(self.path) }
    }
}

impl Version {
    fn of(folder: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let stat = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            len: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        })
    }
}
