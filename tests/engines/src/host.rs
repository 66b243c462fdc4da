//! A laid-out machine whose root file system is an unpacked engine.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use layout::Machine;
use support::real::program;
use support::said::Said;
use support::stage::Stage;

use crate::cgroups;
use crate::engine::{SHIM_FOLDER, Unpacked};

/// Run on the stage, as the first process of a process namespace; keeps both namespaces until its stdin ends.
///
/// The engine's tree is beneath a copy on write, so that it serves several tests at once and stays as unpacked.
/// It becomes the namespace's own root, as `runc exec` joins a container's namespace by it: a mere chroot would show
/// that process this machine's files. The laid-out /sys lies on nothing real, and a sysfs that nothing lies on is in
/// /opt/sysfs: without one the kernel lets no user namespace mount its own. `cat` is not the last command: as the first process, the shell has to reap what is
/// left without a parent.
const SET: &str = r#"
set -e
tree=$1; stage=$2; wrapper=$3; shim=$4; busybox=$5
mkdir -p "$stage/copy" "$stage/root"
mount -t tmpfs none "$stage/copy"
mkdir "$stage/copy/upper" "$stage/copy/work"
mount -t overlay none -o "lowerdir=$tree,upperdir=$stage/copy/upper,workdir=$stage/copy/work" "$stage/root"
cd "$stage/root"
mkdir -p proc sys dev run tmp etc stage old opt/sysfs ".$shim"
chmod 1777 tmp
mount -t proc proc proc
mount -t sysfs sysfs opt/sysfs
mount --rbind /sys sys
mount --rbind /dev dev
mount --bind /etc etc
mount -t tmpfs -o mode=755 run run
mount --bind "$stage" stage
cp "$wrapper" ".$shim/runc"
cp "$busybox" usr/bin/busybox
pivot_root . old
cd /
/usr/bin/busybox umount -l /old
echo ready
/usr/bin/busybox cat
exit 0
"#;

/// The machine, as long as this value lives.
#[derive(Debug)]
pub struct Host {
    stage: Stage,
    keeper: Child,
}

impl Host {
    /// Sets it up. The wrapper stands as `runc` in [`SHIM_FOLDER`].
    ///
    /// # Panics
    /// Where that fails.
    pub fn set(stage: Stage, unpacked: &Unpacked) -> Self {
        // A user namespace's root has to get through to its rootfs.
        fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
        let busybox = program("busybox").unwrap();
        let paths = [&unpacked.tree, stage.folder(), &unpacked.wrapper, Path::new(SHIM_FOLDER), &busybox];
        let mut argv = vec!["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", SET, "engine"];
        argv.extend(paths.map(|path| path.to_str().unwrap()));
        let mut keeper = stage.command(&argv).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the engine's root was not set up: see stderr");
        Self { stage, keeper }
    }

    /// A host as [`Host::set`] gives it, for a machine that has no policy and no CDI spec yet.
    ///
    /// # Panics
    /// Where [`Host::set`] panics.
    pub fn of(machine: &Machine, unpacked: &Unpacked) -> Self {
        Self::set(Stage::set(machine), unpacked)
    }

    /// The folder of this machine that is `/stage` there.
    pub fn folder(&self) -> &Path {
        self.stage.folder()
    }

    /// The root of its file system, by a path on this machine.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.keeper.id()))
    }

    /// The parent of all cgroups that a test makes, below each hierarchy: not to be mixed up with another test's.
    pub fn cgroup(&self) -> String {
        let name = self.folder().file_name().unwrap().to_str().unwrap();
        format!("rocworker{name}")
    }

    /// A program of the engine's root, with this PATH and nothing else in its environment.
    ///
    /// # Panics
    /// Where this machine has no nsenter.
    pub fn command(&self, path: &str, argv: &[&str]) -> Command {
        let keeper = PathBuf::from(format!("/proc/{}/ns", self.keeper.id()));
        let mut command = Command::new(program("nsenter").unwrap());
        command
            .env_clear()
            .env("PATH", path)
            .arg(format!("--mount={}", keeper.join("mnt").display()))
            .arg(format!("--pid={}", keeper.join("pid_for_children").display()))
            .args(argv)
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn call(&self, path: &str, argv: &[&str]) -> Said {
        self.command(path, argv).output().unwrap().into()
    }

    /// An applet of busybox, where nothing but its answer matters.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn busybox(&self, argv: &[&str]) -> Said {
        self.call("/usr/sbin:/usr/bin", &[&["/usr/bin/busybox"], argv].concat())
    }

    /// The processes there that run this program; their numbers count there alone.
    ///
    /// # Panics
    /// Where busybox cannot be started.
    pub fn pids_of(&self, program: &str) -> Vec<String> {
        self.busybox(&["pidof", program]).stdout.split_whitespace().map(str::to_owned).collect()
    }

    /// Kills every process there that runs this program.
    ///
    /// # Panics
    /// Where there is none.
    #[track_caller]
    pub fn kill_all(&self, program: &str) {
        let pids = self.pids_of(program);
        assert!(!pids.is_empty(), "no {program} runs there");
        let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
        self.busybox(&[&["kill", "-KILL"], &pids[..]].concat()).well();
    }

    /// The names of the records that the wrapper keeps there.
    ///
    /// # Panics
    /// Where they cannot be listed.
    pub fn records(&self) -> Vec<String> {
        self.names_in("/run/rocworker/records")
    }

    /// The names in a folder of the engine's root; none where it is not there.
    ///
    /// # Panics
    /// Where busybox cannot be started.
    pub fn names_in(&self, folder: &str) -> Vec<String> {
        self.busybox(&["ls", "-A", folder]).stdout.lines().map(str::to_owned).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The first process ends with its stdin, and all other processes of the namespace end with it.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        cgroups::remove(&self.cgroup());
    }
}
