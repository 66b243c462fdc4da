//! A machine's files in memory, as another program has read them: a Root without a folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::Meta;

/// Files of another machine by path. A path may have links in it; [`crate::Root::of_files`] resolves them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub entries: BTreeMap<PathBuf, Entry>,
    /// The uid that read the files on that machine. Its files are believed beside root's, as files of the
    /// program's own user are on this machine.
    pub reader: u32,
}

/// An entry of a folder on the other machine.
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
    /// Every name in the folder but `.` and `..`. A name that is missing here does not exist.
    Folder(Vec<OsString>),
    /// The link's target as it is written.
    Link(PathBuf),
    /// A device node, or another file of which only [`Entry::meta`] was read.
    Node,
    /// The kernel's error for the read. ENOENT and ENOTDIR: nothing is there.
    Failed(Errno),
    /// The kernel refuses every call for the path, even stat(2), because a folder on the way may not be
    /// entered (EACCES).
    Unreachable(Errno),
    /// The read failed with these words, which come from a program and not from the kernel.
    Unread(String),
}
