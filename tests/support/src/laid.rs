//! A machine laid out beneath a folder, with what rocworker needs of a package, and what its tree looks like.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use layout::{Machine, Nodes};
use tempfile::TempDir;

use crate::crashes::Crashes;
use crate::detect::scratch;
use crate::tree::Tree;

/// The top folders to which rocworker or another program may write.
const TOPS: [&str; 5] = ["etc", "usr", "opt", "var", "run"];
/// rocworker's own state, which undo leaves.
const OWN: &str = "var/lib/rocworker";

/// Stands for the wrapper's program where nothing is run.
pub const WRAPPER: &str = "\u{7f}ELF: stands for the wrapper's program\n";

/// A machine for `--root`.
#[derive(Debug)]
pub struct Laid {
    dir: TempDir,
}

impl Laid {
    /// The machine, and the wrapper where a package puts it.
    ///
    /// # Panics
    /// Where it cannot be laid out.
    pub fn out(machine: &Machine) -> Self {
        let dir = scratch();
        machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
        let laid = Self { dir };
        laid.put_program("usr/lib/rocworker/runc-amd-wrapper", WRAPPER);
        laid
    }

    /// The folder.
    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// The path of a machine's file on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    /// Writes a file, with the folders that it needs.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes as [`Laid::put`] does, and makes the file executable.
    ///
    /// # Panics
    /// Where [`Laid::put`] panics.
    pub fn put_program(&self, path: &str, text: &str) {
        self.put(path, text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file's text.
    ///
    /// # Panics
    /// Where it is not there, or no text.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Everything but the kernel's trees and rocworker's own state, which undo leaves.
    pub fn tree(&self) -> Tree {
        let mut tree = self.all().without(&[OWN]);
        // The folders on the way to it stay as well.
        for folder in ["var/lib", "var"] {
            if tree.paths().filter(|path| path.starts_with(folder)).count() == 1 {
                tree = tree.without(&[folder]);
            }
        }
        tree
    }

    /// Everything but the kernel's trees, with rocworker's own state.
    pub fn all(&self) -> Tree {
        Tree::of(self.dir.path(), &TOPS)
    }

    /// [`Laid::all`] at each crash point of a run, which passes the hook to its Root.
    pub fn crashes(&self, run: impl FnOnce(Box<dyn Fn(&'static str, &Path) + Send + Sync>)) -> Crashes {
        Crashes::of(self.dir.path(), &TOPS, run)
    }

    /// Puts a tree that [`Laid::all`] gave back.
    pub fn put_back(&self, all: &Tree) {
        all.put_back(self.dir.path(), &TOPS);
    }

    /// Time of change of everything, to see whether anything was touched.
    ///
    /// # Panics
    /// Where something cannot be read.
    pub fn times(&self) -> BTreeMap<PathBuf, (i64, i64)> {
        let mut times = BTreeMap::new();
        let mut paths: Vec<PathBuf> = ["etc", "var", "usr"].map(|top| self.path(top)).into();
        while let Some(path) = paths.pop() {
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            times.insert(path.clone(), (meta.ctime(), meta.ctime_nsec()));
            if meta.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        times
    }
}
