//! The files beneath a folder, to be compared and to be restored.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs};

/// Everything beneath some folders of a top folder, by its path beneath the top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Entry>);

/// The file at a path: type and mode, owner, and the bytes or a link's target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub bytes: Vec<u8>,
}

impl Tree {
    /// Reads these folders of `top`; one that is not there holds nothing.
    ///
    /// # Panics
    /// Where something cannot be read.
    pub fn of(top: &Path, folders: &[&str]) -> Self {
        let mut tree = Self::default();
        for folder in folders {
            tree.collect(top, &top.join(folder));
        }
        tree
    }

    fn collect(&mut self, top: &Path, path: &Path) {
        let Ok(meta) = fs::symlink_metadata(path) else { return };
        let bytes = if meta.is_symlink() {
            fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
        } else if meta.is_file() {
            fs::read(path).unwrap()
        } else {
            Vec::new()
        };
        let entry = Entry { mode: meta.mode(), uid: meta.uid(), gid: meta.gid(), bytes };
        self.0.insert(path.strip_prefix(top).unwrap().to_owned(), entry);
        if meta.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.collect(top, &entry.unwrap().path());
            }
        }
    }

    /// Puts it back, and nothing else beneath these folders.
    ///
    /// # Panics
    /// Where something cannot be written.
    pub fn put_back(&self, top: &Path, folders: &[&str]) {
        for folder in folders {
            let folder = top.join(folder);
            if folder.exists() {
                fs::remove_dir_all(folder).unwrap();
            }
        }
        // Folders come before what is in them.
        for (path, entry) in &self.0 {
            let path = top.join(path);
            match entry.mode & 0o170_000 {
                0o040_000 => fs::create_dir(&path).unwrap(),
                // A null device by any name: what a test gives and takes is its mode and owner.
                0o020_000 => assert!(
                    Command::new("mknod").arg(&path).args(["c", "1", "3"]).status().unwrap().success()
                ),
                0o120_000 => symlink(OsStr::from_bytes(&entry.bytes), &path).unwrap(),
                _ => fs::write(&path, &entry.bytes).unwrap(),
            }
            lchown(&path, Some(entry.uid), Some(entry.gid)).unwrap();
            if entry.mode & 0o170_000 != 0o120_000 {
                fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode & 0o7777)).unwrap();
            }
        }
    }

    pub fn get(&self, path: impl AsRef<Path>) -> Option<&Entry> {
        self.0.get(path.as_ref())
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The tree without these paths and what is beneath them.
    #[must_use]
    pub fn without(mut self, paths: &[&str]) -> Self {
        self.0.retain(|path, _| !paths.iter().any(|out| path.starts_with(out)));
        self
    }

    /// The tree with another name for each path for which `name` gives one.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&Path) -> Option<PathBuf>) -> Self {
        Self(self.0.into_iter().map(|(path, entry)| (name(&path).unwrap_or(path), entry)).collect())
    }

    /// The tree without the folders that `is_out` selects; what is beneath them stays.
    #[must_use]
    pub fn without_folders(mut self, is_out: impl Fn(&Path) -> bool) -> Self {
        self.0.retain(|path, entry| entry.mode & 0o170_000 != 0o040_000 || !is_out(path));
        self
    }

    /// The paths at which this one is as none of the others is, each with what stands there.
    pub fn differences(&self, others: &[&Self]) -> Vec<String> {
        let mut paths: Vec<&Path> = self.paths().collect();
        paths.extend(others.iter().flat_map(|other| other.paths()));
        paths.sort_unstable();
        paths.dedup();
        let is_off = |path: &&Path| others.iter().all(|other| other.get(path) != self.get(path));
        let line = |path: &Path| {
            let others: Vec<_> = others.iter().map(|other| described(other.get(path))).collect();
            format!("{}: {}, not {}", path.display(), described(self.get(path)), others.join(" or "))
        };
        paths.into_iter().filter(is_off).map(line).collect()
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&described(Some(self)))
    }
}

fn described(entry: Option<&Entry>) -> String {
    entry.map_or_else(
        || "absent".to_owned(),
        |it| {
            let bytes = it.bytes.get(..it.bytes.len().min(600)).unwrap_or_default();
            let text = String::from_utf8_lossy(bytes);
            format!("{:o} {}:{} {} bytes {text:?}", it.mode, it.uid, it.gid, it.bytes.len())
        },
    )
}
