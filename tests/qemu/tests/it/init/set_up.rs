//! The machine's files as `rocworker apply` has left them at an earlier start, at which there was one card more.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::{Entry, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use qemu_machine::archive::Archive;
use support::release::Release;
use tempfile::TempDir;

use crate::machine::laid::{ADDRESS, DEVICE};

/// The machine in QEMU has the first of them alone.
const CARDS: [(&str, u32); 2] = [(ADDRESS, 128), ("0000:00:06.0", 129)];

/// The machine's files before rocworker comes.
const FILES: [(&str, &str); 6] = [
    // A machine in software is slow, and nothing is looked at without a reason.
    (
        "etc/rocworker/config.yaml",
        "boot: {wait-s: 120}\ndaemon: {interval-s: 86400}\n\
         partitions: {profile: whole, profiles: {whole: [{cards: all, skip: true}]}}\n",
    ),
    // What tells an engine's version beneath another root than /.
    ("var/lib/dpkg/status", "Package: containerd\nStatus: install ok installed\nVersion: 1.7.24~ds1-6\n"),
    ("etc/passwd", "root:x:0:0:root:/:/bin/sh\n"),
    ("etc/group", "root:x:0:\ntty:x:5:\nvideo:x:44:\nrender:x:104:\nsystemd-journal:x:999:\n"),
    // The charm's (fourdollars/concourse-ci-machine, lib/concourse_worker.py), as far as it starts the worker.
    (
        "etc/systemd/system/concourse-worker.service",
        "[Service]\nType=simple\nEnvironmentFile=/var/lib/concourse-worker/worker-config.env\n\
         ExecStart=/var/lib/concourse/bin/concourse worker\n",
    ),
    (
        "var/lib/concourse-worker/worker-config.env",
        "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n",
    ),
];

/// The files of containerd's package.
const CONTAINERD: [&str; 3] =
    ["usr/bin/containerd", "usr/lib/systemd/system/containerd.service", "etc/containerd/config.toml"];

/// Stand-ins of Concourse's programs: the worker notes what it finds at its start (guest/record.sh).
const PROGRAMS: [(&str, &str); 2] = [
    (
        "var/lib/concourse/bin/concourse",
        "#!/bin/sh\ncase $1 in --version) echo 7.14.3; exit ;; esac\nsh /test/record.sh worker\nexec sleep infinity\n",
    ),
    (
        "var/lib/concourse/bin/containerd",
        "#!/bin/sh\necho containerd github.com/containerd/containerd v1.7.24 0\n",
    ),
];

pub(crate) struct SetUp(TempDir);

impl SetUp {
    /// Has it set up by this program. containerd is the release's.
    pub(crate) fn by(rocworker: &Path, wrapper: &Path, release: &Release) -> Self {
        let set_up = Self(tempfile::tempdir().unwrap());
        machine().lay_out(set_up.0.path(), Nodes::Recorded).unwrap();
        let ours = [("usr/bin/rocworker", rocworker), ("usr/lib/rocworker/runc-amd-wrapper", wrapper)];
        let theirs = CONTAINERD.map(|path| (path, release.file(path)));
        let theirs = theirs.iter().map(|(path, from)| (*path, from.as_path()));
        for (path, from) in ours.into_iter().chain(theirs) {
            fs::copy(from, set_up.place(path)).unwrap();
        }
        for (path, text) in FILES.into_iter().chain(PROGRAMS) {
            fs::write(set_up.place(path), text).unwrap();
        }
        for (path, _) in PROGRAMS {
            fs::set_permissions(set_up.place(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let output =
            Command::new(rocworker).arg("--root").arg(set_up.0.path()).arg("apply").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        set_up
    }

    /// A file's text.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }

    /// Packs what was there and what was set up; `/sys`, `/dev` and `/run` are the kernel's and systemd's.
    pub(crate) fn pack(&self, archive: &mut Archive) {
        ["etc", "usr", "var"].iter().for_each(|folder| self.pack_folder(archive, folder));
    }

    fn pack_folder(&self, archive: &mut Archive, folder: &str) {
        archive.folder(folder);
        for entry in fs::read_dir(self.0.path().join(folder)).unwrap().map(Result::unwrap) {
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                self.pack_folder(archive, &path);
            } else if meta.is_symlink() {
                archive.link(&path, fs::read_link(entry.path()).unwrap().to_str().unwrap());
            } else {
                archive.copy(&path, meta.permissions().mode() & 0o7777, &entry.path());
            }
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.0.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }
}

fn machine() -> Machine {
    let mut machine =
        Machine::new().module(Module::new("amdgpu")).put("/run/systemd/system", Entry::Directory);
    let mut kfd = Kfd::new(241).node(KfdNode::cpu(1));
    for (number, (address, render)) in (0..).zip(CARDS) {
        machine = machine.gpu(Gpu::amd(address, DEVICE).card(number).render(render));
        kfd = kfd.node(KfdNode::gpu(number + 1, DEVICE, 110_000).at(address).render(render));
    }
    machine.kfd(kfd)
}
