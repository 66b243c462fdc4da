//! The files of a Root in memory. It answers as the machine's kernel would for what was read there, and says
//! [`Error::NotRead`] of everything else: unknown is not absent.

mod build;
mod reads;
mod walk;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files::Content;
use crate::{Error, Kind, Meta};

/// A node's place in [`Tree::nodes`].
type Id = usize;

/// `/`.
const TOP: Id = 0;

/// Files and folders by their paths without links.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The uid that read them.
    reader: u32,
    /// The paths for which the answer was [`Error::NotRead`].
    not_read: Mutex<BTreeMap<PathBuf, Asked>>,
}

/// The part of a path that a caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// The metadata: kind, owner, mode and length.
    Meta,
    /// The bytes of a file, the names in a folder, or where a link points.
    Content,
}

#[derive(Debug)]
struct Node {
    above: Id,
    name: OsString,
    meta: Option<Meta>,
    /// `None`: a folder on the way to what was read.
    content: Option<Content>,
    children: BTreeMap<OsString, Id>,
    /// Whether something was found at this place or beneath it.
    is_there: bool,
}

impl Tree {
    pub(crate) fn reader(&self) -> u32 {
        self.reader
    }

    /// The paths that were asked for and of which nothing is known.
    pub(crate) fn unknown(&self) -> BTreeMap<PathBuf, Asked> {
        self.not_read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that an answer needs what was not read.
    pub(crate) fn not_read(&self, asked: Asked, path: &Path) -> Error {
        let path = shown(path);
        let mut not_read = self.not_read.lock().unwrap_or_else(PoisonError::into_inner);
        let most = not_read.entry(path.clone()).or_insert(asked);
        *most = asked.max(*most);
        Error::NotRead { path }
    }

    fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The path without any link.
    fn path_of(&self, id: Id) -> PathBuf {
        let above = std::iter::successors(self.node(id), |node| self.node(node.above));
        let names: Vec<&OsStr> =
            above.map(|node| node.name.as_os_str()).take_while(|name| !name.is_empty()).collect();
        Path::new("/").join(names.into_iter().rev().collect::<PathBuf>())
    }
}

impl Node {
    fn new(above: Id, name: OsString) -> Self {
        Self { above, name, meta: None, content: None, children: BTreeMap::new(), is_there: false }
    }

    /// The node's kind. `None`: unknown, since the script sent neither attributes nor content of the node.
    fn kind(&self) -> Option<Kind> {
        let of_content = match &self.content {
            Some(Content::File(_)) => Some(Kind::Regular),
            Some(Content::Folder(_)) | None => Some(Kind::Directory),
            Some(Content::Link(_)) => Some(Kind::Link),
            _ if self.children.values().next().is_some() => Some(Kind::Directory),
            _ => None,
        };
        self.meta.map(|meta| meta.kind).or(of_content)
    }

    /// Kind, owner and rights as far as they were read. A folder on the way has none.
    fn meta(&self) -> Option<Meta> {
        let (uid, gid) = (Meta::UNKNOWN_OWNER, Meta::UNKNOWN_OWNER);
        self.meta.or_else(|| {
            let len = match &self.content {
                Some(Content::File(bytes)) => i64::try_from(bytes.len()).unwrap_or(i64::MAX),
                _ => 0,
            };
            Some(Meta { kind: self.kind()?, mode: 0, uid, gid, len, modified_s: 0 })
        })
    }
}

/// The path as it is spelt on that machine.
fn shown(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}
