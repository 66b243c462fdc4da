use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rustix::fs::{FileType, RawDir, readlinkat_raw};

use crate::{Error, Root};

impl Root {
    /// Calls `found` with each symbolic link of a folder and with where it points, as it is written in it; a target of more
    /// than 256 bytes is cut. For folders such as /proc/PID/fd, of which there are thousands: a descriptor for the folder,
    /// a call for each link, and no memory.
    ///
    /// # Errors
    /// When the folder is not there, not a directory, or not readable.
    pub fn each_link(
        &self,
        folder: impl AsRef<Path>,
        mut found: impl FnMut(&OsStr, &[u8]),
    ) -> Result<(), Error> {
        let path = folder.as_ref();
        let folder = self.open_file("list", path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        let mut entries = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&folder, &mut entries);
        while let Some(entry) = entries.next() {
            let errno = |errno: rustix::io::Errno| Errno::from_raw(errno.raw_os_error());
            let entry = entry.map_err(|it| Error::io("list", self.shown(path), errno(it)))?;
            let mut target = [MaybeUninit::uninit(); 256];
            // A link that is removed meanwhile does not count.
            if matches!(entry.file_type(), FileType::Symlink | FileType::Unknown)
                && let Ok((target, _)) = readlinkat_raw(&folder, entry.file_name(), &mut target)
            {
                found(OsStr::from_bytes(entry.file_name().to_bytes()), target);
            }
        }
        Ok(())
    }
}
