use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::error::of_rustix;
use crate::{Error, Root};

/// The pause between two tries to get a lock that another process holds.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held as long as this value lives, and by this process alone unless it shares the lock.
#[derive(Debug)]
pub struct Lock {
    held: OwnedFd,
}

impl Lock {
    /// Device and inode of the file that is held, whatever is at its path by now.
    #[must_use]
    pub fn node(&self) -> Option<(u64, u64)> {
        fstat(self.held.as_fd()).ok().map(|stat| (stat.st_dev, stat.st_ino))
    }
}

impl Lock {
    /// Lets the programs that this process starts hold the lock too: after kill -9 of this process they still work.
    ///
    /// # Errors
    /// fcntl(2) fails.
    pub fn share_with_children(&self) -> std::io::Result<()> {
        Ok(fcntl_setfd(&self.held, FdFlags::empty())?)
    }
}

impl Drop for Lock {
    /// Releases the lock at once, even if a program that was just started still has the file open. If this
    /// fails, closing the file releases the lock in any case (flock(2)).
    fn drop(&mut self) {
        flock(&self.held, FlockOperation::Unlock).ok();
    }
}

impl Root {
    /// Takes the lock whose file is at `path`, which is made where it is missing.
    ///
    /// # Errors
    /// When the file cannot be made, or another process holds it for longer than `patience`.
    pub fn lock(&self, path: impl AsRef<Path>, patience: Duration) -> Result<Lock, Error> {
        let path = path.as_ref();
        let failed = |errno| Error::io("lock", self.shown(path), errno);
        let (parent, name) = self.split(path, "lock")?;
        let folder = self.folder_for_writing(parent)?;
        let until = Instant::now() + patience;
        loop {
            let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
            let mode = Mode::from_bits_truncate(0o600);
            self.crash_point("openat", path);
            let file = openat(&folder, name, flags | OFlag::O_CLOEXEC, mode).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(of_rustix) {
                Ok(()) => {
                    let lock = Lock { held: file };
                    // Another process may have removed the file meanwhile: a third could then lock a new one.
                    let held = fstat(lock.held.as_fd()).map_err(failed)?;
                    let there = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
                    if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)) {
                        return Ok(lock);
                    }
                }
                Err(Errno::EWOULDBLOCK) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(Errno::EINTR) => {}
                Err(Errno::EWOULDBLOCK) => {
                    return Err(Error::Locked { path: self.shown(path), waited: patience });
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use nix::fcntl::open;

    use super::*;

    #[test]
    fn a_lock_that_the_kernel_does_not_take_back_ends_nothing() {
        // flock(2) refuses a file that is open by its path alone, as a sick disk refuses any.
        let held = open("/", OFlag::O_PATH, Mode::empty()).unwrap();
        assert!(flock(&held, FlockOperation::Unlock).is_err());
        drop(Lock { held });
    }
}
