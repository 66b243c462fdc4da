//! What of a machine's files goes into a report, path by path: never through a link out of /sys, never from a fifo or a
//! device, never more than the limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use inventory::topology::Topology;
use inventory::{Inventory, PciAddress};
use root::{Error, Kept, Kind, RecordedNode, Root};
use serde::Serialize;

use super::keep::{Filter, is_listed, is_path};

/// Everything together, with what an archive adds for each entry.
const TOTAL: usize = 16 << 20;
const ENTRY: usize = 512;
/// The record that holds them is read again under a limit.
const NOTES: usize = 500;
/// The number of links that rocworker follows in one path, which is the kernel's own (MAXSYMLINKS).
const LINKS: usize = 40;

const SYS: &str = "/sys";
const DEVICES: &str = "/sys/bus/pci/devices";

/// Where sysfs has devices and drivers: all of a file there is the kernel's. The strings of DMI are a vendor's.
const OF_KERNEL: [&str; 5] = ["/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/module"];

/// What says who uses the GPUs. status.json has of the receipt what a report keeps, and logs/kernel.log of the kernel's
/// log.
const NOT_CARRIED: [&str; 5] = [
    "/dev/kmsg",
    "/sys/class/kfd/kfd/proc",
    "/run/rocworker/exporter.json",
    "/var/lib/rocworker/receipt.json",
    "/var/lib/rocworker/reports",
];

/// The files outside of the system's folders that are about the machine.
const OF_MACHINE: [&str; 6] = [
    "/.dockerenv",
    "/proc/1/environ",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/devices",
    "/proc/sys/kernel/osrelease",
];

/// The nodes of GPUs.
const NODES: [&str; 2] = ["/dev/dri", "/dev/kfd"];

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

