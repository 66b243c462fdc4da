use std::collections::BTreeMap;

use crate::Error;

/// Links followed before a path is given up, as in the kernel (MAXSYMLINKS).
const MAX_LINKS: usize = 40;

/// The file at a path of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A folder that stands there even when nothing is in it.
    Directory,
    /// A file with these bytes.
    File(Vec<u8>),
    /// A symbolic link with this target, relative as the kernel's are, dangling or not.
    Link(String),
    /// A character device.
    Device(Device),
}

/// A character device in `/dev`. Owner root, group and mode as the distributions' udev rules
/// leave them, until told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits, without the file type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Device {
    /// A device of root's with mode 0660.
    pub fn new(major: u32, minor: u32, gid: u32) -> Self {
        Self { major, minor, mode: 0o660, uid: 0, gid }
    }

    /// Changes the permission bits.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        Self::File(text.as_bytes().to_vec())
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self::File(text.into_bytes())
    }
}

impl From<Vec<u8>> for Entry {
    fn from(bytes: Vec<u8>) -> Self {
        Self::File(bytes)
    }
}

impl From<Device> for Entry {
    fn from(device: Device) -> Self {
        Self::Device(device)
    }
}

/// The machine's files by path, without the leading slash. Folders on the way to an entry are
/// implied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an entry at a path as it is spelled, in place of any other. `/sys/a` and `sys/a` are one path.
    pub fn put(&mut self, path: &str, entry: impl Into<Entry>) {
        let path = path.trim_start_matches('/');
        self.remove(path);
        self.entries.insert(path.to_owned(), entry.into());
    }

    /// Removes what stands at a path, with everything beneath it.
    pub fn remove(&mut self, path: &str) {
        let path = path.trim_start_matches('/');
        let beneath = format!("{path}/");
        self.entries.remove(path);
        let inside = self.entries.range(beneath.clone()..).map(|(key, _)| key);
        let inside: Vec<String> = inside.take_while(|key| key.starts_with(&beneath)).cloned().collect();
        for key in inside {
            self.entries.remove(&key);
        }
    }

    /// The entry at a path as it is spelled. An implied folder is not an entry.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path.trim_start_matches('/'))
    }

    /// Every entry with its path (no leading slash), parents before children.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The part of the tree beneath a folder, its paths relative to that folder.
    #[must_use]
    pub fn beneath(&self, folder: &str) -> Self {
        let prefix = format!("{}/", folder.trim_matches('/'));
        let inside = self.entries.iter().filter_map(|(path, entry)| {
            path.strip_prefix(&prefix).map(|inside| (inside.to_owned(), entry.clone()))
        });
        Self { entries: inside.collect() }
    }

    /// Adds what two independent parts of a machine must not both claim.
    pub(crate) fn claim(&mut self, path: &str, entry: impl Into<Entry>) -> Result<(), Error> {
        if self.get(path).is_some() {
            return Err(Error::Twice { path: path.to_owned() });
        }
        self.put(path, entry);
        Ok(())
    }

    /// Lays another tree over this one, beneath `folder`; what it has wins.
    pub(crate) fn overlay(&mut self, folder: &str, other: &Self) {
        for (path, entry) in other.iter() {
            self.put(&format!("{}/{path}", folder.trim_matches('/')), entry.clone());
        }
    }

    /// The path with every link on the way followed, the last component's own not: what a write
    /// to `/sys/class/drm/card1/device/vendor` reaches.
    pub(crate) fn resolve(&self, path: &str) -> Result<String, Error> {
        let lost = || Error::Path { path: path.to_owned() };
        let mut ahead: Vec<String> = components(path).rev().map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                done.pop().ok_or_else(lost)?;
                continue;
            }
            done.push(part);
            let Some(Entry::Link(target)) = self.entries.get(&done.join("/")) else { continue };
            if ahead.is_empty() {
                break;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(lost());
            }
            if target.starts_with('/') {
                done.clear()
            } else {
                drop(done.pop())
            }
            ahead.extend(components(target).rev().map(str::to_owned));
        }
        if done.is_empty() { Err(lost()) } else { Ok(done.join("/")) }
    }
}

impl Tree {
    /// Resolves a path as [`Tree::resolve`] does, and follows a link at the end, too: gives the folder to
    /// which it leads.
    pub(crate) fn resolve_folder(&self, path: &str) -> Result<String, Error> {
        let inside = self.resolve(&format!("{path}/inside"))?;
        Ok(inside.trim_end_matches("/inside").to_owned())
    }
}

fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// The link text that leads from the folder that holds `link` to `target`, both inside the
/// machine: the relative form in which sysfs writes every link.
pub(crate) fn relative(link: &str, target: &str) -> String {
    let from: Vec<&str> = components(link).collect();
    let to: Vec<&str> = components(target).collect();
    let folder = from.len().saturating_sub(1);
    let common = from.iter().take(folder).zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", folder - common);
    up.chain(to.iter().skip(common).copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::{Entry, Tree, relative};

    #[test]
    fn links_are_written_relative_as_sysfs_writes_them() {
        for (link, target, text) in [
            (
                "/sys/class/drm/card1",
                "/sys/devices/pci0000:00/x/drm/card1",
                "../../devices/pci0000:00/x/drm/card1",
            ),
            ("/sys/devices/a/drm/card1/subsystem", "/sys/class/drm", "../../../../class/drm"),
            (
                "/sys/bus/pci/devices/0000:64:00.0",
                "/sys/devices/p/0000:64:00.0",
                "../../../devices/p/0000:64:00.0",
            ),
        ] {
            assert_eq!(relative(link, target), text);
        }
    }

    #[test]
    fn a_path_through_links_reaches_the_file_that_a_kernel_would_reach() {
        let mut tree = Tree::new();
        tree.put("/sys/class/drm/card1", Entry::Link("../../devices/p/drm/card1".to_owned()));
        tree.put("/sys/devices/p/drm/card1/device", Entry::Link("../../../p".to_owned()));
        tree.put("/loop/a", Entry::Link("a".to_owned()));
        for (path, reached) in [
            ("/sys/class/drm/card1/device/vendor", Some("sys/devices/p/vendor")),
            ("/sys/class/drm/card1", Some("sys/class/drm/card1")),
            ("/sys/class/drm/card1/device", Some("sys/devices/p/drm/card1/device")),
            ("/sys/../../etc/passwd", None),
            ("/loop/a/b", None),
            ("/", None),
        ] {
            assert_eq!(tree.resolve(path).ok().as_deref(), reached, "{path}");
        }
    }

    #[test]
    fn removing_a_folder_takes_what_is_in_it_and_nothing_beside_it() {
        let mut tree = Tree::new();
        tree.put("/dev/dri/card0", "a");
        tree.put("/dev/dri/card01", "b");
        tree.put("/dev/dri/card0/x", "c");
        tree.remove("/dev/dri/card0");
        assert_eq!(tree.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["dev/dri/card01"]);
    }
}
