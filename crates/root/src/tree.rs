//! Whole folders: made, moved into place in one step, and removed.

use std::fs::remove_dir_all;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, syncfs, unlinkat};
use rustix::fs::RenameFlags;

use crate::{Attributes, Error, Kind, Root, xattr};

impl Root {
    /// Makes a folder that is not there yet, and those above it as [`Root::write`] does.
    ///
    /// # Errors
    /// When the folder is already there, or cannot be made.
    pub fn make_folder(&self, path: impl AsRef<Path>, how: Attributes) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("make the folder", self.shown(path), errno);
        let (parent, name) = self.split(path, "make the folder")?;
        let above = self.folder_for_writing(parent)?;
        self.mkdir(path, &above, name, Mode::S_IRWXU).map_err(failed)?;
        let made = self.folder(path)?;
        xattr::drop_acl(&made).map_err(failed)?;
        self.give_folder(path, how)
    }

    /// Gives a folder that is there its mode and owner.
    ///
    /// # Errors
    /// When the path is no folder, or mode and owner cannot be changed.
    pub fn give_folder(&self, path: impl AsRef<Path>, how: Attributes) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("change mode and owner of", self.shown(path), errno);
        let folder = self.folder(path)?;
        if let Some(owner) = how.owner {
            self.chown(path, &folder, owner).map_err(failed)?;
        }
        self.chmod(path, &folder, how.mode).map_err(failed)
    }

    /// Opens the folder, and makes it and those above it where they are missing, one by one.
    pub(crate) fn folder_for_writing(&self, folder: &Path) -> Result<OwnedFd, Error> {
        match self.folder(folder) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        let (above, name) = self.split(folder, "open the folder")?;
        let above = self.folder_for_writing(above)?;
        let mode = 0o755;
        let failed = |errno| Error::io("make the folder", self.shown(folder), errno);
        match self.mkdir(folder, &above, name, Mode::from_bits_truncate(mode)) {
            Ok(()) => {
                let made = self.folder(folder)?;
                // The caller's umask is not what engines that read the folder go by.
                xattr::drop_acl(&made).and_then(|()| self.chmod(folder, &made, mode)).map_err(failed)?;
                Ok(made)
            }
            Err(Errno::EEXIST) => self.folder(folder),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Removes a folder if it is empty. Says whether it is gone: a folder with something in it, and what is no folder or
    /// is reached through something that is none, stays.
    ///
    /// # Errors
    /// When the folder cannot be removed for another reason.
    pub fn remove_empty_folder(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("remove the folder", self.shown(path), errno);
        match self.lstat(path) {
            Ok(meta) if meta.kind != Kind::Directory => return Ok(false),
            Err(error) if error.is_not_found() => return Ok(true),
            _ => {}
        }
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
        let above = match self.open_folder(above) {
            Err(Errno::ENOTDIR | Errno::ELOOP) => return Ok(false),
            other => other.map_err(failed)?,
        };
        self.crash_point("unlinkat", path);
        match unlinkat(&above, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => self.fsync(path, &above).map(|()| true).map_err(failed),
            Err(Errno::ENOENT) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Moves a file or folder to a free path on its file system.
    ///
    /// # Errors
    /// When something is at the new path, or the move fails; the file then stays where it is.
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let failed = |errno| Error::io("move into place", self.shown(to), errno);
        let [(parent, name), (new_parent, new)] =
            [self.split(from, "move")?, self.split(to, "move into place")?];
        let (old_folder, new_folder) = (self.folder(parent)?, self.folder(new_parent)?);
        self.rename(to, (&old_folder, name), (&new_folder, new), RenameFlags::NOREPLACE).map_err(failed)?;
        self.fsync(to, &new_folder).and_then(|()| self.fsync(from, &old_folder)).map_err(failed)
    }

    /// Removes a folder with everything in it. It removes a link in it, not what the link leads to. That it is not
    /// there is no error.
    ///
    /// # Errors
    /// When something in the folder cannot be removed.
    pub fn remove_tree(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("remove", self.shown(path), errno);
        let (parent, name) = self.split(path, "remove")?;
        let above = match self.folder(parent) {
            Err(error) if error.is_not_found() => return Ok(()),
            above => above?,
        };
        // A file system that is mounted in the folder has another owner, and would be emptied.
        if self.mount_beneath(path).is_some() {
            return Err(failed(Errno::EBUSY));
        }
        // The descriptor stands for this folder, whatever becomes of the path meanwhile.
        let place = PathBuf::from(format!("/proc/self/fd/{}", above.as_raw_fd())).join(name);
        self.crash_point("unlinkat", path);
        match remove_dir_all(place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(Errno::from_raw(error.raw_os_error().unwrap_or(0))))
            }
            _ => self.fsync(path, &above).map_err(failed),
        }
    }

    /// The bytes that the program's user can still write to a folder's file system.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn free_space(&self, folder: impl AsRef<Path>) -> Result<u64, Error> {
        let path = folder.as_ref();
        let folder = self.folder(path)?;
        let stat = fstatvfs(&folder).map_err(|errno| Error::io("ask how full", self.shown(path), errno))?;
        Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }

    /// Makes everything last that was written to the file system of a folder: one call for a tree of many files.
    ///
    /// # Errors
    /// When not all of the file system could be written.
    pub fn sync(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let path = folder.as_ref();
        let folder = self.folder(path)?;
        syncfs(&folder).map_err(|errno| Error::io("write", self.shown(path), errno))
    }
}
