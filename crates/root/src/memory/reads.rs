//! The reads of [`crate::Root`], of files in memory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rustix::fs::{MemfdFlags, memfd_create};

use super::walk::{Found, Links, Missing};
use super::{Asked, Node, Tree, shown};
use crate::error::of_rustix;
use crate::files::Content;
use crate::{Error, Identity, Kind, Meta};

impl Tree {
    pub(crate) fn read(&self, path: &Path, limit: usize) -> Result<&[u8], Error> {
        let bytes = self.bytes(self.get("open", path, Links::Followed)?, path)?;
        if bytes.len() > limit { Err(Error::TooLarge { path: shown(path), limit }) } else { Ok(bytes) }
    }

    pub(crate) fn read_start(&self, path: &Path, count: usize) -> Result<Vec<u8>, Error> {
        let bytes = self.bytes(self.get("open", path, Links::Followed)?, path)?;
        Ok(bytes.get(..count).unwrap_or(bytes).to_owned())
    }

    /// Reads a file if `check` accepts its metadata.
    pub(crate) fn read_trusted(
        &self,
        path: &Path,
        limit: usize,
        check: impl FnOnce(&Meta) -> Result<(), Error>,
    ) -> Result<&[u8], Error> {
        let is_link = || Error::NotAFile { path: shown(path), found: Kind::Link.described() };
        let node = match self.get("open", path, Links::NotAtTheEnd) {
            // A folder's Root does not ask either where on the path the link was.
            Err(Error::Io { errno: Errno::ELOOP, .. }) => return Err(is_link()),
            node => node?,
        };
        if let Some(Content::Link(_)) = node.content {
            return Err(is_link());
        }
        // A file that could not be opened gives its error before its metadata is judged.
        if let Some(Content::Failed(_) | Content::Unread(_)) = node.content {
            self.bytes(node, path)?;
        }
        check(&node.meta().ok_or_else(|| self.why_unknown(Asked::Content, node, path))?)?;
        self.read(path, limit)
    }

    /// The file as one that a program can read on.
    pub(crate) fn open_to_read(&self, path: &Path) -> Result<File, Error> {
        let failed = |errno| Error::io("open", shown(path), errno);
        let node = self.get("open", path, Links::Refused)?;
        if let Some(Content::Link(_)) = node.content {
            return Err(failed(Errno::ELOOP));
        }
        let bytes = self.bytes(node, path)?;
        let file = memfd_create("file", MemfdFlags::CLOEXEC).map_err(|error| failed(of_rustix(error)))?;
        let mut file = File::from(file);
        let written = file.write_all(bytes).and_then(|()| file.seek(SeekFrom::Start(0)));
        written.map_err(|error| failed(Errno::from_raw(error.raw_os_error().unwrap_or(0))))?;
        Ok(file)
    }

    pub(crate) fn list(&self, path: &Path) -> Result<Vec<OsString>, Error> {
        let failed = |errno| Error::io("list", shown(path), errno);
        let node = self.get("list", path, Links::Followed)?;
        match (&node.content, node.kind()) {
            (Some(Content::Folder(names)), _) => Ok(names.clone()),
            (_, Some(kind)) if kind != Kind::Directory => Err(failed(Errno::ENOTDIR)),
            (Some(Content::Failed(errno)), _) => Err(failed(*errno)),
            (Some(Content::Unread(words)), _) => Err(unread(path, words)),
            _ => Err(self.not_read(Asked::Content, path)),
        }
    }

    pub(crate) fn each_link(&self, path: &Path, mut found: impl FnMut(&OsStr, &[u8])) -> Result<(), Error> {
        self.list(path)?;
        let folder = self.get("list", path, Links::Followed)?;
        for (name, id) in &folder.children {
            if let Some(Content::Link(target)) = self.node(*id).and_then(|node| node.content.as_ref()) {
                found(name, target.as_os_str().as_bytes());
            }
        }
        Ok(())
    }

    pub(crate) fn meta(&self, path: &Path, is_followed: bool) -> Result<Meta, Error> {
        let links = if is_followed { Links::Followed } else { Links::NotAtTheEnd };
        let node = self.get("stat", path, links)?;
        node.meta().ok_or_else(|| self.why_unknown(Asked::Meta, node, path))
    }

    /// The identity of the path without links. Hard links count as different files: which names share a file
    /// was not read.
    pub(crate) fn identity(&self, path: &Path) -> Result<Identity, Error> {
        let found =
            self.walk(path, Links::Followed).map_err(|missing| self.missing(missing, "stat", path))?;
        let Found::Node(id) = found else { return Err(self.not_read(Asked::Meta, path)) };
        let meta = self.node(id).and_then(Node::meta).ok_or_else(|| self.not_read(Asked::Meta, path))?;
        let changed_ns = meta.modified_s.saturating_mul(1_000_000_000);
        Ok(Identity { device: 0, inode: u64::try_from(id).unwrap_or(u64::MAX), len: meta.len, changed_ns })
    }

