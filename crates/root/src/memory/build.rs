//! Builds a tree without links from entries by any path.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::errno::Errno;

use super::walk::{MOST_LINKS, names};
use super::{Id, Node, TOP, Tree};
use crate::files::{Content, Entry, Files};

/// A link of sysfs is known by a path through two others at the most.
const ROUNDS: usize = 8;

impl Tree {
    pub(crate) fn of(files: Files) -> Self {
        let Files { entries, reader } = files;
        let mut tree = Self::of_links(&entries, reader);
        let others = entries.into_iter().filter(|(_, entry)| !matches!(entry.content, Content::Link(_)));
        // Absent entries come last: they make no folder where none was found.
        let (absent, there): (Vec<_>, Vec<_>) = others.partition(|(_, entry)| is_absent(&entry.content));
        for (path, mut entry) in there.into_iter().chain(absent) {
            if let Content::Folder(names) = &mut entry.content {
                names.sort_unstable();
                names.dedup();
            }
            if let Some(id) = tree.make(&path) {
                tree.put(id, entry);
            }
        }
        tree
    }

    /// The links alone. A path may lead through links that stand later in the list: each round puts them where the last one
    /// found them to be, until nothing changes.
    fn of_links(entries: &BTreeMap<PathBuf, Entry>, reader: u32) -> Self {
        let links: Vec<(&PathBuf, &Entry)> =
            entries.iter().filter(|(_, entry)| matches!(entry.content, Content::Link(_))).collect();
        let mut places: Vec<PathBuf> = links.iter().map(|(path, _)| PathBuf::clone(path)).collect();
        let mut tree = Self::empty(reader);
        for _ in 0..ROUNDS {
            tree = Self::empty(reader);
            for (place, (_, entry)) in places.iter().zip(&links) {
                if let Some(id) = tree.make_itself(place) {
                    tree.put(id, Entry::clone(entry));
                }
            }
            let place = |(path, _): &(&PathBuf, _)| {
                tree.make_itself(path).map_or_else(|| PathBuf::clone(path), |id| tree.path_of(id))
            };
            let next: Vec<PathBuf> = links.iter().map(place).collect();
            if next == places {
                break;
            }
            places = next;
        }
        tree
    }

    fn empty(reader: u32) -> Self {
        let top = Node { is_there: true, ..Node::new(TOP, OsString::new()) };
        Self { nodes: vec![top], reader, not_read: Mutex::default() }
    }

    /// Joins what two aliases give for one place: a read that succeeded counts before one that failed.
    fn put(&mut self, id: Id, entry: Entry) {
        let Entry { meta, content } = entry;
        let is_absent = is_absent(&content);
        let Some(node) = self.nodes.get_mut(id) else { return };
        if is_absent && node.is_there {
            return;
        }
        node.meta = meta.or(node.meta);
        if says(Some(&content)) > says(node.content.as_ref()) {
            node.content = Some(content);
        }
        let mut at = Some(id).filter(|_| !is_absent);
        while let Some(node) = at.and_then(|id| self.nodes.get_mut(id)).filter(|node| !node.is_there) {
            node.is_there = true;
            at = Some(node.above);
        }
    }

    /// The node of a path, links followed. `None`: of a loop.
    fn make(&mut self, path: &Path) -> Option<Id> {
        let mut rest: Vec<OsString> = names(path).into_iter().map(owned).collect();
        let (mut at, mut followed) = (TOP, 0);
        while let Some(name) = rest.pop() {
            match name.as_bytes() {
                b"" | b"." => continue,
                b".." => {
                    at = self.node(at)?.above;
                    continue;
                }
                _ => {}
            }
            let next = self.child(at, &name)?;
            match self.node(next).and_then(|node| node.content.as_ref()) {
                Some(Content::Link(target)) => {
                    followed += 1;
                    if followed > MOST_LINKS {
                        return None;
                    }
                    if target.is_absolute() {
                        at = TOP;
                    }
                    rest.extend(target.as_os_str().as_bytes().split(|byte| *byte == b'/').rev().map(owned));
                }
                _ => at = next,
            }
        }
        Some(at)
    }

    /// Makes what a path leads to, without following a link at its end.
    fn make_itself(&mut self, path: &Path) -> Option<Id> {
        let folder = self.make(path.parent()?)?;
        self.child(folder, path.file_name()?)
    }

    fn child(&mut self, above: Id, name: &OsStr) -> Option<Id> {
        if let Some(id) = self.node(above)?.children.get(name) {
            return Some(*id);
        }
        let id = self.nodes.len();
        self.nodes.push(Node::new(above, name.to_owned()));
        self.nodes.get_mut(above)?.children.insert(name.to_owned(), id);
        Some(id)
    }
}

fn owned(name: &[u8]) -> OsString {
    OsString::from_vec(name.to_owned())
}

/// Ranks how much an answer tells of what is at a path.
fn says(content: Option<&Content>) -> u8 {
    match content {
        None | Some(Content::Failed(Errno::EISDIR)) => 0,
        Some(Content::Node) => 1,
        Some(Content::Failed(_) | Content::Unreachable(_) | Content::Unread(_)) => 2,
        Some(Content::File(_) | Content::Folder(_) | Content::Link(_)) => 3,
    }
}

fn is_absent(content: &Content) -> bool {
    matches!(content, Content::Failed(Errno::ENOENT | Errno::ENOTDIR) | Content::Unreachable(_))
}
