//! A laid-out machine put in the place of this one, for programs that know no `--root`: runc, podman, the wrapper,
//! and rocworker on `/`.
//!
//! Everything happens in a mount namespace of its own, which goes with its last process. The machine's `sys` stands at
//! /sys, with this machine's cgroups in it. A /dev of a few harmless nodes carries the machine's GPU nodes. /etc, /run,
//! /srv, /opt and /var/lib are the stage's own: they hold what any program needs (accounts, the linker's cache, dpkg's
//! database) and nothing that this host sets up for engines or rocworker. /usr is a copy on write without rocworker.
//! Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use layout::{Machine, Nodes};
use tempfile::TempDir;

/// A machine that stands in for this one.
#[derive(Debug)]
pub struct Stage {
    dir: TempDir,
}

/// Stands for the wrapper's program where programs are run.
pub const WRAPPER: &str = "#!/bin/sh\n# stands for the wrapper's program\necho runc version 1.1.5\n";

/// Sets the stage. `$1` is its folder, `$2` the build's folder; what follows is the program to run there.
///
/// The build's folder may lie in one that the stage replaces: it is shown there again.
const SET: &str = r#"
set -e
stage=$1; build=$2; shift 2
machine=$stage/machine
mkdir -p "$machine/sys/fs/cgroup" "$stage/dev" "$stage/upper" "$stage/work" "$stage/.build"
mount --rbind "$build" "$stage/.build"
mount --rbind /sys/fs/cgroup "$machine/sys/fs/cgroup"
mount --rbind "$machine/sys" /sys
mount -t tmpfs -o mode=755 none "$stage/upper"
mkdir "$stage/upper/usr" "$stage/upper/work" "$stage/upper/etc" "$stage/upper/dpkg"
mount -t overlay none -o "lowerdir=/usr,upperdir=$stage/upper/usr,workdir=$stage/upper/work" /usr
rm -rf /usr/lib/rocworker /usr/local/lib/rocworker
rm -f /usr/bin/rocworker /usr/local/bin/rocworker /usr/local/bin/runc-amd-wrapper
for name in SHARED; do
    if [ -e "/etc/$name" ]; then (cd / && cp -a --parents "etc/$name" "$stage/upper"); fi
done
mount --bind "$stage/upper/etc" /etc
cp -a /var/lib/dpkg/. "$stage/upper/dpkg"
for folder in run srv opt var/lib; do mount -t tmpfs -o mode=755 none "/$folder"; done
mkdir -p /run/lock /var/lib/dpkg
mount --bind "$stage/upper/dpkg" /var/lib/dpkg
if [ ! -d "$build" ]; then mkdir -p "$build"; mount --rbind "$stage/.build" "$build"; fi
# A link in /etc, as os-release is, must be replaced, not written through: it leads out of the stage.
for folder in etc usr; do
    if [ -d "$machine/$folder" ]; then cp -a --remove-destination "$machine/$folder/." "/$folder/"; fi
done
mount -t tmpfs none "$stage/dev"
for node in null zero full random urandom tty fuse; do
    touch "$stage/dev/$node"
    mount --bind "/dev/$node" "$stage/dev/$node"
done
mkdir "$stage/dev/pts" "$stage/dev/shm" "$stage/dev/mqueue"
mount --bind /dev/pts "$stage/dev/pts"
mount -t tmpfs none "$stage/dev/shm"
ln -s pts/ptmx "$stage/dev/ptmx"
ln -s /proc/self/fd "$stage/dev/fd"
cp -a "$machine/dev/." "$stage/dev/"
mount --move "$stage/dev" /dev
exec "$@"
"#;

/// The files of this host's /etc that the stage has, too.
pub(crate) const SHARED: &str = "alternatives ca-certificates debian_version group gshadow hostname hosts ld.so.cache ld.so.conf \
                      ld.so.conf.d localtime login.defs lsb-release machine-id nsswitch.conf os-release pam.d passwd \
                      profile protocols resolv.conf security services shadow ssl subgid subuid systemd/system.conf";

/// cargo's folder with this test program and everything that belongs to it.
pub(crate) fn build() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    // target/debug/deps/PROGRAM
    program.ancestors().nth(3).unwrap().to_owned()
}

impl Stage {
    /// Lays the machine out with real device nodes. Their numbers are those of the sysfs that goes with them; no
    /// driver of this kernel answers to them, so that opening one says ENXIO where the device cgroup lets it
    /// through, and EPERM where it does not.
    ///
    /// # Panics
    /// Where it cannot be laid out.
    pub fn set(machine: &Machine) -> Self {
        // Not beneath /dev, which is replaced.
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("machine");
        fs::create_dir(&folder).unwrap();
        machine.lay_out(&folder, Nodes::Real).unwrap();
        Self { dir }
    }

    /// The folder in which the machine is laid out.
    pub fn machine(&self) -> PathBuf {
        self.dir.path().join("machine")
    }

    /// A folder that is there on the stage too, for what a test keeps between programs.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Puts a file into the machine: `etc/…` stands at /etc on the stage.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, path: &str, content: &str) -> PathBuf {
        let file = self.dir.path().join("machine").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }

    /// A command that runs a program on a fresh stage, for programs that go on while the test does.
    pub fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            &SET.replace("SHARED", SHARED),
            "stage",
        ]);
        command.arg(self.dir.path()).arg(build()).args(argv);
        command
    }

    /// Runs a program on the stage. Each run has a fresh stage: what it writes to /etc, /run, /usr and /var/lib goes with it.
    ///
    /// # Panics
    /// Where there is no unshare(1).
    pub fn run(&self, argv: &[&str]) -> Output {
        self.command(argv).output().unwrap()
    }

    /// Runs a shell's script as [`Stage::run`] does, for steps that need one stage.
    ///
    /// # Panics
    /// Where [`Stage::run`] panics.
    pub fn shell(&self, script: &str) -> Output {
        self.run(&["sh", "-ec", script])
    }
}

/// The stdout of a program that ended with 0.
///
/// # Panics
/// With both streams, when the program failed.
#[track_caller]
pub fn stdout(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\nstdout: {out}\nstderr: {err}", output.status);
    out
}
