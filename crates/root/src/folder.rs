//! Folders that no other user could have put a link in the way of.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::Mode;

use crate::open::open_in;
use crate::{Error, Root, inside};

impl Root {
    /// The folders on the way to a path that are not there yet, the topmost first: those that a write to it makes.
    #[must_use]
    pub fn missing_folders(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        let folders = path.as_ref().ancestors().skip(1);
        let missing =
            folders.take_while(|folder| self.lstat(folder).is_err_and(|error| error.is_not_found()));
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// Checks that a write to a path would succeed on its way: what exists of the way are folders, and each
    /// symbolic link on it is one that only root could have made.
    ///
    /// # Errors
    /// The error that [`Root::write`] would give.
    pub fn check_way(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        for folder in path.as_ref().ancestors().skip(1) {
            match self.folder(folder) {
                Err(error) if error.is_not_found() => {}
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    /// Opens a folder for a call of the kernel that takes a descriptor, or for a path that would be too long.
    /// Follows only links that root alone could have put on the way.
    ///
    /// # Errors
    /// When the folder is not there, is of another kind, or is behind another link.
    pub fn folder(&self, path: impl AsRef<Path>) -> Result<OwnedFd, Error> {
        let path = path.as_ref();
        self.open_folder(path).map_err(|errno| self.no_folder(path, errno))
    }

    /// Opens a file to be read, which is reached as by [`Root::folder`] and is no link; for one that is too large for [`Root::read`].
    ///
    /// # Errors
    /// When the file is not there or cannot be opened.
    pub fn open_to_read(&self, path: impl AsRef<Path>) -> Result<File, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("open", self.shown(path), errno);
        let (parent, name) = self.split(path, "open")?;
        Ok(open_in(&self.folder(parent)?, name).map_err(failed)?.into())
    }

    fn no_folder(&self, path: &Path, errno: Errno) -> Error {
        let path = self.shown(path);
        match errno {
            Errno::ELOOP => Error::Folder {
                path,
                problem: "it is reached through a symbolic link, which another user could have planted; name the real folder, or give \
                          each folder on its way to root alone",
            },
            Errno::ENOTDIR => Error::Folder { path, problem: "it is not a folder; move it out of the way" },
            errno => Error::io("open the folder", path, errno),
        }
    }

    /// Opens a folder that is reached without a link that another user than root could have put there.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = Path::new("/").join(inside(path));
        let open = |path: &Path| {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
            self.open_with(path, flags, Mode::empty(), ResolveFlag::RESOLVE_NO_SYMLINKS)
        };
        match open(&path) {
            Err(Errno::ELOOP) => open(&self.behind_roots_links(&path).ok_or(Errno::ELOOP)?),
            other => other,
        }
    }
}
