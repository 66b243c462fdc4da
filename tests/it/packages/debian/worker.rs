//! A machine with engines, and the package in several versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::machine::Machine;
use lab::package::Package;
use lab::systems;
use support::real;
use support::said::Said;
use support::tree::Tree;

pub(crate) const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";
pub(crate) const RECEIPT: &str = "/var/lib/rocworker/receipt.json";
pub(crate) const CONFIG: &str = "/etc/rocworker/config.yaml";
pub(crate) const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";
const CONTAINERD: &str = "/etc/containerd/config.toml";
const DAEMON_JSON: &str = "/etc/docker/daemon.json";

/// What the machine's administrator has written.
const CONTAINERD_SAYS: &str = "# ours\nversion = 3\n[metrics]\n  address = \"127.0.0.1:1338\"\n";
const DOCKER_SAYS: &str = "{\n    \"log-driver\": \"journald\"\n}\n";

/// What ran and was stopped, as the package's scripts note it.
pub(crate) const STOPPED: &str = "/run/rocworker.stopped";

/// What systemctl was asked for.
pub(crate) const SYSTEMCTL_SAID: &str = "/run/lab/systemctl";

/// Stands in for systemd, which does not run there: each unit runs, unless a test says otherwise, and what is
/// asked is written down.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >>/run/lab/systemctl
case " $* " in
    *" is-enabled "*) echo enabled ;;
    *" is-active "*) [ ! -e /run/lab/inactive ] ;;
    *" show "*) printf 'ActiveState=active\nActiveEnterTimestampMonotonic=1000\nInvocationID=first\nMainPID=1\n' ;;
esac
"#;

/// What dpkg itself keeps, which changes with each of its runs.
const DPKGS: [&str; 5] =
    ["var/lib/dpkg", "var/log", "var/cache", "var/lib/apt", "var/lib/systemd/deb-systemd-helper-enabled"];

pub(crate) struct Worker {
    pub(crate) machine: Machine,
    built: PathBuf,
    /// The system that the machine is a copy of.
    below: PathBuf,
}

/// A copy of this system or of Debian 13, with the package's files; none where the calling test is to be skipped.
#[track_caller]
pub(crate) fn on(system: &str) -> Option<Worker> {
    let built = handed_out(&["dpkg-deb"])?;
    let [trixie] = real::require_made(["ROCWORKER_APT_TRIXIE"], &[])?;
    let (machine, below) = match system {
        "trixie" => (systems::trixie()?, trixie),
        _ => (systems::this()?, PathBuf::from("/")),
    };
    Some(Worker::new(machine, built, below))
}

/// Debian 13 and, with `cargo xtask test --all`, the system that the test runs on as well.
#[track_caller]
pub(crate) fn on_each() -> Vec<(&'static str, Worker)> {
    let systems = if real::is_all() { &["trixie", "this system"][..] } else { &["trixie"] };
    systems.iter().map_while(|&system| Some((system, on(system)?))).collect()
}

/// Where the files are that `cargo xtask test` has made; none where the calling test is to be skipped.
#[track_caller]
pub(crate) fn handed_out(programs: &[&str]) -> Option<PathBuf> {
    real::require_made(["ROCWORKER_DIST"], programs).map(|[folder]| folder)
}

/// The one file of these whose name ends so.
pub(crate) fn file(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.to_str().unwrap().ends_with(ending));
    let file = files.next().unwrap_or_else(|| panic!("nothing in {} ends with {ending}", folder.display()));
    assert_eq!(files.next(), None, "{ending}");
    file
}