impl Entry {
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if let Self::File(bytes) = self { Some(bytes) } else { None }
    }
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
    /// File to number of keys and words of it that the archive lacks.
    pub(crate) removed: BTreeMap<String, usize>,
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
            removed: BTreeMap::new(),
            left_out: BTreeMap::new(),
            size: 0,
            walked: BTreeMap::new(),
        }
    }

    /// Takes what was read through the Root: of sysfs GPUs, the bridges above them and what may be a GPU. The reader asks
    /// every other function what it is, too: a report says nothing of it.
    pub(crate) fn reads(&mut self, inventory: &Inventory, topology: &Topology) {
        let unread = inventory.unread.iter().filter_map(|unread| function_of(&unread.file()?));
        let cards = topology.cards.iter().flat_map(|card| card.bridges.iter().chain([&card.address]));
        let functions: BTreeSet<PciAddress> = cards.copied().chain(unread).collect();
        for (path, kept) in self.root.reads() {
            if NOT_CARRIED.iter().any(|it| path.starts_with(it)) {
            } else if path.starts_with(SYS) {
                if function_of(&path).is_none_or(|function| functions.contains(&function)) {
                    self.of_sysfs(&path, kept);
                }
            } else if OF_MACHINE.iter().any(|it| path == Path::new(it)) || is_path(&path.to_string_lossy()) {
                self.other(path, kept);
            }
        }
        self.groups();
    }

    /// A file that was not read is there and empty; of one that is not there, its folder says so.
    fn of_sysfs(&mut self, path: &Path, kept: Kept) {
        let Some(path) = self.placed(path) else { return };
        let Ok(meta) = self.root.lstat(&path) else {
            return path.parent().map_or((), |folder| self.put(folder.to_owned(), Entry::Folder));
        };
        match (meta.kind, kept) {
            (Kind::Regular, Kept::Read(Ok(bytes))) => {
                let is_kernels = OF_KERNEL.iter().any(|it| path.starts_with(it))
                    && !path.components().any(|it| it.as_os_str() == "dmi");
                let text = |bytes: &[u8]| Filter::default().words(String::from_utf8_lossy(bytes).trim());
                let bytes = if is_kernels { bytes } else { text(&bytes).unwrap_or_default().into_bytes() };
                self.put(path, Entry::File(bytes));
            }
            (Kind::Regular, Kept::Read(Err(error))) => self.unread(path, &error),
            (Kind::Regular, Kept::Looked) => self.put(path, Entry::File(Vec::new())),
            (Kind::Directory, _) => self.put(path, Entry::Folder),
            (Kind::Link, Kept::Looked) => _ = self.follow(&path),
            (other, _) => self.leave_out(&path, format!("is {}", other.described())),
        }
    }

    fn other(&mut self, path: PathBuf, kept: Kept) {
        match (self.root.stat(&path), kept) {
            (Ok(meta), kept) => match (RecordedNode::from_meta(path.clone(), &meta), meta.kind, kept) {
                (Some(node), ..) if NODES.iter().any(|it| path.starts_with(it)) => self.nodes.push(node),
                (Some(_), ..) => {}
                (_, Kind::Directory, _) => self.put(path, Entry::Folder),
                (_, Kind::Regular, Kept::Looked) => self.put(path, Entry::File(Vec::new())),
                (_, Kind::Regular, Kept::Read(Ok(bytes))) => self.text(path, &bytes),
                (_, Kind::Regular, Kept::Read(Err(error))) => self.unread(path, &error),
                (_, other, _) => self.leave_out(&path, format!("is {}", other.described())),
            },
            (Err(error), _) if !error.is_not_found() => self.leave_out(&path, error.to_string()),
            (Err(_), _) => {}
        }
    }

    /// Takes of a text the listed keys with typed values.
    fn text(&mut self, path: PathBuf, bytes: &[u8]) {
        let mut filter = Filter::default();
        match str::from_utf8(bytes).map_err(|_| "is not text").and_then(|text| filter.file(&path, text)) {
            Ok(Some(text)) => {
                if filter.removed > 0 {
                    self.removed.insert(path.display().to_string(), filter.removed);
                }
                self.put(path, Entry::File(text.into_bytes()));
            }
            Ok(None) => self.leave_out(&path, "has no key of a report's list"),
            Err(problem) => self.leave_out(&path, problem),
        }
    }

    fn unread(&mut self, path: PathBuf, error: &Error) {
        self.leave_out(&path, error.to_string());
        if error.is_denied() {
            self.put(path, Entry::Denied);
        }
    }

    /// video, render, and the groups of listed names that own a node; not who is in them.
    fn groups(&mut self) {
        const FILE: &str = "/etc/group";
        let Ok(text) = self.root.read_text(FILE, 4 << 20) else { return };
        let owners: BTreeSet<u32> = self.nodes.iter().map(|node| node.gid).collect();
        let lines = text.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, gid) = (fields.next()?, fields.nth(1)?.parse::<u32>().ok()?);
            let is_kept = matches!(name, "video" | "render") || owners.contains(&gid) && is_listed(name);
            is_kept.then(|| format!("{name}:x:{gid}:\n"))
        });
        self.entries.insert(FILE.into(), Entry::File(lines.collect::<String>().into_bytes()));
        self.left_out.remove(Path::new(FILE));
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

    /// Notes why a path is not taken; the first reason stays.
    pub(crate) fn leave_out(&mut self, path: &Path, reason: impl Into<String>) {
        // How paths begin beneath another Root than `/` is nobody's business.
        let beneath = self.root.shown("/").display().to_string();
        self.left_out.entry(path.to_owned()).or_insert(reason.into().replace(&beneath, "/"));
    }

    /// What was left out, and how much more of it there would be.
    pub(crate) fn notes(&mut self) -> Vec<LeftOut> {
        let more = self.left_out.len().saturating_sub(NOTES);
        let notes = std::mem::take(&mut self.left_out).into_iter().take(NOTES);
        let notes = notes.map(|(path, reason)| LeftOut { path: path.display().to_string(), reason });
        let more = (more > 0).then(|| LeftOut { path: "…".to_owned(), reason: format!("and {more} more") });
        notes.chain(more).collect()
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
            self.leave_out(place, "leads out of /sys");
            return None;
        }
        self.put(place.to_owned(), Entry::Link(target));
        Some(end)
    }
}

/// The PCI function that a path belongs to.
fn function_of(path: &Path) -> Option<PciAddress> {
    path.strip_prefix(DEVICES).ok()?.iter().next()?.to_str()?.parse().ok()
}
