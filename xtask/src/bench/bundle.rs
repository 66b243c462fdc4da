//! The bundle of a container as Concourse's are: 20 KB of config.json.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A bundle whose config.json is put back before each create.
#[derive(Debug)]
pub(crate) struct Bundle {
    folder: PathBuf,
    original: Vec<u8>,
}

impl Bundle {
    /// `request` is what the container's environment says of GPUs; `None` for a container that asks nothing.
    pub(crate) fn make(folder: PathBuf, request: Option<&str>) -> Result<Self> {
        std::fs::create_dir_all(folder.join("rootfs"))
            .with_context(|| format!("making {}", folder.display()))?;
        let original = serde_json::to_vec(&config(request)).context("writing config.json")?;
        let bundle = Self { folder, original };
        bundle.restore()?;
        Ok(bundle)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config.json")
    }

    /// Writes config.json as it was before the first create.
    pub(crate) fn restore(&self) -> Result<()> {
        let path = self.config();
        std::fs::write(&path, &self.original).with_context(|| format!("writing {}", path.display()))
    }

    /// Checks config.json after a create: unchanged for no GPU, else with as many render nodes and one
    /// /dev/kfd.
    pub(crate) fn check(&self, gpus: usize) -> Result<()> {
        let path = self.config();
        let now = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if gpus == 0 {
            if now != self.original {
                bail!("the bundle of a container that asks for nothing was changed");
            }
            return Ok(());
        }
        let spec: Value =
            serde_json::from_slice(&now).with_context(|| format!("reading {}", path.display()))?;
        let devices = spec["linux"]["devices"].as_array().map_or(&[][..], Vec::as_slice);
        let paths = || devices.iter().filter_map(|device| device["path"].as_str());
        let render = paths().filter(|path| path.starts_with("/dev/dri/renderD")).count();
        let kfd = paths().filter(|path| *path == "/dev/kfd").count();
        if (render, kfd) != (gpus, 1) {
            bail!("{render} render nodes and {kfd} /dev/kfd were injected, not {gpus} and 1");
        }
        Ok(())
    }
}

/// A synthetic spec with the parts that Concourse's have and as large as they are: process, mounts, a user
/// namespace in Concourse's mapping, limits and a seccomp list. Its names are made up; no runtime reads them.
fn config(request: Option<&str>) -> Value {
    let mut env: Vec<String> = (0..84)
        .map(|n| format!("BUILD_VARIABLE_{n:02}=a value of the length that a pipeline's parameters have"))
        .collect();
    env.push("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    env.extend(request.map(|gpus| format!("AMD_VISIBLE_DEVICES={gpus}")));
    let capabilities: Vec<String> = (0..14).map(|n| format!("CAP_OF_THE_DEFAULT_SET_{n:02}")).collect();
    let mounts: Vec<Value> = (0..26)
        .map(|n| {
            json!({"destination": format!("/tmp/build/volume-{n:02}"), "type": "bind",
                   "source": format!("/var/lib/concourse/volumes/live/5ca1ab1e-{n:04}-4000-8000-0/volume"),
                   "options": ["bind", "rw", "nosuid", "nodev"]})
        })
        .collect();
    let calls: Vec<String> = (0..330).map(|n| format!("a_system_call_{n:03}")).collect();
    let namespaces = ["pid", "ipc", "uts", "mount", "network", "user"].map(|kind| json!({"type": kind}));
    let mapping = json!([{"containerID": 0, "hostID": 4_294_967_294_u32, "size": 1},
                         {"containerID": 1, "hostID": 1, "size": 4_294_967_293_u32}]);
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0, "additionalGids": [0]},
            "args": ["/tmp/gdn-init"], "env": env, "cwd": "/", "noNewPrivileges": false,
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1_048_576, "soft": 1_048_576}],
        },
        "root": {"path": "rootfs"},
        "hostname": "5ca1ab1e-0000-4000-8000-000000000000",
        "mounts": mounts,
        "linux": {
            "uidMappings": mapping, "gidMappings": mapping,
            "resources": {"devices": [{"allow": false, "access": "rwm"},
                                      {"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rwm"}],
                          "memory": {}, "cpu": {"shares": 1024}},
            "cgroupsPath": "/garden/5ca1ab1e-0000-4000-8000-000000000000",
            "namespaces": namespaces,
            "seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"],
                        "syscalls": [{"names": calls, "action": "SCMP_ACT_ALLOW"}]},
            "maskedPaths": ["/proc/kcore", "/proc/latency_stats", "/proc/timer_stats", "/proc/sched_debug"],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_as_large_as_concourses_are() {
        for request in [None, Some("all")] {
            let size = serde_json::to_vec(&config(request)).unwrap().len();
            assert!((19_000..21_000).contains(&size), "{size} bytes");
        }
    }

    #[test]
    fn a_bundle_is_judged_by_its_nodes_and_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = Bundle::make(folder.path().to_owned(), Some("all")).unwrap();
        assert!(bundle.check(0).is_ok());
        assert!(bundle.check(1).is_err());
        let nodes = r#"{"linux":{"devices":[{"path":"/dev/kfd"},{"path":"/dev/dri/renderD128"}]}}"#;
        std::fs::write(folder.path().join("config.json"), nodes).unwrap();
        assert!(bundle.check(1).is_ok());
        for wrong in [0, 2] {
            assert!(bundle.check(wrong).is_err(), "{wrong}");
        }
        bundle.restore().unwrap();
        assert!(bundle.check(0).is_ok());
    }
}
