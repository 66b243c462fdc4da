//! What runs inside the container: opens nodes, and says what came of each. Nothing here decides what that means.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, major, makedev, minor, mknod};
use nix::unistd::unlink;

use super::answer::{Answer, Tried};
use super::kfd;

/// Where the node of another GPU is made: in a container that is a tmpfs, on which devices count.
const STRANGER: &str = "/dev/rocworker-canary";

/// Opens KFD and a render node, and the number of a device that was not given.
#[must_use]
pub fn probe(kfd: &Path, render: &Path, stranger: (u64, u64)) -> Answer {
    Answer { schema_version: 1, kfd: ask_kfd(kfd), render: open_node(render), stranger: forge(stranger) }
}

fn ask_kfd(path: &Path) -> Tried<String> {
    match open(path) {
        Err(errno) => Tried::Unopened(errno),
        Ok(file) => match kfd::version(&file) {
            Ok(version) => Tried::Got(version),
            Err(errno) => Tried::Unanswered(errno as i32),
        },
    }
}

fn open_node(path: &Path) -> Tried<String> {
    let number = |file: File| {
        let meta = file.metadata().ok().filter(|meta| meta.file_type().is_char_device())?;
        Some(format!("{}:{}", major(meta.rdev()), minor(meta.rdev())))
    };
    match open(path) {
        Err(errno) => Tried::Unopened(errno),
        Ok(file) => number(file).map_or(Tried::Unanswered(Errno::ENOTTY as i32), Tried::Got),
    }
}

/// A node of that number which nobody handed out: what stands before its driver is the device cgroup alone.
fn forge((major, minor): (u64, u64)) -> Tried<String> {
    let path = Path::new(STRANGER);
    // Of an earlier probe in the same container.
    unlink(path).ok();
    if let Err(errno) = mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major, minor)) {
        return Tried::Unmade(errno as i32);
    }
    let tried = open_node(path);
    unlink(path).ok();
    tried
}

/// For reading and writing, as HIP opens them.
fn open(path: &Path) -> Result<File, i32> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| error.raw_os_error().unwrap_or(Errno::EIO as i32))
}
