use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::{Error, Root};

impl Root {
    /// Writes a value into a file of the kernel's, in one call: each write(2) is a value of its own there
    /// (Documentation/filesystems/sysfs.rst).
    ///
    /// # Errors
    /// When the file is not there, or the kernel refuses the value: [`Error::errno`] says how.
    pub fn write_value(&self, path: impl AsRef<Path>, value: &str) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |errno| Error::Value { path: self.shown(path), value: value.to_owned(), errno };
        let file = self.open_file("open", path, OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        self.crash_point("write", path);
        match nix::unistd::write(&file, value.as_bytes()) {
            Ok(count) if count == value.len() => Ok(()),
            Ok(_) => Err(failed(Errno::EIO)),
            Err(errno) => Err(failed(errno)),
        }
    }
}
