use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::{Error, Kind, Root, inside, xattr};

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

    /// Whether a write to a path would find its way: the folders that are there are folders, and a symbolic link on the way
    /// is one that only root could have put there.
    ///
    /// # Errors
    /// What [`Root::write`] would say.
    pub fn check_way(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        for folder in path.as_ref().ancestors().skip(1) {
            let found = match self.memory() {
                Some(tree) => {
                    let found = match tree.check_folder(folder) {
                        Err(Error::Io { errno: Errno::ELOOP, .. }) => {
                            let way = self.behind_roots_links(folder);
                            tree.check_folder(way.as_deref().unwrap_or(folder))
                        }
                        found => found,
                    };
                    found.map_err(|error| match error {
                        Error::Io { errno, .. } => self.no_folder(folder, errno),
                        error => error,
                    })
                }
                None => self.folder(folder).map(drop),
            };
            match found {
                Err(error) if error.is_not_found() => {}
                other => return other,
            }
        }
        Ok(())
    }

    /// Removes a folder if it is empty. Says whether it is gone: a folder with something in it, and what is no folder or
    /// is reached through something that is none, stays.
    ///
    /// # Errors
    /// When it cannot be removed for another reason.
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

    /// Opens a folder for a call of the kernel that takes a descriptor, or for a path that would be too long. It follows
    /// only links that root alone could have put there.
    ///
    /// # Errors
    /// When it is not there, is no folder, or is behind another link.
    pub fn folder(&self, path: impl AsRef<Path>) -> Result<OwnedFd, Error> {
        let path = path.as_ref();
        self.open_folder(path).map_err(|errno| self.no_folder(path, errno))
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
            Errno::EROFS if self.is_in_memory() => {
                Error::Folder { path, problem: "it is another machine's, whose files are only read here" }
            }
            errno => Error::io("open the folder", path, errno),
        }
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
