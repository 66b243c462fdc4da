//! Machines on which hooks run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use layout::{Machine, Nodes};
use support::tree::Tree;
use tempfile::TempDir;

/// The charm's (fourdollars/concourse-ci-machine, lib/concourse_worker.py), without what needs a network.
pub(crate) const WORKER_UNIT: &str = "[Unit]
Description=Concourse CI Worker

[Service]
Type=simple
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
ExecStart=/var/lib/concourse/bin/concourse worker
Restart=on-failure
";

/// A machine laid out beneath a folder, with what the Debian package puts there: programs that are used as they stand.
pub(crate) struct Laid {
    dir: TempDir,
}

impl Laid {
    pub(crate) fn out(machine: &Machine) -> Self {
        let dir = support::detect::scratch();
        machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
        let laid = Self { dir };
        laid.put("usr/lib/rocworker/runc-amd-wrapper", "stands for the wrapper's program\n");
        laid.put("etc/group", "root:x:0:\nrender:x:104:\n");
        laid.put("usr/bin/rocworker", "stands for the program\n");
        for program in ["usr/lib/rocworker/runc-amd-wrapper", "usr/bin/rocworker"] {
            fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        laid
    }

    /// The machine of the verification report, with a worker as the Concourse charm makes it.
    pub(crate) fn worker() -> Self {
        let laid = Self::out(&support::captures::phoenix_beside_rtx4080());
        laid.put("etc/systemd/system/concourse-worker.service", WORKER_UNIT);
        laid.put("var/lib/concourse-worker/worker-config.env", "CONCOURSE_RUNTIME=containerd\n");
        laid.put("var/lib/concourse/bin/concourse", "");
        laid.put("var/lib/concourse/bin/containerd", "");
        laid
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All but the kernel's trees and rocworker's own state.
    pub(crate) fn tree(&self) -> Tree {
        self.all().without(&["var/lib/rocworker"])
    }

    pub(crate) fn all(&self) -> Tree {
        Tree::of(self.dir.path(), &["etc", "usr", "opt", "var", "run"])
    }

    pub(crate) fn put_back(&self, all: &Tree) {
        all.put_back(self.dir.path(), &["etc", "usr", "opt", "var", "run"]);
    }

    /// Time of change of everything, to see whether anything was touched.
    pub(crate) fn times(&self) -> BTreeMap<PathBuf, (i64, i64)> {
        let mut times = BTreeMap::new();
        let mut folders: Vec<PathBuf> = ["etc", "var", "usr"].map(|top| self.path(top)).into();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
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
