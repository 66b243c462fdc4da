//! Whole folders: made, moved into place in one step, and removed.

use std::fs::{File, remove_dir_all};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::statvfs::fstatvfs;
use nix::unistd::syncfs;
use rustix::fs::RenameFlags;

use crate::open::open_in;
use crate::{Attributes, Error, Root, xattr};

impl Root {
    /// Makes a folder that is not there yet, and those above it as [`Root::write`] does.
    ///
    /// # Errors
    /// When it is there already, or cannot be made.
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
    /// When it is none, or they cannot be changed.
    pub fn give_folder(&self, path: impl AsRef<Path>, how: Attributes) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("change mode and owner of", self.shown(path), errno);
        let folder = self.folder(path)?;
        if let Some(owner) = how.owner {
            self.chown(path, &folder, owner).map_err(failed)?;
        }
        self.chmod(path, &folder, how.mode).map_err(failed)
    }

    /// Gives a file or folder another path on the same file system, where nothing is yet.
    ///
    /// # Errors
    /// When something is there, or it cannot be moved; then it is where it was.
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
    /// When something of it cannot be removed.
    pub fn remove_tree(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("remove", self.shown(path), errno);
        let (parent, name) = self.split(path, "remove")?;
        let above = match self.folder(parent) {
            Err(error) if error.is_not_found() => return Ok(()),
            above => above?,
        };
        // What is mounted in it has another owner, and would be emptied.
        if self.mount_beneath(path).is_some() {
            return Err(failed(Errno::EBUSY));
        }
        // By the descriptor: whatever becomes of the way to it meanwhile, it is this folder's.
        let place = PathBuf::from(format!("/proc/self/fd/{}", above.as_raw_fd())).join(name);
        self.crash_point("unlinkat", path);
        match remove_dir_all(place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(Errno::from_raw(error.raw_os_error().unwrap_or(0))))
            }
            _ => self.fsync(path, &above).map_err(failed),
        }
    }

    /// Opens a file to be read, which is reached as by [`Root::folder`] and is no link; for one that is too large for [`Root::read`].
    ///
    /// # Errors
    /// When it is not there or cannot be opened.
    pub fn open_to_read(&self, path: impl AsRef<Path>) -> Result<File, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("open", self.shown(path), errno);
        let (parent, name) = self.split(path, "open")?;
        if let Some(tree) = self.memory() {
            let way = self.behind_roots_links(parent).map(|parent| parent.join(name));
            return tree.open_to_read(way.as_deref().unwrap_or(path));
        }
        Ok(open_in(&self.folder(parent)?, name).map_err(failed)?.into())
    }

    /// How many bytes the file system of a folder has left for whoever runs this.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn free_space(&self, folder: impl AsRef<Path>) -> Result<u64, Error> {
        let path = folder.as_ref();
        let folder = self.folder(path)?;
        let stat = fstatvfs(&folder).map_err(|errno| Error::io("ask how full", self.shown(path), errno))?;
        Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }

    /// Makes everything last that was written to the file system of a folder: one call for a tree of many files.
    ///
    /// # Errors
    /// When not all of it could be written.
    pub fn sync(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let path = folder.as_ref();
        let folder = self.folder(path)?;
        syncfs(&folder).map_err(|errno| Error::io("write", self.shown(path), errno))
    }
}
