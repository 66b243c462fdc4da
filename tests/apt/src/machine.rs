//! A copy on write of a Debian system, in which real apt and dpkg change what they like.
//!
//! It has a mount namespace and a process namespace of its own, on the stage of a laid-out machine
//! ([`support::stage`]), which gives it /sys and the GPU nodes of /dev. All that is written lies in a tmpfs that goes
//! with the namespace, and that ends with the test's process, however that ends. The network is this machine's, so
//! that a server on loopback is reached. Needs root.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use layout::Machine as Hardware;
use support::real::program;
use support::stage::Stage;
use support::tree::Tree;

use crate::key::Key;
use crate::repository::{Repository, open_to_all};
use support::said::Said;

/// The folder that a test shares with the machine, as it is called there.
pub const SHARED: &str = "/run/lab";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The kernel is this machine's: no program of a copy may load a module into it, set its clock or stop it.
const WITHOUT: &str = "--bounding-set=-sys_module,-sys_time,-sys_boot";
/// More than any test writes, and less than what this machine would miss.
const DISK: &str = "2g";

/// Run on the stage, as the first process of a process namespace; keeps both namespaces until its stdin ends.
///
/// `$1` is the system's tree, `$2` a folder for what is written, `$3` the one that is shared, `$4` the disk's size.
/// A mount beneath the tree is not seen, which is why /tmp, /run, /dev, /proc and /sys are made anew. apt is left with
/// debconf's hook and what must not be removed by itself, and with nobody's sources, keys, pins, proxies and lists;
/// dpkg without the shortcuts of an image's build. The first process is a shell that reaps what is left without a
/// parent; `cat` may be killed with everything else, and is started again.
const SET: &str = r#"
set -e
umask 022
tree=$1; disk=$2; shared=$3
mount -t tmpfs -o "size=$4,mode=755" none "$disk"
mkdir "$disk/upper" "$disk/work" "$disk/root"
mount -t overlay none -o "lowerdir=$tree,upperdir=$disk/upper,workdir=$disk/work" "$disk/root"
cd "$disk/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mkdir run/lock run/old run/lab
mount --bind "$shared" run/lab
mkdir -p run/lab/disk
mount --bind "$disk" run/lab/disk
pivot_root . run/old
cd /
umount -l /run/old
rmdir /run/old
# What this host has of rocworker: the tree may be the host's own.
rm -rf /etc/rocworker /etc/cdi /usr/lib/rocworker /usr/bin/rocworker /usr/local/bin/rocworker /usr/local/lib/rocworker \
    /var/lib/rocworker
for entry in /etc/apt/apt.conf.d/*; do
    case $entry in */01autoremove | */70debconf) ;; *) rm -f "$entry" ;; esac
