//! What goes into a report, path by path: only what is asked for by name, never through a link out of /sys,
//! never from a fifo or a device, never more than the limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use root::{Kind, RecordedNode, Root};
use serde::Serialize;

/// An attribute is one page; captures pad to that.
const ATTRIBUTE: usize = 64 << 10;
/// A configuration.
const CONFIG: usize = 1 << 20;
/// Everything together, with what an archive adds for each entry.
const TOTAL: usize = 16 << 20;
const ENTRY: usize = 512;
/// More would tell nobody anything, and the record that holds them is read again under a limit.
const NOTES: usize = 500;
/// As the kernel follows (MAXSYMLINKS).
const LINKS: usize = 40;

const SYS: &str = "/sys";

/// What stands at a path of the archive.
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
    pub(crate) left_out: Vec<LeftOut>,
    notes_dropped: usize,
    size: usize,
    /// Folders by the way that leads to them, links and all; `None` where none does.
    walked: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self {
            root,
            entries: BTreeMap::new(),
            nodes: Vec::new(),
            left_out: Vec::new(),
            notes_dropped: 0,
            size: 0,
            walked: BTreeMap::new(),
        }
    }

    /// Takes an attribute of sysfs by a way that may lead over sysfs' own links, which are taken too. One that
    /// is not there is not missed.
    pub(crate) fn attribute(&mut self, path: &Path) {
        let Some(path) = self.placed(path) else { return };
        let Ok(meta) = self.root.lstat(&path) else { return };
        match meta.kind {
            Kind::Regular => self.read_into(&path),
            Kind::Directory => self.put(path, Entry::Folder),
            other => self.leave_out(&path, format!("is {}", other.described())),
        }
    }

    pub(crate) fn attributes(&mut self, folder: &Path, names: &[&str]) {
        for name in names {
            self.attribute(&folder.join(name));
        }
    }

    /// Takes a link of sysfs, not what it leads to.
    pub(crate) fn link(&mut self, path: &Path) {
        let Some(path) = self.placed(path) else { return };
        if self.root.lstat(&path).is_ok_and(|meta| meta.kind == Kind::Link) {
            self.follow(&path);
        }
    }

    /// The names in a folder of sysfs, and the folder itself, be it empty.
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

    /// The text of a configuration, where no part of the way to it is a link: nobody's other files are taken.
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

    /// The names in a folder that is reached without a link; of the kinds that are wanted.
    pub(crate) fn configs(&mut self, folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
        if !self.is_reached_plainly(folder) {
            return Vec::new();
        }
        // A folder that is not there, or a file in its place, holds no configuration.
        let names = self.root.list(folder).unwrap_or_else(|_| Vec::new());
        let wanted =
            |name: &Path| name.extension().is_some_and(|ext| extensions.iter().any(|want| ext == *want));
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        names.map(|name| folder.join(name)).filter(|path| wanted(path)).collect()
    }

    /// Takes a device node by its numbers. What is no device but stands in its place is taken as what it is.
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

    pub(crate) fn leave_out(&mut self, path: &Path, reason: impl Into<String>) {
        if self.left_out.len() == NOTES {
            self.notes_dropped += 1;
            return;
        }
        self.left_out.push(LeftOut { path: path.display().to_string(), reason: reason.into() });
    }

    /// All notes, and how many more there would have been.
    pub(crate) fn notes(&mut self) -> Vec<LeftOut> {
        let mut notes = std::mem::take(&mut self.left_out);
        if self.notes_dropped > 0 {
            notes
                .push(LeftOut { path: "…".to_owned(), reason: format!("and {} more", self.notes_dropped) });
        }
        notes
    }

    fn read_into(&mut self, path: &Path) {
        match self.root.read(path, ATTRIBUTE) {
            Ok(bytes) => self.put(path.to_owned(), Entry::File(bytes)),
            Err(error) => {
                if error.is_denied() {
                    self.put(path.to_owned(), Entry::Denied);
                }
                self.leave_out(path, error.to_string());
            }
        }
    }

    /// Whether every folder on the way is one, and no link.
    fn is_reached_plainly(&mut self, folder: &Path) -> bool {
        let mut way = PathBuf::from("/");
        for part in folder.components().skip(1) {
            way.push(part);
            match self.root.lstat(&way).map(|meta| meta.kind) {
                Ok(Kind::Directory) => {}
                Ok(Kind::Link) => {
                    if !self.left_out.iter().any(|note| Path::new(&note.path) == way) {
                        self.leave_out(&way, "is a symbolic link, which is not followed");
                    }
                    return false;
                }
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }

    /// Where an entry of sysfs really stands: its folder's own place, and its name.
    fn placed(&mut self, path: &Path) -> Option<PathBuf> {
        let folder = self.folder(path.parent()?)?;
        Some(folder.join(path.file_name()?))
    }

    /// A folder of sysfs by the way that leads to it; the links on the way are taken.
    fn folder(&mut self, way: &Path) -> Option<PathBuf> {
        if let Some(known) = self.walked.get(way) {
            return known.clone();
        }
        let found = self.walk(way);
        self.walked.insert(way.to_owned(), found.clone());
        found
    }

    fn walk(&mut self, way: &Path) -> Option<PathBuf> {
        let mut place = PathBuf::from("/");
        let mut ahead: Vec<PathBuf> = parts(way);
        let mut links = BTreeSet::new();
        while let Some(part) = ahead.pop() {
            if part == Path::new("..") {
                place.pop();
                continue;
            }
            place.push(part);
            if !place.starts_with(SYS) {
                self.leave_out(way, "leads out of /sys");
                return None;
            }
            match self.root.lstat(&place).ok()?.kind {
                Kind::Directory => {}
                Kind::Link => {
                    if links.len() == LINKS || !links.insert(place.clone()) {
                        self.leave_out(way, "goes in circles");
                        return None;
                    }
                    let target = self.follow(&place)?;
                    place.pop();
                    if target.is_absolute() {
                        place = PathBuf::from("/");
                    }
                    ahead.extend(parts(&target));
                }
                _ => return None,
            }
        }
        Some(place)
    }

    /// Takes the link at a place of sysfs, if it stays in there.
    fn follow(&mut self, place: &Path) -> Option<PathBuf> {
        let target = match self.root.read_link(place) {
            Ok(target) => target,
            Err(error) => {
                self.leave_out(place, error.to_string());
                return None;
            }
        };
        let end = ended(place.parent()?, &target);
        if !end.starts_with(SYS) {
            self.leave_out(place, format!("leads out of /sys, to {}", target.display()));
            return None;
        }
        self.put(place.to_owned(), Entry::Link(target.clone()));
        Some(target)
    }
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let named = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let mut parts: Vec<PathBuf> = named.map(|part| PathBuf::from(part.as_os_str())).collect();
    parts.reverse();
    parts
}

/// Where a link leads by its words alone.
fn ended(folder: &Path, target: &Path) -> PathBuf {
    let mut place = if target.is_absolute() { PathBuf::from("/") } else { folder.to_owned() };
    let mut ahead = parts(target);
    while let Some(part) = ahead.pop() {
        if part == Path::new("..") {
            place.pop();
        } else {
            place.push(part);
        }
    }
    place
}
