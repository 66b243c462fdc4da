//! What runs inside the container: opens nodes, and says what came of each. Nothing here decides what that means.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, major, makedev, minor, mknod};
use nix::unistd::unlink;
use serde::{Deserialize, Serialize};

use super::kfd;

/// What the probe saw inside, as one line of JSON between the container and the program that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub schema_version: u32,
    /// The version that KFD answers, as `1.11`.
    pub kfd: Tried,
    /// The number of the render node that was opened, as `226:128`.
    pub render: Tried,
    /// The number of a GPU's node that the container made without having been given that GPU.
    pub stranger: Tried,
}

/// How far the probe got with one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    Got(String),
    /// The node could not be made: mknod(2)'s errno.
    Unmade(i32),
    /// The node could not be opened: open(2)'s errno.
    Unopened(i32),
    /// The node was opened, and its driver gave this errno.
    Unanswered(i32),
}

/// An errno in words, with its name: `ENXIO, No such device or address`.
pub fn named(errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    format!("{errno:?}, {}", errno.desc())
}

/// Path at which the probe makes the node of another GPU: a container's /dev is a tmpfs on which device nodes work.
const STRANGER: &str = "/dev/rocworker-canary";

/// Opens KFD and a render node, and the number of a device that was not given.
#[must_use]
pub fn probe(kfd: &Path, render: &Path, stranger: (u64, u64)) -> Answer {
    Answer { schema_version: 1, kfd: ask_kfd(kfd), render: open_node(render), stranger: forge(stranger) }
}

fn ask_kfd(path: &Path) -> Tried {
    match open(path) {
        Err(errno) => Tried::Unopened(errno),
        Ok(file) => match kfd::version(&file) {
            Ok(version) => Tried::Got(version),
            Err(errno) => Tried::Unanswered(errno as i32),
        },
    }
}

fn open_node(path: &Path) -> Tried {
    let number = |file: File| {
        let meta = file.metadata().ok().filter(|meta| meta.file_type().is_char_device())?;
        Some(format!("{}:{}", major(meta.rdev()), minor(meta.rdev())))
    };
    match open(path) {
        Err(errno) => Tried::Unopened(errno),
        Ok(file) => number(file).map_or(Tried::Unanswered(Errno::ENOTTY as i32), Tried::Got),
    }
}

/// Makes a node of that number, which no engine handed out: only the device cgroup keeps the container from its driver.
fn forge((major, minor): (u64, u64)) -> Tried {
    let path = Path::new(STRANGER);
    // An earlier probe in this container may have left its node.
    unlink(path).ok();
    if let Err(errno) = mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major, minor)) {
        return Tried::Unmade(errno as i32);
    }
    let tried = open_node(path);
    unlink(path).ok();
    tried
}

/// Opens a node for reading and writing, as HIP does.
fn open(path: &Path) -> Result<File, i32> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| error.raw_os_error().unwrap_or(Errno::EIO as i32))
}
