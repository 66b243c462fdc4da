//! A machine with AMD GPUs as far as the wrapper and runc can tell, in a mount namespace of its own.
//!
//! Synthetic, all of it: the nodes in `/dev` have the numbers of harmless devices that this kernel really
//! has, which no container may open by default, and a made-up `/sys/dev/char` says that they are GPUs'. So a
//! node that opens in a container was let through by runc, the device cgroup and the node's mode.

pub(crate) mod creates;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

/// The host's group that may open the nodes.
pub(crate) const RENDER: u32 = 992;

/// Path below /dev, minor of major 10 (fuse, autofs, …), and what the made-up sysfs says of it.
const NODES: [(&str, u32, &str); 7] = [
    ("kfd", 234, "devices/virtual/kfd/kfd"),
    ("dri/card1", 235, "devices/pci0000:00/0000:64:00.0/drm/card1"),
    ("dri/renderD128", 229, "devices/pci0000:00/0000:64:00.0/drm/renderD128"),
    ("dri/card2", 256, "devices/pci0000:00/0000:65:00.0/drm/card2"),
    ("dri/renderD129", 257, "devices/pci0000:00/0000:65:00.0/drm/renderD129"),
    ("dri/card3", 258, "devices/platform/amdgpu_xcp.1/drm/card3"),
    ("dri/renderD130", 259, "devices/platform/amdgpu_xcp.1/drm/renderD130"),
];

/// Run in a new mount namespace; keeps it until its stdin ends.
const SETUP: &str = r#"
set -e
mount -t tmpfs -o mode=755 none "$1/dev"
cd "$1/dev"
mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7
mknod -m 666 random c 1 8; mknod -m 666 urandom c 1 9; mknod -m 666 tty c 5 0
mkdir pts shm dri
mount --bind /dev/pts pts
shift_to="$1"; shift
while [ $# -gt 0 ]; do mknod -m 660 "$1" c 10 "$2"; chgrp "$3" "$1"; shift 3; done
cd /
mount --move "$shift_to/dev" /dev
mount --bind "$shift_to/etc" /etc
mount --bind "$shift_to/run" /run
mount --bind "$shift_to/sys-dev-char" /sys/dev/char
echo ready
exec cat
"#;

pub(crate) struct Machine {
    place: tempfile::TempDir,
    keeper: Child,
}

/// The output of a call.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The properties of a bundle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Like<'a> {
    pub(crate) args: &'a [&'a str],
    pub(crate) env: &'a [&'a str],
    /// A user namespace: (container, host, size) for users and groups.
    pub(crate) mapping: &'a [(u32, u32, u32)],
}

/// Concourse's mapping: the container's root is the host's highest id, all other ids stay.
pub(crate) const CONCOURSE: &[(u32, u32, u32)] = &[(0, 65534, 1), (1, 1, 65533)];

/// Prints every node of a GPU that is there, with what came of opening it.
pub(crate) const SHOW: &[&str] = &[
    "sh",
    "-c",
    "for n in /dev/kfd /dev/dri/*; do if [ -c $n ]; then if (: <> $n) 2>/dev/null; \
     then echo $n opens; else echo $n refuses; fi; fi; done; for n in /dev/dri/*; do [ -e $n ] && exit; done; echo no dri",
];

impl Machine {
    pub(crate) fn new() -> Self {
        let nodes = NODES.map(|(path, minor, target)| (path.to_owned(), minor, target.to_owned()));
        Self::with_nodes(&nodes)
    }

    /// Eight cards, GPU n at 0000:(64 + n):00.0. Behind their numbers is no driver at all: nobody opens them.
    pub(crate) fn with_eight_gpus() -> Self {
        let mut nodes = vec![("kfd".to_owned(), 300, "devices/virtual/kfd/kfd".to_owned())];
        for gpu in 0..8 {
            for (name, minor) in
                [(format!("card{gpu}"), 310 + gpu), (format!("renderD{}", 128 + gpu), 320 + gpu)]
            {
                let target = format!("devices/pci0000:00/{}/drm/{name}", eighth_pci(gpu));
                nodes.push((format!("dri/{name}"), minor, target));
            }
        }
        Self::with_nodes(&nodes)
    }

