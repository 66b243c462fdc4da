//! The archive that a kernel unpacks as its first root file system: cpio's "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An initramfs in the making. Everything in it belongs to root, whoever makes it.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// A folder, with those above it; one that is there already is left.
    pub fn folder(&mut self, path: &str) {
        for (at, _) in path.match_indices('/').chain([(path.len(), "")]).filter(|(at, _)| *at > 0) {
            if self.folders.insert(path[..at].to_owned()) {
                self.entry(&path[..at], FOLDER, (0, 0), b"");
            }
        }
    }

    /// A file, with the folders above it. `path` has no leading slash, here and below.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.parents(path);
        self.entry(path, FILE | mode, (0, 0), content);
    }

    /// A copy of a file of this machine.
    ///
    /// # Panics
    /// Where it cannot be read.
    pub fn copy(&mut self, path: &str, mode: u32, from: &Path) {
        let content = fs::read(from).unwrap_or_else(|error| panic!("reading {}: {error}", from.display()));
        self.file(path, mode, &content);
    }

    pub fn link(&mut self, path: &str, target: &str) {
        self.parents(path);
        self.entry(path, LINK, (0, 0), target.as_bytes());
    }

    pub fn character_device(&mut self, path: &str, mode: u32, number: (u32, u32)) {
        self.parents(path);
        self.entry(path, CHARACTER_DEVICE | mode, number, b"");
    }

    /// The whole archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), b"");
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap();
        let name_size = u32::try_from(path.len() + 1).unwrap();
        // ino, mode, uid, gid, nlink, mtime, filesize, device's and node's numbers, namesize, checksum (unused).
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_of_110_bytes_a_name_and_content_each_padded_to_four() {
        let mut archive = Archive::default();
        archive.file("abc", 0o644, b"12345");
        let bytes = archive.finish();
        assert_eq!(&bytes[..22], b"07070100000001000081a4");
        assert_eq!((&bytes[110..114], &bytes[116..124]), (&b"abc\0"[..], &b"12345\0\0\0"[..]));
        assert_eq!((&bytes[124..130], bytes.len() % 4), (&b"070701"[..], 0));
    }

    #[test]
    fn the_folders_above_a_file_stand_before_it_each_once() {
        let mut archive = Archive::default();
        archive.file("a/b/c", 0o644, b"");
        archive.link("a/b/d", "c");
        let text = String::from_utf8(archive.finish()).unwrap();
        let at = |name: &str| text.match_indices(name).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!((at("a\0").len(), at("a/b\0").len()), (1, 1));
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0"));
    }
}
