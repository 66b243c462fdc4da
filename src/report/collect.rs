//! What goes into a report, path by path: only what is asked for by name, never through a link out of /sys,
//! never from a fifo or a device, never more than the limits.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use root::{Error, Kept, Kind, RecordedNode, Root};
use serde::Serialize;

/// An attribute is one page; captures pad to that.
const ATTRIBUTE: usize = 64 << 10;
/// A configuration.
const CONFIG: usize = 1 << 20;
/// Everything together, with what an archive adds for each entry.
const TOTAL: usize = 16 << 20;
const ENTRY: usize = 512;
/// The record that holds them is read again under a limit.
const NOTES: usize = 500;
/// The number of links that rocworker follows in one path, which is the kernel's own (MAXSYMLINKS).
const LINKS: usize = 40;

const SYS: &str = "/sys";

/// What is at a path of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File(Vec<u8>),
    /// A file that may not be read here. It is carried empty with mode 0000, so that an ordinary user who
    /// unpacks it is refused as this process was.
    Denied,
    Link(PathBuf),
    Folder,
}

/// Something that was there and is not in the report, or not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: String,
}

pub(crate) struct Collector<'a> {
    pub(crate) root: &'a Root,
    pub(crate) entries: BTreeMap<PathBuf, Entry>,
    pub(crate) nodes: Vec<RecordedNode>,
    /// The paths that the archive leaves out, each with the reason.
    left_out: BTreeMap<PathBuf, String>,
    size: usize,
    /// Folders of sysfs by a path that leads over links; `None` where it leads to none.
    walked: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self {
            root,
            entries: BTreeMap::new(),
            nodes: Vec::new(),
            left_out: BTreeMap::new(),
            size: 0,
            walked: BTreeMap::new(),
        }
    }

    /// Takes an attribute of sysfs by a path that may lead over sysfs' own links, which it takes too. It passes over one
    /// that is not there.
    pub(crate) fn attribute(&mut self, path: &Path) {
        let Some(path) = self.placed(path) else { return };
        let Ok(meta) = self.root.lstat(&path) else { return };
        match meta.kind {
            Kind::Regular => {
                let read = self.root.read(&path, ATTRIBUTE);
                self.file(path, read);
            }
            Kind::Directory => self.put(path, Entry::Folder),
            other => self.leave_out(&path, format!("is {}", other.described())),
        }
    }

    /// Takes of sysfs what was read, as it was read then. A file that was not read is there and empty; of one that is not
    /// there, its folder says so.
    pub(crate) fn kept(&mut self, path: &Path, kept: Kept) {
        let Some(path) = self.placed(path) else { return };
        let Ok(meta) = self.root.lstat(&path) else {
            return path.parent().map_or((), |folder| self.put(folder.to_owned(), Entry::Folder));
        };
        match (meta.kind, kept) {
            (Kind::Regular, Kept::Read(read)) => self.file(path, read),
            (Kind::Regular, Kept::Looked) => self.put(path, Entry::File(Vec::new())),
            (Kind::Directory, _) => self.put(path, Entry::Folder),
            (Kind::Link, Kept::Looked) => _ = self.follow(&path),
            (other, _) => self.leave_out(&path, format!("is {}", other.described())),
        }
    }

    fn file(&mut self, path: PathBuf, read: Result<Vec<u8>, Error>) {
        match read {
            Ok(bytes) => self.put(path, Entry::File(bytes)),
            Err(error) => {
                self.leave_out(&path, error.to_string());
                if error.is_denied() {
                    self.put(path, Entry::Denied);
                }
            }
        }
    }

    pub(crate) fn attributes(&mut self, folder: &Path, names: &[&str]) {
        for name in names {
            self.attribute(&folder.join(name));
        }
    }

    /// Takes a folder of sysfs, and returns the names in it: none where there is no folder.
    pub(crate) fn names(&mut self, folder: &Path) -> Vec<String> {
        let Some(folder) = self.folder(folder) else { return Vec::new() };
        match self.root.list(&folder) {
            Ok(names) => {
                self.put(folder, Entry::Folder);
                names.into_iter().filter_map(|name| name.into_string().ok()).collect()
            }
            Err(error) => {
                self.leave_out(&folder, error.to_string());
                Vec::new()
            }
        }
    }

    /// The text of a configuration, where no part of its path is a link, which could lead to any file.
    pub(crate) fn config(&mut self, path: &Path) -> Option<String> {
        if !path.parent().is_some_and(|folder| self.is_reached_plainly(folder)) {
            return None;
        }
        let kind = self.root.lstat(path).ok()?.kind;
        if kind != Kind::Regular {
            self.leave_out(path, format!("is {}, which is not followed or read", kind.described()));
            return None;
        }
        match self.root.read_text(path, CONFIG) {
            Ok(text) => Some(text),
            Err(error) => {
                self.leave_out(path, error.to_string());
                None
            }
        }
    }

    /// Takes of a configuration what `kept` makes of its lines.
    pub(crate) fn lines(&mut self, path: impl AsRef<Path>, kept: impl Fn(&str) -> Option<String>) {
        let Some(text) = self.config(path.as_ref()) else { return };
        let lines: String = text.lines().filter_map(kept).map(|line| line + "\n").collect();
        self.put_text(path.as_ref(), lines);
    }

    /// The files with such an extension in a folder that is reached without a link.
    pub(crate) fn configs(&mut self, folder: &Path, extension: &str) -> Vec<PathBuf> {
        if !self.is_reached_plainly(folder) {
            return Vec::new();
        }
        // A folder that is not there, or a file in its place, holds no configuration.
        let names = self.root.list(folder).unwrap_or_default();
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        names
            .map(|name| folder.join(name))
            .filter(|path| path.extension().is_some_and(|it| it == extension))
            .collect()
    }

    /// Takes a device node by its numbers, or what is in its place.
    pub(crate) fn node(&mut self, path: &Path) {
        let Ok(meta) = self.root.stat(path) else { return };
        match (RecordedNode::from_meta(path.to_owned(), &meta), meta.kind) {
            (Some(node), _) => self.nodes.push(node),
            (None, Kind::Directory) => self.put(path.to_owned(), Entry::Folder),
            (None, Kind::Regular) => self.put(path.to_owned(), Entry::File(Vec::new())),
            (None, other) => self.leave_out(path, format!("is {}", other.described())),
        }
    }

    /// Puts something into the archive, unless it would then be too large.
    pub(crate) fn put(&mut self, path: PathBuf, entry: Entry) {
        if self.entries.contains_key(&path) {
            return;
        }
        let size = ENTRY + if let Entry::File(bytes) = &entry { bytes.len() } else { 0 };
        if self.size + size > TOTAL {
            return self.leave_out(&path, format!("the report would be larger than {TOTAL} bytes"));
        }
        self.size += size;
        self.entries.insert(path, entry);
    }

    pub(crate) fn put_text(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) {
        self.put(path.into(), Entry::File(text.into().into_bytes()));
    }

    /// Notes why a path is not taken; the first reason stays.
    pub(crate) fn leave_out(&mut self, path: &Path, reason: impl Into<String>) {
        self.left_out.entry(path.to_owned()).or_insert(reason.into());
    }

    /// What was left out, and how much more of it there would be.
    pub(crate) fn notes(&mut self) -> Vec<LeftOut> {
        let more = self.left_out.len().saturating_sub(NOTES);
        let notes = std::mem::take(&mut self.left_out).into_iter().take(NOTES);
        let notes = notes.map(|(path, reason)| LeftOut { path: path.display().to_string(), reason });
        let more = (more > 0).then(|| LeftOut { path: "…".to_owned(), reason: format!("and {more} more") });
        notes.chain(more).collect()
    }

    /// Whether every folder of a path is one, and no link.
    fn is_reached_plainly(&mut self, folder: &Path) -> bool {
        let folders: Vec<&Path> = folder.ancestors().filter(|it| it.parent().is_some()).collect();
        for folder in folders.into_iter().rev() {
            match self.root.lstat(folder).map(|meta| meta.kind) {
                Ok(Kind::Directory) => {}
                Ok(Kind::Link) => {
                    self.leave_out(folder, "is a symbolic link, which is not followed");
                    return false;
                }
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }

    /// Where an entry of sysfs really is: its folder's own place, and its name.
    fn placed(&mut self, path: &Path) -> Option<PathBuf> {
        let folder = self.folder(path.parent()?)?;
        Some(folder.join(path.file_name()?))
    }

    /// A folder of sysfs by a path that may lead over links, which it takes.
    fn folder(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.walked.get(path) {
            return known.clone();
        }
        let found = self.walk(path, 0);
        self.walked.insert(path.to_owned(), found.clone());
        found
    }

    /// `links`: how many links led to this path.
    fn walk(&mut self, path: &Path, links: usize) -> Option<PathBuf> {
        let mut place = PathBuf::new();
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            place.push(part);
            match self.root.lstat(&place).ok()?.kind {
                Kind::Directory => {}
                Kind::Link if links == LINKS => {
                    self.leave_out(&place, "goes in circles");
                    return None;
                }
                Kind::Link => {
                    let end = self.follow(&place)?;
                    return self.walk(&end.join(parts.as_path()), links + 1);
                }
                _ => return None,
            }
        }
        Some(place)
    }

    /// Takes the link at a place of sysfs, if it stays in there, and returns where it leads.
    fn follow(&mut self, place: &Path) -> Option<PathBuf> {
        let target = match self.root.read_link(place) {
            Ok(target) => target,
            Err(error) => {
                self.leave_out(place, error.to_string());
                return None;
            }
        };
        let mut end = PathBuf::new();
        for part in place.parent()?.join(&target).components() {
            match part {
                Component::ParentDir => drop(end.pop()),
                part => end.push(part),
            }
        }
        if !end.starts_with(SYS) {
            self.leave_out(place, format!("leads out of /sys, to {}", target.display()));
            return None;
        }
        self.put(place.to_owned(), Entry::Link(target));
        Some(end)
    }
}
