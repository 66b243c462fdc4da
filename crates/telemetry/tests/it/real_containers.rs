//! Containers of a real runc, in the cgroups that docker, kubelet and Concourse ask for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::real;
use telemetry::container::Owner;

const ID: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";
const UID: &str = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa";
const HANDLE: &str = "200e7e87-3af9-4a79-4ea5-5ca0364c6cc8";

/// A container that runs, until it is dropped.
struct Container {
    bundle: tempfile::TempDir,
    /// The topmost cgroup, which runc makes and leaves.
    top: String,
    id: String,
}

impl Container {
    fn run(top: &str, id: &str, cgroup: &str) -> Self {
        let bundle = tempfile::tempdir().unwrap();
        let at = |name: &str| bundle.path().join(name);
        fs::create_dir_all(at("rootfs")).unwrap();
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from);
        fs::copy(busybox.iter().find(|path| path.exists()).unwrap(), at("rootfs/busybox")).unwrap();
        let config = serde_json::json!({
            "ociVersion": "1.0.2",
            "process": { "cwd": "/", "user": { "uid": 0, "gid": 0 }, "args": ["/busybox", "sleep", "600"] },
            "root": { "path": "rootfs" },
            "mounts": [{ "destination": "/proc", "type": "proc", "source": "proc" }],
            "linux": { "cgroupsPath": cgroup, "namespaces": [{ "type": "pid" }, { "type": "mount" }] },
        });
        fs::write(at("config.json"), config.to_string()).unwrap();
        let container = Self { bundle, top: top.to_owned(), id: id.to_owned() };
        container.runc(&["run", "--detach", "--bundle", "BUNDLE", "--pid-file", "BUNDLE/pid", id]);
        container
    }

    fn runc(&self, arguments: &[&str]) {
        let bundle = self.bundle.path().display().to_string();
        let arguments = arguments.iter().map(|it| it.replace("BUNDLE", &bundle));
        let null = std::process::Stdio::null;
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(self.bundle.path().join("state")).args(arguments);
        assert!(runc.stdin(null()).stdout(null()).status().unwrap().success(), "{runc:?}");
    }

    fn owner(&self) -> (Owner, String) {
        let pid = fs::read_to_string(self.bundle.path().join("pid")).unwrap();
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", pid.trim())).unwrap();
        (Owner::of_cgroup(&cgroups), cgroups)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.runc(&["delete", "--force", &self.id]);
        let hierarchies = fs::read_dir("/sys/fs/cgroup").unwrap().map(|entry| entry.unwrap().path());
        for hierarchy in hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]) {
            remove(&hierarchy.join(&self.top));
        }
    }
}

/// Removes a cgroup and those in it: its files are the kernel's.
fn remove(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            remove(&entry.path());
        }
    }
    fs::remove_dir(cgroup).ok();
}

#[test]
fn real_runcs_containers_are_found_by_the_cgroups_that_engines_ask_for() {
    if !real::require_root(&["runc", "busybox"]) {
        return;
    }
    let owner = |container: &str, pod_uid: &str| Owner {
        container: container.to_owned(),
        pod_uid: pod_uid.to_owned(),
        unit: String::new(),
    };
    for (id, cgroup, expected) in [
        (ID, format!("/docker/{ID}"), owner(ID, "")),
        (ID, format!("/kubepods/burstable/pod{UID}/{ID}"), owner(ID, UID)),
        (ID, format!("/machine/crio-{ID}"), owner(ID, "")),
        (HANDLE, format!("garden/{HANDLE}"), owner(HANDLE, "")),
    ] {
        let top = format!("rocworker-test-{}", std::process::id());
        let cgroup = format!("/{top}/{}", cgroup.trim_start_matches('/'));
        let container = Container::run(&top, id, &cgroup);
        let (found, cgroups) = container.owner();
        assert_eq!(found, expected, "{cgroup}: {cgroups}");
        assert!(cgroups.contains(&cgroup), "{cgroups}");
    }
    // A container without a chosen cgroup is in one of its id, as Concourse's privileged containers are.
    let container = Container::run("none", HANDLE, "");
    let (found, cgroups) = container.owner();
    assert_eq!(found, owner(HANDLE, ""), "{cgroups}");
}
