//! The image of Containerfile, and the plugin in it with the arguments and mounts of its DaemonSet, on a laid-out machine.
//! podman stands where a node has containerd.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use support::real;
use support::said::Said;
use support::waiting::eventually;

use super::deployed;
use super::objects::{container, daemon_set};

const IMAGE: &str = "localhost/rocworker:test";

/// podman's own store, and the image's programs. The exporter is built elsewhere: a word stands for it.
struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("image");
        fs::create_dir(&programs).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_rocworker-device-plugin"), programs.join("rocworker-device-plugin"))
            .unwrap();
        fs::write(programs.join("rocworker-exporter"), "exporter").unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn podman(&self) -> Command {
        let mut podman = Command::new("podman");
        podman.arg("--root").arg(self.path().join("store")).arg("--runroot").arg(self.path().join("run"));
        podman.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
        podman
    }

    /// The image's id.
    fn build(&self) -> String {
        let mut podman = self.podman();
        podman.args(["build", "--quiet", "--no-cache", "--timestamp", "0", "--tag", IMAGE, "--file"]);
        Said::from(podman.arg(deployed("Containerfile")).arg(self.path().join("image")).output().unwrap())
            .well()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.podman().args(["rm", "--all", "--force", "--time", "0"]).output().ok();
        // conmon calls podman once more when a container ends, which would make its folder again.
        let programs = format!("^[^ ]*(conmon|podman) .*{}/", self.path().display());
        let is_there =
            || Command::new("pgrep").args(["-f", &programs]).output().is_ok_and(|it| it.status.success());
        eventually("conmon ends", || !is_there());
    }
}

#[test]
fn real_podman_builds_an_image_of_two_programs_the_same_each_time() {
    if !real::require_root(&["podman", "tar", "pgrep"]) {
        return;
    }
    let store = Store::new();
    assert_eq!(store.build(), store.build());
    let archive = store.path().join("image.tar");
    let saved = store
        .podman()
        .args(["save", "--quiet", "--format", "oci-archive", "--output"])
        .arg(&archive)
        .arg(IMAGE)
        .output();
    Said::from(saved.unwrap()).well();
    let tar = |arguments: &[&str]| {
        Said::from(Command::new("tar").args(arguments).current_dir(store.path()).output().unwrap()).well()
    };
    tar(&["-xf", "image.tar"]);
    let blobs = fs::read_dir(store.path().join("blobs/sha256")).unwrap().map(|blob| blob.unwrap().path());
    let is_layer = |path: &std::path::PathBuf| fs::read(path).unwrap().starts_with(&[0x1f, 0x8b]);
    let layers: Vec<_> = blobs.filter(is_layer).collect();
    let listed: Vec<String> = layers.iter().map(|layer| tar(&["-tzf", layer.to_str().unwrap()])).collect();
    let files: BTreeSet<&str> = listed.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(files, ["rocworker-device-plugin", "rocworker-exporter"].into());
}

#[test]
fn real_plugin_reaches_the_kubelet_in_its_image_with_the_mounts_of_its_daemon_set() {
    if !real::require_root(&["podman", "runc", "pgrep"]) {
        return;
    }
    let store = Store::new();
    store.build();
    let host = store.path().join("host");
    fs::create_dir(&host).unwrap();
    Machine::instinct(2, 1).lay_out(&host, Nodes::Real).unwrap();
    // A process that has ended, and that KFD still has: only a program that sees the host's processes knows whose it was.
    let ended = host.join("sys/class/kfd/kfd/proc").join(u32::MAX.to_string());
    fs::create_dir_all(&ended).unwrap();
    fs::write(ended.join("vram_1000"), "1073741824\n").unwrap();
    let plugins = host.join("var/lib/kubelet/device-plugins");
    for folder in ["device-plugins", "pod-resources"] {
        fs::create_dir_all(host.join("var/lib/kubelet").join(folder)).unwrap();
    }
    let kubelet = UnixListener::bind(plugins.join("kubelet.sock")).unwrap();

    let daemon_set = daemon_set("plugin");
    let container = container(&daemon_set);
    assert_eq!(container["securityContext"]["privileged"], true);
    let mut podman = store.podman();
    let runc = real::program("runc").unwrap();
    podman.arg("--runtime").arg(runc).args([
        "run",
        "--detach",
        "--name",
        "plugin",
        "--privileged",
        "--read-only",
    ]);
    podman.args(["--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]);
    if daemon_set["spec"]["template"]["spec"]["hostPID"] == true {
        podman.args(["--pid", "host"]);
    }
    for mount in container["volumeMounts"].as_array().unwrap() {
        let inside = mount["mountPath"].as_str().unwrap();
        let outside = host.join(inside.strip_prefix("/host/").unwrap());
        fs::create_dir_all(&outside).unwrap();
        // The machine's own, in which the plugin's pid namespace shows.
        let outside = if inside == "/host/proc" { "/proc".into() } else { outside };
        let access = if mount["readOnly"] == true { "ro" } else { "rw" };
        podman.arg("--volume").arg(format!("{}:{inside}:{access}", outside.display()));
    }
    podman.arg(IMAGE);
    for argument in container["args"].as_array().unwrap() {
        podman.arg(
            argument.as_str().unwrap().replace("$(NODE_NAME)", "worker-1").replace("$(POD_NAME)", "plugin"),
        );
    }
    Said::from(podman.output().unwrap()).well();

    let said = || {
        let output = store.podman().args(["logs", "plugin"]).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    kubelet.set_nonblocking(true).unwrap();
    eventually("the plugin registers", || kubelet.accept().is_ok());
    assert!(!said().contains("/proc does not number processes as KFD does"), "{}", said());
    let own = plugins.join("rocworker-gpu.sock");
    assert!(fs::symlink_metadata(&own).unwrap().file_type().is_socket(), "{}", said());
    drop(UnixStream::connect(&own).unwrap());
    // No API server is in the environment. The plugin says so, and goes on.
    eventually("it says that it cannot label", || said().contains("the node worker-1 is not labelled"));
}