impl Worker {
    /// The machine with stand-ins of containerd's and docker's packages, installed by dpkg.
    fn new(machine: Machine, built: PathBuf, below: PathBuf) -> Self {
        let containerd = Package::new("containerd", "2.1.9-1")
            .program(
                "/usr/bin/containerd",
                "#!/bin/sh\necho containerd github.com/containerd/containerd v2.1.9 0\n",
            )
            .file("/usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
        let docker = Package::new("docker.io", "28.5.2-1")
            .program("/usr/sbin/dockerd", "#!/bin/sh\necho Docker version 28.5.2, build 0\n")
            .file("/usr/lib/systemd/system/docker.service", "[Service]\nExecStart=/usr/sbin/dockerd\n");
        let worker = Self { machine, built, below };
        for package in [containerd, docker] {
            let file = package.build(&worker.machine.shared());
            let file = worker.machine.shared_name(&file);
            // A real one may be there.
            worker.machine.call(&["dpkg", "--install", "--force-all", &file]).well();
        }
        worker.machine.put(CONTAINERD, CONTAINERD_SAYS);
        worker.machine.put(DAEMON_JSON, DOCKER_SAYS);
        // What stands for the machine is no container, wherever the test runs.
        worker
            .machine
            .call(&["rm", "-f", "/.dockerenv", "/run/.containerenv", "/run/systemd/container"])
            .well();
        worker.machine.put("/run/systemd/system/.keep", "");
        // apt gives dpkg a PATH of its own.
        worker.machine.put_script("/usr/bin/systemctl", SYSTEMCTL);
        worker.machine.call(&["rm", "-f", "/usr/sbin/policy-rc.d"]).well();
        // As udev's package makes it.
        let groups = worker.machine.text("/etc/group").unwrap();
        if !groups.contains("\nrender:") {
            worker.machine.put("/etc/group", groups + "render:x:991:\n");
        }
        worker
    }

    /// The package as it was built, as the machine calls it.
    pub(crate) fn deb(&self) -> String {
        let name = "rocworker.deb";
        let place = self.machine.shared().join(name);
        if !place.exists() {
            fs::copy(file(&self.built, ".deb"), &place).unwrap();
        }
        self.machine.shared_name(&place)
    }

    /// The package under another version's number.
    pub(crate) fn deb_of(&self, version: &str) -> String {
        self.deb_with(version, |_| {})
    }

    /// The package under another version's number, whose tree is changed before it is packed.
    pub(crate) fn deb_with(&self, version: &str, change: impl FnOnce(&Path)) -> String {
        let place = self.machine.shared().join(format!("rocworker_{version}.deb"));
        if !place.exists() {
            repack(&file(&self.built, ".deb"), &place, version, change);
        }
        self.machine.shared_name(&place)
    }

    pub(crate) fn dpkg(&self, arguments: &[&str]) -> Said {
        self.machine.call(&[&["dpkg"], arguments].concat())
    }

    pub(crate) fn install(&self) {
        self.dpkg(&["--install", &self.deb()]).well();
    }

    pub(crate) fn rocworker(&self, arguments: &[&str]) -> Said {
        self.machine.call(&[&["/usr/bin/rocworker"], arguments].concat())
    }

    /// Brings the machine to what it should be, which is: both engines know the wrapper, and the unit is there.
    pub(crate) fn apply(&self) {
        self.rocworker(&["apply"]).well();
        for path in [DAEMON_JSON, "/etc/containerd/conf.d/rocworker.toml"] {
            assert!(self.machine.text(path).is_some_and(|text| text.contains(WRAPPER)), "{path}");
        }
        assert!(self.machine.text("/etc/systemd/system/rocworker-boot.service").is_some());
        assert!(self.machine.text(RECEIPT).is_some());
    }

    /// What was written on the machine, but for dpkg's own and for folders that the system has below.
    pub(crate) fn written(&self) -> Tree {
        self.machine.written().without(&DPKGS).without_folders(|path| self.below.join(path).is_dir())
    }

    /// dpkg's word for it.
    pub(crate) fn status(&self) -> Option<String> {
        let status = self.machine.package("rocworker")?;
        Some(status.rsplit_once(' ').map_or(status.clone(), |(status, _)| status.to_owned()))
    }

    #[track_caller]
    pub(crate) fn is(&self, status: &str) {
        assert_eq!(self.status().as_deref(), Some(status));
    }

    /// dpkg has no half-done work, and the program does what it should.
    #[track_caller]
    pub(crate) fn is_whole(&self, when: &str) {
        assert_eq!(self.dpkg(&["--audit"]).well(), "", "{when}");
        // What dpkg was last asked for stays its wish, also where it could not be had.
        let status = self.status().unwrap_or_default();
        assert!(status.ends_with(" ok installed"), "{when}: {status}");
        self.rocworker(&["--version"]).well();
    }

    /// No engine and no unit names a program that is not there.
    #[track_caller]
    pub(crate) fn names_nothing_that_is_gone(&self, when: &str) {
        let tree = self.written();
        let is_there = |path: &str| self.machine.outside(path).exists();
        for path in tree.paths().filter(|path| path.starts_with("etc") || path.starts_with("run")) {
            let entry = tree.get(path).unwrap();
            let text = String::from_utf8_lossy(&entry.bytes);
            for program in [WRAPPER, "/usr/bin/rocworker"] {
                let names = text.contains(program) && !text.contains("ConditionFileIsExecutable");
                assert!(!names || is_there(program), "{when}: {} names {program}: {text}", path.display());
            }
        }
    }
}

/// Packs the package anew at `place`, as this version and with a changed tree.
pub(crate) fn repack(package: &Path, place: &Path, version: &str, change: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    run(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&tree));
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let line = text.lines().find(|line| line.starts_with("Version: ")).unwrap();
    fs::write(&control, text.replacen(line, &format!("Version: {version}"), 1)).unwrap();
    change(&tree);
    run(Command::new("dpkg-deb").args(["--build", "--root-owner-group", "-Znone"]).arg(&tree).arg(place));
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Differences as lines, for an assertion.
#[track_caller]
pub(crate) fn same(now: &Tree, before: &Tree, when: &str) {
    let off = now.differences(&[before]);
    assert!(off.is_empty(), "{when}:\n{}", off.join("\n"));
}
