//! A machine for the wrapper's own part, without runc: files in a temporary folder.
//!
//! Synthetic: the nodes, which only root can make, have the numbers of `/dev/null`, `/dev/zero` and
//! `/dev/full`, and a made-up sysfs says that they are `/dev/kfd` and the render nodes of two cards.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::wrap::{Verdict, wrap};
use serde_json::{Value, json};

pub(crate) struct Stage {
    place: tempfile::TempDir,
    pub(crate) paths: Paths,
    pub(crate) user: u32,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// The lines of runc's log: level and message.
    pub(crate) log: Vec<(String, String)>,
}

impl Outcome {
    pub(crate) fn runs(&self) -> bool {
        matches!(self.verdict, Verdict::Run { .. })
    }

    pub(crate) fn messages(&self, level: &str) -> Vec<&str> {
        self.log.iter().filter(|(l, _)| l == level).map(|(_, message)| message.as_str()).collect()
    }
}

impl Stage {
    /// A stage without a policy.
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let user = place.path().metadata().unwrap().uid();
        let chars = at("sys/dev/char");
        std::fs::create_dir_all(&chars).unwrap();
        for (number, target) in [
            ("1:3", "../../devices/virtual/kfd/kfd"),
            ("1:5", "../../devices/pci0000:00/0000:64:00.0/drm/renderD128"),
            ("1:7", "../../devices/pci0000:00/0000:65:00.0/drm/renderD129"),
        ] {
            symlink(target, chars.join(number)).unwrap();
        }
        for card in ["0000:64:00.0", "0000:65:00.0"] {
            let folder = at("sys/devices/pci0000:00").join(card);
            std::fs::create_dir_all(&folder).unwrap();
            symlink("../../../bus/pci/drivers/amdgpu", folder.join("driver")).unwrap();
        }
        std::fs::create_dir(at("bin")).unwrap();
        for program in ["bin/runc", "wrapper"] {
            std::fs::write(at(program), "").unwrap();
            std::fs::set_permissions(at(program), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let paths = Paths {
            policy: at("wrapper.json"),
            health: at("run/health.json"),
            dev: at("dev"),
            own: at("wrapper"),
            lease: lease::paths::Paths {
                run: at("run"),
                sys: at("sys"),
                owner: user,
                ..lease::paths::Paths::system()
            },
        };
        let stage = Self { place, paths, user };
        std::fs::create_dir_all(stage.path("dev/dri")).unwrap();
        stage
    }

    /// A stage with device nodes, mode 0660 and group 992.
    pub(crate) fn with_nodes() -> Self {
        let stage = Self::new();
        for (name, minor) in [("kfd", 3), ("dri/renderD128", 5), ("dri/renderD129", 7)] {
            stage.make_node(name, 1, minor);
        }
        stage
    }

    pub(crate) fn make_node(&self, name: &str, major: u32, minor: u32) {
        let path = self.path("dev").join(name);
        let _ = std::fs::remove_file(&path);
        let numbers = [major.to_string(), minor.to_string()];
        let made = std::process::Command::new("mknod")
            .args(["-m", "660"])
            .arg(&path)
            .arg("c")
            .args(numbers)
            .status();
        assert!(made.unwrap().success());
        std::os::unix::fs::chown(&path, None, Some(992)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A policy that lists both GPUs.
    pub(crate) fn policy(&self, requests: &str, default: &str) {
        self.write("wrapper.json", policy(requests, default).to_string());
    }

    /// A bundle with this config.
    pub(crate) fn bundle(&self, config: impl AsRef<[u8]>) -> PathBuf {
        let bundle = self.path("bundle");
        let _ = std::fs::remove_dir_all(&bundle);
        std::fs::create_dir(&bundle).unwrap();
        std::fs::write(bundle.join("config.json"), config).unwrap();
        bundle
    }

    pub(crate) fn config(&self) -> Vec<u8> {
        std::fs::read(self.path("bundle/config.json")).unwrap()
    }

    /// Puts this config in the bundle and creates a container `c1` from it.
    pub(crate) fn create(&self, config: impl AsRef<[u8]>) -> Outcome {
        self.bundle(config);
        self.create_as_it_is("c1")
    }

    pub(crate) fn create_as_it_is(&self, id: &str) -> Outcome {
        self.call(&["create", "--bundle", self.path("bundle").to_str().unwrap(), id])
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Outcome {
        self.call_as(self.user, arguments)
    }

    pub(crate) fn call_as(&self, effective_user: u32, arguments: &[&str]) -> Outcome {
        let log = self.path("log");
        let _ = std::fs::remove_file(&log);
        let mut line: Vec<&[u8]> = vec![b"--root", b"/nowhere/runc", b"--log", log.as_os_str().as_bytes()];
        line.extend([&b"--log-format"[..], b"json"]);
        line.extend(arguments.iter().map(|argument| argument.as_bytes()));
        let path = [b"PATH=", self.path("bin").as_os_str().as_bytes()].concat();
        let environment = Environment { entries: &[&path], effective_user };
        let verdict = wrap(&line, &environment, &self.paths);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let log = text
            .lines()
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                (line["level"].as_str().unwrap().to_owned(), line["msg"].as_str().unwrap().to_owned())
            })
            .collect();
        Outcome { verdict, log }
    }

    pub(crate) fn record_path(&self, id: &str) -> PathBuf {
        self.path("run/records").join(format!("%2Fnowhere%2Frunc@{id}"))
    }

    pub(crate) fn record(&self, id: &str) -> Option<Value> {
        std::fs::read(self.record_path(id)).ok().map(|text| serde_json::from_slice(&text).unwrap())
    }

    /// A record as a create that still runs, this process, would have left it; or one that is long gone.
    pub(crate) fn write_record(&self, id: &str, gpu: u32, gids: &[u32], lives: bool) {
        for folder in ["run", "run/records"] {
            let folder = self.path(folder);
            let _ = std::fs::create_dir(&folder);
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        let own = lease::alive::Process::now(Path::new("/proc"), std::process::id()).unwrap();
        let boot_id = lease::alive::boot_id(Path::new("/proc")).unwrap();
        let start_time = if lives { own.start_time } else { own.start_time - 1 };
        let record = json!({
            "schema_version": 1, "id": id, "root": "/nowhere/runc", "gids": gids, "env": [],
            "gpus": [{"index": gpu, "pci": null, "render": format!("/dev/dri/renderD{}", 128 + gpu)}],
            "creator": {"pid": own.pid, "start_time": start_time, "boot_id": boot_id},
        });
        std::fs::write(self.record_path(id), record.to_string()).unwrap();
    }
}

/// A policy that lists both GPUs.
pub(crate) fn policy(requests: &str, default: &str) -> Value {
    let gpu = |index: u32, card: &str| {
        json!({"index": index, "names": [card], "card": card, "hive": null,
               "nodes": [{"path": format!("/dev/dri/renderD{}", 128 + index), "gid": 992}]})
    };
    json!({"schema_version": 2, "runtime": null, "requests": requests, "default": default, "sharing": "shared",
           "gpus": [gpu(0, "0000:64:00.0"), gpu(1, "0000:65:00.0")], "kfd": {"path": "/dev/kfd", "gid": 992}})
}

/// A policy of schema 1 for the stage's two GPUs, as an earlier version of rocworker wrote it.
pub(crate) fn policy_of_schema_1(requests: &str, default: &str) -> Value {
    let gpu = |index: u32, pci: &str| {
        json!({"index": index, "pci": pci, "render": format!("/dev/dri/renderD{}", 128 + index),
               "uuid": null, "card": pci, "hive": null})
    };
    json!({"schema_version": 1, "runtime": null, "requests": requests, "default": default, "sharing": "shared",
           "gpus": [gpu(0, "0000:64:00.0"), gpu(1, "0000:65:00.0")]})
}

/// A bundle's config with these variables besides PATH.
pub(crate) fn config(env: &[&str]) -> String {
    let mut all = vec!["PATH=/bin"];
    all.extend(env);
    // Its own: in a cgroup that another test's container has, a lease would live by that one.
    let cgroup = format!("/rocworker-stage-{}", std::process::id());
    json!({"ociVersion": "1.0.2", "process": {"args": ["x"], "cwd": "/", "env": all, "user": {"uid": 0, "gid": 0}},
           "root": {"path": "rootfs"},
           "linux": {"cgroupsPath": cgroup, "resources": {"devices": [{"allow": false, "access": "rwm"}]}, "namespaces": [{"type": "mount"}]}})
    .to_string()
}

/// The render nodes that a bundle gives.
pub(crate) fn renders(config: &[u8]) -> Vec<String> {
    let config: Value = serde_json::from_slice(config).unwrap();
    let devices = config["linux"]["devices"].as_array().cloned().unwrap_or_default();
    let paths = devices.iter().map(|device| device["path"].as_str().unwrap());
    paths
        .filter(|path| path.contains("render"))
        .map(|path| path.rsplit('/').next().unwrap().to_owned())
        .collect()
}

/// A folder entry's name, for looking at what is left behind.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| OsStr::to_string_lossy(&entry.unwrap().file_name()).into_owned()).collect();
    names.sort();
    names
}