done
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/preferences /etc/apt/preferences.d/* \
    /etc/apt/apt.conf /etc/apt/auth.conf /etc/apt/auth.conf.d/* /etc/apt/keyrings/* \
    /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d/* /etc/dpkg/dpkg.cfg.d/* \
    /var/lib/apt/lists/* /var/cache/apt/*
mkdir -p /etc/apt/keyrings /etc/apt/sources.list.d /etc/apt/preferences.d
echo ready
# A shell reports its killed child there.
exec 2>/dev/null
until cat; do :; done
exit 0
"#;

/// The machine, as long as this value lives.
#[derive(Debug)]
pub struct Machine {
    stage: Stage,
    keeper: Child,
}

impl Machine {
    /// A copy of the system whose root file system this folder is, with this hardware; [`crate::systems`] gives those
    /// that there are.
    ///
    /// # Panics
    /// Where it cannot be set up.
    pub fn of(tree: &Path, hardware: &Hardware) -> Self {
        let stage = Stage::set(hardware);
        open_to_all(stage.folder());
        let [disk, shared] = ["disk", "shared"].map(|name| stage.folder().join(name));
        for folder in [&disk, &shared] {
            fs::create_dir(folder).unwrap();
            open_to_all(folder);
        }
        let mut argv = vec!["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", SET, "lab"];
        argv.extend([tree, &disk, &shared].map(|path| path.to_str().unwrap()));
        argv.push(DISK);
        let mut keeper = stage.command(&argv).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the copy of {} was not set up: see stderr", tree.display());
        Self { stage, keeper }
    }

    /// The folder of this machine that is [`SHARED`] there.
    pub fn shared(&self) -> PathBuf {
        self.stage.folder().join("shared")
    }

    /// The path in the machine of a file in the shared folder.
    ///
    /// # Panics
    /// Where it is in another folder, or its name is no text.
    pub fn shared_name(&self, file: &Path) -> String {
        format!("{SHARED}/{}", file.strip_prefix(self.shared()).unwrap().to_str().unwrap())
    }

    /// The path of a machine's file for the test: from an absolute path of the machine's, or one beneath its
    /// root. An absolute link in it would be followed on this machine.
    pub fn outside(&self, path: &str) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.keeper.id())).join(path.trim_start_matches('/'))
    }

    /// Writes a file, with the folders that it needs.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let file = self.outside(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
    }

    /// Writes as [`Machine::put`] does, and makes the file executable.
    ///
    /// # Panics
    /// Where [`Machine::put`] panics.
    pub fn put_script(&self, path: &str, text: &str) {
        self.put(path, text);
        fs::set_permissions(self.outside(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Copies a program of this machine's to a path there.
    ///
    /// # Panics
    /// Where it cannot be copied.
    pub fn put_program(&self, from: &Path, path: &str) {
        let file = self.outside(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(from, &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file's text; none where there is no file.
    ///
    /// # Panics
    /// Where it is no text, or cannot be read for another reason than that it is not there.
    pub fn text(&self, path: &str) -> Option<String> {
        match fs::read_to_string(self.outside(path)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// A program of the machine's, as root (without what would reach this machine's kernel), not yet run. Its environment
    /// holds PATH, HOME and nothing else.
    ///
    /// # Panics
    /// Where this machine has no nsenter.
    pub fn command(&self, argv: &[&str]) -> Command {
        let namespaces = PathBuf::from(format!("/proc/{}/ns", self.keeper.id()));
        let mut command = Command::new(program("nsenter").unwrap());
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/root")
            .arg(format!("--mount={}", namespaces.join("mnt").display()))
            .arg(format!("--pid={}", namespaces.join("pid_for_children").display()))
            .args(["setpriv", WITHOUT])
            .args(argv)
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end, and to that of everything that it leaves behind with its stdout or stderr.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn call(&self, argv: &[&str]) -> Said {
        self.command(argv).output().unwrap().into()
    }

    /// apt-get as a script calls it: without questions.
    ///
    /// # Panics
    /// Where [`Machine::call`] panics.
    pub fn apt_get(&self, arguments: &[&str]) -> Said {
        let mut command = self.command(&["apt-get", "--quiet", "--yes"]);
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").output().unwrap().into()
    }

    /// Makes a repository at this address one of apt's sources, signed by this key.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn add_source(&self, repository: &Repository, url: &str, key: &Key) {
        let keyring = Path::new("/etc/apt/keyrings/lab.gpg");
        self.put("/etc/apt/keyrings/lab.gpg", key.binary());
        self.put("/etc/apt/sources.list.d/lab.list", repository.source(url, keyring));
    }

    /// dpkg's status and version of a package: `install ok installed 1.0`; none of one that it has never heard of.
    ///
    /// # Panics
    /// Where [`Machine::call`] panics.
    pub fn package(&self, name: &str) -> Option<String> {
        let format = "--showformat=${Status} ${Version}";
        let said = self.call(&["dpkg-query", "--show", format, name]);
        said.status.success().then_some(said.stdout)
    }

    /// Every package that dpkg knows, as `NAME VERSION STATUS`, in order.
    ///
    /// # Panics
    /// Where [`Machine::call`] panics.
    pub fn packages(&self) -> Vec<String> {
        let format = "--showformat=${binary:Package} ${Version} ${Status}\\n";
        self.call(&["dpkg-query", "--show", format]).well().lines().map(str::to_owned).collect()
    }

    /// The files beneath these folders, which are named without the first slash.
    ///
    /// # Panics
    /// Where something cannot be read.
    pub fn tree(&self, folders: &[&str]) -> Tree {
        Tree::of(&self.outside("/"), folders)
    }

    /// The machine's differences from the system that it copies: each path that was written since or, as a
    /// character device, removed.
    ///
    /// # Panics
    /// Where something cannot be read.
    pub fn written(&self) -> Tree {
        Tree::of(&self.outside(&format!("{SHARED}/disk/upper")), &[""])
    }

    /// Makes it seem to run a kernel of this release, to whoever asks /proc or uname(1); a program that asks the kernel
    /// itself hears the truth.
    ///
    /// # Panics
    /// Where nothing can be mounted.
    pub fn seem_to_run(&self, release: &str) {
        let place = format!("{SHARED}/osrelease");
        self.put(&place, format!("{release}\n"));
        self.call(&["mount", "--bind", &place, "/proc/sys/kernel/osrelease"]).well();
        let script =
            format!("#!/bin/sh\n[ \"$*\" = -r ] && exec echo {release}\nexec /usr/bin/uname \"$@\"\n");
        self.put_script("/usr/local/bin/uname", &script);
    }

    /// Leaves this many bytes free on the disk. A number that is larger than what it had makes it larger.
    ///
    /// # Panics
    /// Where the disk cannot be resized.
    pub fn leave_free(&self, bytes: u64) {
        let disk = format!("{SHARED}/disk");
        let used = self.call(&["df", "--block-size=1", "--output=used", &disk]).well();
        let used: u64 = used.lines().nth(1).unwrap().trim().parse().unwrap();
        let size = format!("remount,size={}", used + bytes);
        self.call(&["mount", "-o", &size, &disk]).well();
    }

    /// Kills every program that runs in the machine, as a power cut would, and returns once they are gone.
    /// Files in /run and /tmp stay.
    ///
    /// # Panics
    /// Where [`Machine::call`] panics.
    pub fn kill_all(&self) {
        // The kernel spares the first process and the one that asks; the first process starts its `cat` again.
        let script = "kill -KILL -1
            dying() {
                for process in /proc/[0-9]*; do
                    case $process in /proc/1 | /proc/$$) continue ;; esac
                    if read -r name <$process/comm && [ $name != cat ]; then return 0; fi
                done 2>/dev/null
                return 1
            }
            while dying; do :; done";
        self.call(&["sh", "-c", script]);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The first process ends with its stdin, and all other processes of the namespace end with it.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
