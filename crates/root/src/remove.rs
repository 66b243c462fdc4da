use std::path::Path;

use nix::errno::Errno;

use crate::{Error, Root, Written};

impl Root {
    /// Takes a file or link away, and what killed writes of it left beside it. A link is taken away itself, not
    /// what it points at; a symbolic link on the way to it is refused.
    ///
    /// # Errors
    /// When it cannot be taken away; that it is not there is none.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<Written, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("remove", self.shown(path), errno);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed(Errno::EISDIR));
        };
        let folder = match self.open_folder(parent) {
            Err(Errno::ENOENT) => return Ok(Written::Unchanged),
            other => other.map_err(|errno| self.no_folder(parent, errno))?,
        };
        self.check_flags(path)?;
        self.sweep(path);
        match self.unlink(path, &folder, name) {
            Ok(()) => {}
            Err(Errno::ENOENT) => return Ok(Written::Unchanged),
            Err(errno) => return Err(failed(errno)),
        }
        self.fsync(path, &folder).map_err(failed)?;
        Ok(Written::Changed)
    }
}
