//! Flags of a file that chattr(1) sets. A file that is replaced by rename would lose them.

use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rustix::fs::{Access, AtFlags, IFlags, accessat, ioctl_getflags, ioctl_setflags};

use crate::error::of_rustix;
use crate::{Error, Root};

/// Flags that a file's owner may set (FS_FL_USER_MODIFIABLE in include/uapi/linux/fs.h), but for two that keep a file
/// from being replaced at all.
const CARRIED: IFlags = IFlags::from_bits_retain(0x0280_C4CF);

/// Gives a new, empty file the flags of the file that it will replace: some of them only an empty file takes
/// (chattr(1), `C`).
pub(crate) fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    // A file system without them says ENOTTY or EOPNOTSUPP.
    let (Ok(old), Ok(new)) = (ioctl_getflags(from), ioctl_getflags(to)) else { return Ok(()) };
    let wanted = IFlags::from_bits_retain((new.bits() & !CARRIED.bits()) | (old.bits() & CARRIED.bits()));
    if wanted == new {
        return Ok(());
    }
    ioctl_setflags(to, wanted).map_err(of_rustix)
}

impl Root {
    /// Checks whether a file can be replaced or removed, as far as that can be known without trying. A
    /// missing file can.
    ///
    /// # Errors
    /// The error that a try would give.
    pub fn check_replaceable(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let folder = match self.folder(path.parent().unwrap_or(path)) {
            Err(error) if error.is_not_found() => return Ok(()),
            folder => folder?,
        };
        self.check_flags(path)?;
        if self.mount_at(path).is_some() {
            return Err(Error::io("replace", self.shown(path), Errno::EBUSY));
        }
        accessat(&folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| Error::io("write", self.shown(path), of_rustix(error)))
    }

    /// Refuses a file that is flagged, or whose folder is, so that it cannot be replaced or removed.
    ///
    /// # Errors
    /// Names the flag, and how to clear it.
    pub(crate) fn check_flags(&self, path: &Path) -> Result<(), Error> {
        for place in [Some(path), path.parent()].into_iter().flatten() {
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
            let Ok(file) = self.open_at(place, flags) else { continue };
            let found = ioctl_getflags(&file).unwrap_or(IFlags::empty());
            for (flag, word, letter) in
                [(IFlags::IMMUTABLE, "immutable", 'i'), (IFlags::APPEND, "append-only", 'a')]
            {
                if found.contains(flag) {
                    let problem = format!("is {word}, so that nothing is changed there: chattr -{letter}");
                    return Err(Error::Attribute { path: self.shown(place), problem });
                }
            }
        }
        Ok(())
    }
}
