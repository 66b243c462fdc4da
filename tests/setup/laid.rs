//! A machine laid out in a folder, with what rocworker needs of a package, and what its tree looks like.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use layout::{Machine, Nodes};
use serde_json::Value;
use support::detect::scratch;
use support::tree::Tree;

/// What rocworker may write to, or somebody else.
const TOPS: [&str; 5] = ["etc", "usr", "opt", "var", "run"];

pub(crate) struct Laid {
    dir: tempfile::TempDir,
}

impl Laid {
    /// The demo's machine, with the wrapper where a package puts it, and this configuration.
    pub(crate) fn demo(config: &str) -> Self {
        Self::out(&Machine::demo(), config)
    }

    pub(crate) fn out(machine: &Machine, config: &str) -> Self {
        let dir = scratch();
        machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
        let laid = Self { dir };
        laid.put("usr/lib/rocworker/runc-amd-wrapper", "stands for the wrapper's program\n");
        fs::set_permissions(
            laid.path("usr/lib/rocworker/runc-amd-wrapper"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        laid.put("etc/rocworker/config.yaml", config);
        laid
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Assert {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        command.arg("--root").arg(self.dir.path()).args(arguments).assert()
    }

    /// What a command answers to a program, whatever its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat()).get_output().clone();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })
    }

    /// What a command says on stderr, and its exit code.
    pub(crate) fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments).get_output().clone();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    /// /etc, /usr and /opt and all else but the kernel's trees and rocworker's own state, which undo leaves.
    pub(crate) fn tree(&self) -> Tree {
        let own = ["var/lib/rocworker"];
        let mut tree = self.all().without(&own);
        // The folders on the way to it stay as well.
        for folder in ["var/lib", "var"] {
            if tree.paths().filter(|path| path.starts_with(folder)).count() == 1 {
                tree = tree.without(&[folder]);
            }
        }
        tree
    }

    /// The same, and rocworker's own state.
    pub(crate) fn all(&self) -> Tree {
        Tree::of(self.dir.path(), &TOPS)
    }

    /// Puts a tree that [`Laid::all`] gave back.
    pub(crate) fn put_back(&self, all: &Tree) {
        all.put_back(self.dir.path(), &TOPS);
    }

    pub(crate) fn top(&self) -> &Path {
        self.dir.path()
    }

    /// Time of change of everything, to see whether anything was touched.
    pub(crate) fn times(&self) -> BTreeMap<PathBuf, (i64, i64)> {
        let mut times = BTreeMap::new();
        let mut folders =
            vec![self.dir.path().join("etc"), self.dir.path().join("var"), self.dir.path().join("usr")];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let meta = fs::symlink_metadata(&folder).unwrap();
            times.insert(folder.clone(), (meta.ctime(), meta.ctime_nsec()));
            for entry in entries {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                times.insert(path.clone(), (meta.ctime(), meta.ctime_nsec()));
                if meta.is_dir() {
                    folders.push(path);
                }
            }
        }
        times
    }
}