    pub(crate) fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        let node = self.get("open", path, Links::NotAtTheEnd)?;
        match (&node.content, node.kind()) {
            (Some(Content::Link(target)), _) => Ok(target.clone()),
            (_, Some(kind)) if kind != Kind::Link => {
                Err(Error::io("read the link", shown(path), Errno::EINVAL))
            }
            _ => Err(self.not_read(Asked::Content, path)),
        }
    }

    /// Whether anything is at a path, even if its content was not read.
    pub(crate) fn is_there(&self, path: &Path, is_followed: bool) -> bool {
        let links = if is_followed { Links::Followed } else { Links::NotAtTheEnd };
        self.walk(path, links).map_err(|missing| self.missing(missing, "stat", path)).is_ok()
    }

    /// Checks that a folder is at a path without links.
    pub(crate) fn check_folder(&self, path: &Path) -> Result<(), Error> {
        let failed = |errno| Error::io("open the folder", shown(path), errno);
        match self.get("open the folder", path, Links::Refused)?.kind() {
            Some(Kind::Directory) => Ok(()),
            Some(Kind::Link) => Err(failed(Errno::ELOOP)),
            Some(_) => Err(failed(Errno::ENOTDIR)),
            None => Err(self.not_read(Asked::Meta, path)),
        }
    }

    pub(crate) fn without_links(&self, path: &Path) -> Option<PathBuf> {
        match self.walk(path, Links::Followed) {
            Ok(Found::Node(id)) => Some(self.path_of(id)),
            Ok(Found::Listed) => {
                let folder = self.without_links(path.parent()?)?;
                Some(folder.join(path.file_name()?))
            }
            Err(_) => None,
        }
    }

    fn get(&self, action: &'static str, path: &Path, links: Links) -> Result<&Node, Error> {
        match self.walk(path, links) {
            Ok(Found::Node(id)) => self.node(id).ok_or_else(|| self.not_read(asked(action), path)),
            Ok(Found::Listed) => Err(self.not_read(asked(action), path)),
            Err(missing) => Err(self.missing(missing, action, path)),
        }
    }

    fn missing(&self, missing: Missing, action: &'static str, path: &Path) -> Error {
        match missing {
            Missing::Kernel(errno) => Error::io(action, shown(path), errno),
            Missing::NotRead => self.not_read(asked(action), path),
        }
    }

    fn bytes<'t>(&self, node: &'t Node, path: &Path) -> Result<&'t [u8], Error> {
        match &node.content {
            Some(Content::File(bytes)) => Ok(bytes),
            _ if node.kind() == Some(Kind::Directory) => Err(Error::io("read", shown(path), Errno::EISDIR)),
            _ => Err(self.why_unknown(Asked::Content, node, path)),
        }
    }

    /// Why no more is known of it.
    fn why_unknown(&self, asked: Asked, node: &Node, path: &Path) -> Error {
        match &node.content {
            Some(Content::Failed(errno)) => Error::io(self.refused(node, path, *errno), shown(path), *errno),
            Some(Content::Unread(words)) => unread(path, words),
            _ => self.not_read(asked, path),
        }
    }

    /// The call that the kernel refused. The kernel checks permissions when a file is opened; a driver
    /// answers when the file is read. EPERM is a device's answer to open (`devkmsg_open` in printk.c), and
    /// KFD's answer to read (kfd_topology.c). No file of sysfs is closed to root, so root's EACCES comes from
    /// a driver.
    fn refused(&self, node: &Node, path: &Path, errno: Errno) -> &'static str {
        let is_device = matches!(node.kind(), Some(Kind::Character { .. })) || path.starts_with("/dev");
        match errno {
            Errno::EACCES if self.reader == 0 && path.starts_with("/sys") => "read",
            Errno::EACCES | Errno::ELOOP | Errno::ENOENT | Errno::ENOTDIR | Errno::ENXIO => "open",
            Errno::EPERM if is_device => "open",
            _ => "read",
        }
    }
}

/// `action`: as errors name it.
fn asked(action: &str) -> Asked {
    if matches!(action, "stat" | "open the folder") { Asked::Meta } else { Asked::Content }
}

fn unread(path: &Path, words: &str) -> Error {
    Error::Unread { path: shown(path), words: words.to_owned() }
}