    /// An exclusive policy for these eight.
    pub(crate) fn policy_of_eight(&self, keys: &Value) {
        let gpu = |gpu: u32| listed(gpu, &eighth_pci(gpu), gpu, 128 + gpu);
        let gpus: Vec<Value> = (0..8).map(gpu).collect();
        let mut policy = json!({
            "schema_version": 2, "runtime": null, "requests": "all", "default": "none", "sharing": "exclusive",
            "gpus": gpus,
        });
        policy.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        std::fs::write(self.path("etc/rocworker/wrapper.json"), policy.to_string()).unwrap();
    }

    fn with_nodes(nodes: &[(String, u32, String)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        // The mapped root of a user namespace has to get through to its rootfs.
        std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["dev", "etc/rocworker", "run", "sys-dev-char", "R"] {
            std::fs::create_dir_all(at.join(folder)).unwrap();
        }
        for (_, minor, target) in nodes {
            let chars = at.join("sys-dev-char");
            let device = chars.join(target);
            std::fs::create_dir_all(&device).unwrap();
            if let Some(card) = device.parent().and_then(Path::parent) {
                // A card has two nodes.
                let _ = symlink("../../drivers/amdgpu", card.join("driver"));
            }
            symlink(target, chars.join(format!("10:{minor}"))).unwrap();
        }
        let mut setup = Command::new("unshare");
        setup.args(["--mount", "--propagation", "private", "sh", "-c", SETUP, "sh"]).arg(at);
        for (path, minor, _) in nodes {
            setup.args([path.as_str(), &minor.to_string(), &RENDER.to_string()]);
        }
        let mut keeper = setup.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { place, keeper }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A policy that lists all three GPUs.
    pub(crate) fn policy(&self, requests: &str, default: &str) {
        let gpu = |index: u32, card: &str| listed(index, card, 1 + index, 128 + index);
        let policy = json!({
            "schema_version": 2, "runtime": null, "requests": requests, "default": default, "sharing": "shared",
            "gpus": [gpu(0, "0000:64:00.0"), gpu(1, "0000:65:00.0"), gpu(2, "0000:65:00.0")],
        });
        std::fs::write(self.path("etc/rocworker/wrapper.json"), policy.to_string()).unwrap();
    }

    /// A bundle with busybox in it.
    pub(crate) fn bundle(&self, name: &str, like: Like<'_>) -> PathBuf {
        let bundle = self.path(name);
        let _ = std::fs::remove_dir_all(&bundle);
        let bin = bundle.join("rootfs/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::copy("/bin/busybox", bin.join("busybox")).unwrap();
        for applet in ["sh", "cat", "sleep", "mkdir", "id"] {
            symlink("busybox", bin.join(applet)).unwrap();
        }
        if let Some((_, root, _)) = like.mapping.iter().find(|(container, ..)| *container == 0) {
            for folder in ["rootfs/bin", "rootfs"] {
                chown(bundle.join(folder), Some(*root), Some(*root)).unwrap();
            }
        }
        let unique = self.place.path().file_name().unwrap().to_str().unwrap();
        let config = config(&format!("/rocworker-test-{unique}-{name}"), like);
        std::fs::write(bundle.join("config.json"), serde_json::to_vec_pretty(&config).unwrap()).unwrap();
        bundle
    }

    /// Runs the wrapper with these arguments behind `--root R`.
    pub(crate) fn wrapper(&self, arguments: &[&str]) -> Said {
        self.call(&Program::Wrapper.path(), arguments)
    }

    /// Runs plain runc with these arguments behind `--root R`.
    pub(crate) fn runc(&self, arguments: &[&str]) -> Said {
        self.call("runc", arguments)
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Said {
        let mut child =
            self.command(program, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Said { status: child.wait().unwrap(), stdout, stderr }
    }

    /// create, start, and all that the container says until it ends.
    pub(crate) fn create_and_start(&self, program: Program, bundle: &Path, id: &str) -> Said {
        let bundle = bundle.to_str().unwrap();
        let create = ["create", "--bundle", bundle, id];
        let mut child = self
            .command(&program.path(), &create)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let status = child.wait().unwrap();
        if status.success() {
            let started = self.call(&program.path(), &["start", id]);
            assert!(started.status.success(), "{started:?}");
        }
        // The container has the other ends of both until it ends.
        let (mut stdout, mut stderr) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Said { status, stdout, stderr }
    }

    /// A container that stays until it is deleted.
    pub(crate) fn start_sleeping(&self, program: Program, bundle: &Path, id: &str) {
        let create = ["create", "--bundle", bundle.to_str().unwrap(), id];
        let status = self.command(&program.path(), &create).status().unwrap();
        assert!(status.success());
        let started = self.call(&program.path(), &["start", id]);
        assert!(started.status.success(), "{started:?}");
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.inside(&[program, "--root", "R"]);
        command.args(arguments);
        command
    }

    /// A program in the machine's mount namespace, with nothing but a PATH in its environment.
    pub(crate) fn inside(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--mount=/proc/{}/ns/mnt", self.keeper.id()))
            .args(["--", "env", "--ignore-environment", "--chdir"])
            .arg(self.place.path())
            .arg("PATH=/usr/sbin:/usr/bin:/sbin:/bin")
            .args(argv)
            .stdin(Stdio::null());
        command
    }

    /// The text of the record of a container, if it has one.
    pub(crate) fn record(&self, id: &str) -> Option<Value> {
        let records = std::fs::read_dir(self.path("run/rocworker/records")).ok()?;
        let mut paths = records.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.to_str().unwrap().ends_with(&format!("@{id}")))?;
        Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // What a failed test left running.
        for container in std::fs::read_dir(self.path("R")).into_iter().flatten().flatten() {
            let _ = self.runc(&["delete", "--force", &container.file_name().to_string_lossy()]);
        }
        // The keeper ends with its stdin, and `cat`, the namespace and its mounts end with it.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    Wrapper,
    Runc,
}

impl Program {
    /// The wrapper as it ships, where `cargo xtask test` has built it; else the build of these tests.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Wrapper => std::env::var("ROCWORKER_WRAPPER")
                .unwrap_or_else(|_| env!("CARGO_BIN_EXE_runc-amd-wrapper").to_owned()),
            Self::Runc => "runc".to_owned(),
        }
    }
}

fn eighth_pci(gpu: u32) -> String {
    format!("0000:{}:00.0", 64 + gpu)
}

/// A GPU as wrapper.json lists it.
fn listed(index: u32, card: &str, card_node: u32, render: u32) -> Value {
    let nodes = [format!("/dev/dri/card{card_node}"), format!("/dev/dri/renderD{render}")];
    json!({"index": index, "names": [card], "card": card, "hive": null,
           "nodes": nodes.map(|path| json!({"path": path, "gid": RENDER}))})
}

/// A bundle's config as a container engine writes it: only the default nodes in /dev, and every device
/// denied.
pub(crate) fn config(cgroup: &str, like: Like<'_>) -> Value {
    let mut env = vec!["PATH=/bin"];
    env.extend(like.env);
    let mut namespaces: Vec<Value> =
        ["pid", "mount", "ipc", "uts", "network"].iter().map(|kind| json!({"type": kind})).collect();
    let mappings: Vec<Value> = like
        .mapping
        .iter()
        .map(|(container, host, size)| json!({"containerID": container, "hostID": host, "size": size}))
        .collect();
    let mut linux = json!({
        "cgroupsPath": cgroup,
        "resources": {"devices": [{"allow": false, "access": "rwm"}]},
    });
    if !mappings.is_empty() {
        namespaces.push(json!({"type": "user"}));
        linux["uidMappings"] = json!(mappings);
        linux["gidMappings"] = json!(mappings);
    }
    linux["namespaces"] = json!(namespaces);
    json!({
        "ociVersion": "1.0.2",
        "process": {"terminal": false, "user": {"uid": 0, "gid": 0}, "cwd": "/", "args": like.args, "env": env,
                    "capabilities": {}, "noNewPrivileges": true},
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        ],
        "linux": linux,
    })
}
