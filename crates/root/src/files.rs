//! A machine's files in memory, as another program has read them: a Root without a folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::Meta;

/// What was read, by path. A path may have links in it; [`crate::Root::of_files`] resolves them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub entries: BTreeMap<PathBuf, Entry>,
    /// The uid that read them there. Its files are believed beside root's, as those of whoever runs the program are on
    /// this machine.
    pub reader: u32,
}

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind, mode and owner, where they were asked for. Without them nothing in the file is believed
    /// ([`crate::Root::read_trusted`]).
    pub meta: Option<Meta>,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    File(Vec<u8>),
    /// Every name in it but `.` and `..`. A name that is not among them is not there.
    Folder(Vec<OsString>),
    /// Where it points, as it is written in it.
    Link(PathBuf),
    /// A device node, or what only its [`Entry::meta`] tells.
    Node,
    /// The read failed: what the kernel answered. ENOENT and ENOTDIR: nothing is there.
    Failed(Errno),
    /// No call gets to it, not even stat(2): a folder on the way may not be entered (EACCES).
    Unreachable(Errno),
    /// The read failed with these words, which are none of the kernel's.
    Unread(String),
}
