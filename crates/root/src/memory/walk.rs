//! Walks a path to its end as the kernel does (path_resolution(7)), with links resolved inside the Root.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use nix::errno::Errno;

use super::{Id, Node, TOP, Tree};
use crate::Kind;
use crate::files::Content;

/// How many links the kernel follows in one path (MAXSYMLINKS in include/linux/namei.h).
pub(super) const MOST_LINKS: usize = 40;

/// How a walk treats links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Followed,
    /// Links are followed, but for one at the end of the path.
    NotAtTheEnd,
    /// Any link on the path gives ELOOP.
    Refused,
}

/// The end of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Node(Id),
    /// An entry that its folder lists, and of which nothing more was read.
    Listed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Kernel(Errno),
    NotRead,
}

impl Tree {
    pub(super) fn walk(&self, path: &Path, links: Links) -> Result<Found, Missing> {
        // The names that are left, the next one last.
        let mut rest: Vec<&[u8]> = names(path);
        let (mut at, mut followed) = (TOP, 0);
        while let Some(name) = rest.pop() {
            let folder = self.node(at).ok_or(Missing::NotRead)?;
            folder.enter()?;
            match name {
                b"" | b"." => continue,
                b".." => {
                    at = folder.above;
                    continue;
                }
                _ => {}
            }
            let name = OsStr::from_bytes(name);
            let is_last = rest.is_empty();
            let child = folder.children.get(name).copied();
            let Some((id, child)) = child.and_then(|id| Some((id, self.node(id)?))) else {
                folder.look_up(name)?;
                return if is_last { Ok(Found::Listed) } else { Err(Missing::NotRead) };
            };
            match &child.content {
                Some(Content::Link(target)) if links == Links::Followed || !is_last => {
                    followed += 1;
                    if links == Links::Refused || followed > MOST_LINKS {
                        return Err(Missing::Kernel(Errno::ELOOP));
                    }
                    let target = target.as_os_str().as_bytes();
                    if target.is_empty() {
                        return Err(Missing::Kernel(Errno::ENOENT));
                    }
                    if target.starts_with(b"/") {
                        at = TOP;
                    }
                    rest.extend(target.split(|byte| *byte == b'/').rev());
                }
                Some(
                    Content::Failed(errno @ (Errno::ENOENT | Errno::ENOTDIR)) | Content::Unreachable(errno),
                ) if !child.is_there => {
                    return Err(Missing::Kernel(*errno));
                }
                // Something on the path is missing here, but its own folder may list it.
                _ if !child.is_there => match folder.look_up(name) {
                    Ok(()) if is_last => return Ok(Found::Listed),
                    Err(missing) if is_last || missing != Missing::NotRead => return Err(missing),
                    _ => at = id,
                },
                _ => at = id,
            }
        }
        Ok(Found::Node(at))
    }
}

impl Node {
    /// Checks that a walk may go on into this place.
    fn enter(&self) -> Result<(), Missing> {
        match (self.kind(), &self.content) {
            (Some(Kind::Directory), _) => Ok(()),
            (Some(_), _) => Err(Missing::Kernel(Errno::ENOTDIR)),
            (None, _) => Err(Missing::NotRead),
        }
    }

    /// Checks that this folder lists the name.
    fn look_up(&self, name: &OsStr) -> Result<(), Missing> {
        match &self.content {
            Some(Content::Folder(names)) => {
                let is_listed = names.binary_search_by(|it| it.as_os_str().cmp(name)).is_ok();
                if is_listed { Ok(()) } else { Err(Missing::Kernel(Errno::ENOENT)) }
            }
            _ => Err(Missing::NotRead),
        }
    }
}

/// The names of a path that begins at the Root, the first one last.
pub(super) fn names(path: &Path) -> Vec<&[u8]> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.as_bytes()),
        Component::ParentDir => Some(&b".."[..]),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
