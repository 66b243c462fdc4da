//! Reads what the runtime keeps of a container: its first process and its cgroup.
//!
//! runc keeps `ROOT/ID/state.json` (libcontainer, `BaseState` and `State`), crun `ROOT/ID/status`
//! (src/libcrun/status.c, `libcrun_write_container_status`). The file exists before `create` ends, until
//! `delete`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use allocation::Render;
use serde::Deserialize;

use crate::alive::Process;

/// A container as its runtime knows it.
#[derive(Debug)]
pub struct State {
    pub init: Process,
    pub cgroup: Cgroup,
}

/// The cgroup of a container's processes.
#[derive(Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// Folders of the cgroup, one in each hierarchy.
    Folders(Vec<PathBuf>),
    /// A path below each hierarchy, without leading slash.
    Below(String),
    /// The runtime does not record a cgroup.
    Unknown,
}

#[derive(Deserialize)]
struct Runc {
    init_process_pid: u32,
    init_process_start: u64,
    /// The cgroup's path in each hierarchy; the unified one has no name.
    cgroup_paths: Option<BTreeMap<String, PathBuf>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Crun {
    pid: u32,
    /// Versions before 0.20 wrote none, and then nothing distinguishes the process from a later one.
    process_start_time: u64,
    #[serde(default)]
    cgroup_path: String,
}

impl State {
    /// Reads the state. `None` before the runtime has made the container, and after the runtime has deleted
    /// it.
    pub fn read(root: &Path, id: &str) -> Option<Self> {
        let folder = folder_of(root, id);
        match std::fs::read_to_string(folder.join("state.json")) {
            Ok(text) => serde_json::from_str::<Runc>(&text).ok().map(Self::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = std::fs::read_to_string(folder.join("status")).ok()?;
                serde_json::from_str::<Crun>(&text).ok().map(Self::from)
            }
            Err(_) => None,
        }
    }
}

impl From<Runc> for State {
    fn from(runc: Runc) -> Self {
        let paths = runc.cgroup_paths.into_iter().flat_map(BTreeMap::into_values);
        let folders: Vec<PathBuf> = paths.filter(|path| path.is_absolute()).collect();
        Self {
            init: Process { pid: runc.init_process_pid, start_time: runc.init_process_start },
            cgroup: if folders.is_empty() { Cgroup::Unknown } else { Cgroup::Folders(folders) },
        }
    }
}

impl From<Crun> for State {
    fn from(crun: Crun) -> Self {
        let path = crun.cgroup_path.trim_matches('/');
        Self {
            init: Process { pid: crun.pid, start_time: crun.process_start_time },
            // Every process is beneath the root cgroup.
            cgroup: if path.is_empty() { Cgroup::Unknown } else { Cgroup::Below(path.to_owned()) },
        }
    }
}

/// The folder in which the runtime keeps a container's state. A call without `--root` names runc's own
/// folder, and means crun's where crun is the runtime (src/libcrun/status.c, `get_run_directory`).
fn folder_of(root: &Path, id: &str) -> PathBuf {
    let folder = root.join(id);
    let cruns = Path::new("/run/crun").join(id);
    if root.as_os_str() == "/run/runc" && !folder.exists() && cruns.exists() { cruns } else { folder }
}

/// The container's first process; none before the runtime has made the container, and after it has deleted it.
pub fn init_of(root: &Path, id: &str) -> Option<Process> {
    State::read(root, id).map(|state| state.init)
}

/// Whether the container was created and never started: the fifo for `start`, which has one name with both
/// runtimes, still exists.
pub fn waits_for_start(root: &Path, id: &str) -> bool {
    folder_of(root, id).join("exec.fifo").symlink_metadata().is_ok()
}

/// Whether the runtime's container of this id was made with these render nodes. True where no file shows it:
/// then the runtime has no container in which to run a process, and reports that itself.
pub fn has_nodes(root: &Path, id: &str, renders: impl IntoIterator<Item = Render>) -> bool {
    let folder = folder_of(root, id);
    // crun keeps the whole config.json of the bundle beside its state.
    let text = std::fs::read_to_string(folder.join("state.json"))
        .or_else(|_| std::fs::read_to_string(folder.join("config.json")));
    let Ok(text) = text else { return true };
    renders.into_iter().map(Render::path).all(|node| {
        text.contains(&format!("{node}\"")) || text.contains(&format!("{}\"", node.replace('/', "\\/")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State files of crun 1.8.1 and runc 1.1.5 on Debian 12; runc's is cut from 20 KB.
    const CRUN: &str = r#"{
    "pid": 17953,
    "process-start-time": 83932,
    "cgroup-path": "/rocworker-crt/c1",
    "scope": "",
    "rootfs": "rootfs",
    "systemd-cgroup": false,
    "bundle": "/tmp/crt/b",
    "created": "2026-11-21T20:34:54.371913Z",
    "owner": "root",
    "detached": true,
    "external_descriptors": "[\"/dev/null\",\"/tmp/crt/out\",\"/tmp/crt/out\"]"
}
"#;
    const RUNC: &str = r#"{"id":"c1","init_process_pid":17953,"init_process_start":83932,
        "cgroup_paths":{"devices":"/sys/fs/cgroup/devices/x/c1","bad":"relative"}}"#;

    #[test]
    fn either_runtimes_state_names_the_first_process_and_the_cgroup() {
        let init = Process { pid: 17953, start_time: 83932 };
        let folders = Cgroup::Folders(vec![PathBuf::from("/sys/fs/cgroup/devices/x/c1")]);
        let no_start = CRUN.replace("process-start-time", "started");
        for (what, file, text, expected) in [
            ("runc", "state.json", RUNC, Some((init, folders))),
            (
                "runc in no cgroup",
                "state.json",
                &RUNC.replace("cgroup_paths", "x"),
                Some((init, Cgroup::Unknown)),
            ),
            ("crun", "status", CRUN, Some((init, Cgroup::Below("rocworker-crt/c1".to_owned())))),
            (
                "crun in the root cgroup",
                "status",
                &CRUN.replace("rocworker-crt/c1", ""),
                Some((init, Cgroup::Unknown)),
            ),
            ("crun without a start time", "status", &no_start, None),
            ("half a file", "status", &CRUN[..60], None),
            ("another file", "config.json", CRUN, None),
        ] {
            let place = tempfile::tempdir().unwrap();
            std::fs::create_dir(place.path().join("c1")).unwrap();
            std::fs::write(place.path().join("c1").join(file), text).unwrap();
            let state = State::read(place.path(), "c1").map(|state| (state.init, state.cgroup));
            assert_eq!(state, expected, "{what}");
        }
    }

    #[test]
    fn a_container_was_made_with_the_nodes_that_its_runtime_kept() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("c1");
        std::fs::create_dir(&folder).unwrap();
        let has = || has_nodes(place.path(), "c1", Render::parse("renderD128"));
        assert!(has(), "no file says otherwise");
        for (file, text, expected) in [
            ("config.json", r#"{"path":"\/dev\/dri\/renderD128"}"#, true),
            ("config.json", r#"{"path":"/dev/dri/renderD1280"}"#, false),
            ("state.json", r#"{"path":"/dev/dri/renderD128"}"#, true),
            ("state.json", "{}", false),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
            assert_eq!(has(), expected, "{text}");
        }
    }
}
