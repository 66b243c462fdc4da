//! What the probe saw inside, as one line of JSON between the container and the program that started it.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// Everything that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub schema_version: u32,
    /// The version that KFD answers, as `1.11`.
    pub kfd: Tried<String>,
    /// The number of the render node that was opened, as `226:128`.
    pub render: Tried<String>,
    /// The same of the node that the container made for a GPU that it was not given.
    pub stranger: Tried<String>,
}

/// How far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried<T> {
    Got(T),
    /// The node could not be made: mknod(2)'s errno.
    Unmade(i32),
    /// It could not be opened: open(2)'s errno.
    Unopened(i32),
    /// It was opened, and its driver gave this errno.
    Unanswered(i32),
}

/// An errno in words, with its name: `ENXIO, No such device or address`.
pub(crate) fn named(errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    format!("{errno:?}, {}", errno.desc())
}

/// Whether an open got past the container's walls and found no driver behind the node.
pub(crate) fn is_without_driver(errno: i32) -> bool {
    matches!(Errno::from_raw(errno), Errno::ENXIO | Errno::ENODEV)
}
