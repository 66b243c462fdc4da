use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::signal::kill;
use nix::sys::stat::fstatat;
use nix::unistd::Pid;
use rustix::fs::RenameFlags;

use crate::open::{open_in, read_up_to};
use crate::slot::{Attributes, New, Slot};
use crate::{Error, Kind, Meta, Root};

/// The effect of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Bytes, mode and owner were those already: nothing was touched.
    Unchanged,
    Changed,
}

impl Root {
    /// Puts a file in place, whole: a temporary file beside it with its final mode and owner, fsync, rename,
    /// fsync of the folder. Not at all when bytes, mode and owner are already right. Missing folders of the path
    /// are made; a symbolic link on the way is refused where another user than root could have planted it.
    ///
    /// # Errors
    /// Says which step failed on which path; the old file is then still whole.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8], how: Attributes) -> Result<Written, Error> {
        self.put(path.as_ref(), New::File { bytes, how })
    }

    /// Puts a symbolic link in place of what is there, whole, as [`Root::write`] does a file.
    ///
    /// # Errors
    /// Fails where [`Root::write`] fails.
    pub fn write_link(&self, path: impl AsRef<Path>, target: &Path) -> Result<Written, Error> {
        self.put(path.as_ref(), New::Link(target))
    }

    fn put(&self, path: &Path, new: New<'_>) -> Result<Written, Error> {
        let (parent, _) = self.split(path, "write")?;
        let slot = self.slot(path, self.folder_for_writing(parent)?)?;
        if slot.is_already(new)? {
            return Ok(Written::Unchanged);
        }
        self.check_flags(path)?;
        self.sweep(path);
        let result = slot
            .prepare(new)
            .and_then(|()| slot.rename(&slot.temporary, slot.name, RenameFlags::empty()))
            .and_then(|()| self.fsync(path, &slot.folder));
        result.map_err(|errno| {
            // The temporary file has no other name; if it cannot go either, the first error is the news.
            slot.drop_temporary().ok();
            slot.failed("write", errno)
        })?;
        Ok(Written::Changed)
    }

    /// Removes a file or link, and what killed writes of it left beside it. Of a link it removes the link itself, not
    /// its target; a symbolic link on the way to it is refused as by [`Root::write`].
    ///
    /// # Errors
    /// When the file cannot be removed. A missing file is no error.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<Written, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("remove", self.shown(path), errno);
        let (parent, name) = self.split(path, "remove")?;
        let folder = match self.folder(parent) {
            Err(error) if error.is_not_found() => return Ok(Written::Unchanged),
            folder => folder?,
        };
        self.check_flags(path)?;
        self.sweep(path);
        match self.unlink(path, &folder, name) {
            Err(Errno::ENOENT) => return Ok(Written::Unchanged),
            other => other.map_err(failed)?,
        }
        self.fsync(path, &folder).map_err(failed)?;
        Ok(Written::Changed)
    }

    /// Removes what killed writes of a path left beside it: temporary files of it whose process is gone. What cannot be
    /// removed hinders nothing.
    pub fn sweep(&self, path: impl AsRef<Path>) {
        self.sweep_those(path.as_ref(), |pid| kill(pid, None) == Err(Errno::ESRCH));
    }

    /// Removes what writes of a path left beside it, also where its process seems to live: after a boot another process
    /// has that number. Only for a caller who keeps every other writer of the path out.
    pub fn sweep_all(&self, path: impl AsRef<Path>) {
        self.sweep_those(path.as_ref(), |_| true);
    }

    fn sweep_those(&self, path: &Path, is_left: impl Fn(Pid) -> bool) {
        let Ok(folder) = self.open_folder(path.parent().unwrap_or(path)) else { return };
        for left in self.left_beside(path) {
            let Some(name) = left.file_name() else { continue };
            let pid = name.as_bytes().rsplit(|byte| *byte == b'.').next();
            let pid = pid.and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok());
            if pid.is_some_and(|pid| is_left(Pid::from_raw(pid))) {
                self.unlink(path, &folder, name).ok();
            }
        }
    }
}

impl Slot<'_> {
    fn is_already(&self, new: New<'_>) -> Result<bool, Error> {
        let meta = match fstatat(&self.folder, self.name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Meta::from_stat(&stat),
            Err(Errno::ENOENT) => return Ok(false),
            Err(errno) => return Err(self.failed("stat", errno)),
        };
        let (bytes, how) = match (new, meta.kind) {
            (New::File { bytes, how }, Kind::Regular) => (bytes, how),
            (New::Link(target), Kind::Link) => return Ok(self.root.read_link(self.path)? == target),
            (New::Link(_), Kind::Regular) => return Ok(false),
            (_, kind) => {
                return Err(Error::NotAFile { path: self.root.shown(self.path), found: kind.described() });
            }
        };
        let owner_right = how.owner.is_none_or(|owner| (meta.uid, meta.gid) == owner);
        if meta.mode != how.mode || !owner_right || usize::try_from(meta.len) != Ok(bytes.len()) {
            return Ok(false);
        }
        let file = open_in(&self.folder, self.name).map_err(|errno| self.failed("open", errno))?;
        match read_up_to(&file, bytes.len(), || self.root.shown(self.path)) {
            Err(Error::TooLarge { .. }) => Ok(false),
            found => found.map(|found| found == bytes),
        }
    }
}
