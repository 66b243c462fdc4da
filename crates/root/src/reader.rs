//! An interface to readers that give up. The read of a driver's file can wait for ever, in a state that no
//! signal ends, and a process with such a thread does not end either. So a program hands these reads to a
//! [`Reader`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use rustix::fs::{FsWord, fstatfs};

use crate::{Error, Root};

/// How much of a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// The whole file, at most this many bytes, as [`Root::read`] reads it.
    Whole(usize),
    /// The first bytes, by one read of this size, as [`Root::read_start`] reads them.
    Start(usize),
}

/// Why a [`Reader`] has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The kernel refused: what was attempted, and its answer.
    Io(&'static str, Errno),
    TooLarge,
    /// The read, or an earlier one of this file or of its device, has not come back for so long.
    NoAnswer(Duration),
    /// The reader did not try: too many reads hang.
    TooMany,
    /// The reader cannot read now: the caller reads by itself.
    Unavailable,
}

/// Reads files in place of the caller, each within a limited time.
pub trait Reader: Send + Sync {
    /// # Errors
    /// Why there are no bytes.
    fn read(&self, path: &Path, amount: Amount) -> Result<Vec<u8>, Failure>;

    /// Called before a new look at the machine. The reader tries files again that have answered late, and
    /// starts again if it was unavailable.
    fn ask_again(&self);

    /// How many reads hang.
    fn stuck(&self) -> usize;
}

impl Root {
    /// Has `reader` read the kernel's files of devices and of other processes.
    #[must_use]
    pub fn read_by(mut self, reader: Arc<dyn Reader>) -> Self {
        self.reader = Some(reader);
        self
    }

    /// Whether a read beneath /sys may wait for a driver or another program. The ordinary file system of a
    /// captured machine never does.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        // SYSFS_MAGIC, FUSE_SUPER_MAGIC and NFS_SUPER_MAGIC (include/uapi/linux/magic.h, fs/fuse/inode.c).
        const WAITING: [FsWord; 3] = [0x6265_6572, 0x6573_5546, 0x6969];
        let folder = self.open_at(Path::new("/sys"), OFlag::O_PATH | OFlag::O_DIRECTORY);
        // A file system that does not tell its type may be any.
        folder.is_ok_and(|folder| fstatfs(&folder).map_or(true, |it| WAITING.contains(&it.f_type)))
    }

    /// Called before a new look at the machine: files that have answered late are read again.
    pub fn ask_again(&self) {
        if let Some(reader) = &self.reader {
            reader.ask_again();
        }
    }

    /// How many reads of the Root's [`Reader`] hang.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.reader.as_ref().map_or(0, |reader| reader.stuck())
    }

    /// `None`: the caller reads by itself.
    pub(crate) fn read_by_reader(&self, path: &Path, amount: Amount) -> Option<Result<Vec<u8>, Error>> {
        let reader = self.reader.as_ref().filter(|_| is_kernels(path))?;
        Some(match reader.read(path, amount) {
            Ok(bytes) => Ok(bytes),
            Err(Failure::Unavailable) => return None,
            Err(Failure::Io(action, errno)) => Err(Error::io(action, self.shown(path), errno)),
            Err(Failure::NoAnswer(waited)) => Err(Error::NoAnswer { path: self.shown(path), waited }),
            Err(Failure::TooMany) => Err(Error::NotAsked { path: self.shown(path) }),
            Err(Failure::TooLarge) => {
                let (Amount::Whole(limit) | Amount::Start(limit)) = amount;
                Err(Error::TooLarge { path: self.shown(path), limit })
            }
        })
    }
}

/// Whether a driver or another process answers a read: paths beneath /sys, or /proc/PID.
fn is_kernels(path: &Path) -> bool {
    let mut names = path.components().skip(1).map(|name| name.as_os_str().as_encoded_bytes());
    match names.next() {
        Some(b"sys") => true,
        Some(b"proc") => names.next().is_some_and(|name| name.iter().all(u8::is_ascii_digit)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_or_another_process_answers_is_the_kernels() {
        for (path, expected) in [
            ("/sys/class/drm/card1/device/vendor", true),
            ("/proc/42/fdinfo/7", true),
            ("/proc/self/mountinfo", false),
            ("/proc/devices", false),
            ("/etc/sys/x", false),
            ("/", false),
        ] {
            assert_eq!(is_kernels(Path::new(path)), expected, "{path}");
        }
    }
}
