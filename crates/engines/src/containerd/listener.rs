//! Who answers at containerd's socket: the system's own, or Concourse's, which takes the same address.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use config::CONTAINERD_CONFIG;
use edit::Format;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use root::Root;

use crate::CommandLine;

/// The process that listens at a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) program: PathBuf,
    pub(super) of_concourse: bool,
    line: CommandLine,
}

/// Folder of containerd's records of tasks, below its `root` and its `state`.
const TASKS: &str = "io.containerd.runtime.v2.task";

/// Folder in which shims keep runc's state, whatever the daemon's `state` is (process.RuncRoot of containerd's runc
/// shim).
const RUNC: &str = "/run/containerd/runc";

impl Listener {
    /// `None`: no process listens there.
    pub(super) fn at(root: &Root, address: &Path) -> Result<Option<Self>, String> {
        // A daemon that is gone leaves its socket.
        let Ok(stream) = UnixStream::connect(root.shown(address)) else { return Ok(None) };
        let peer = getsockopt(&stream, PeerCredentials)
            .map_err(|errno| format!("who listens at {}: {}", address.display(), errno.desc()))?;
        let program = root
            .read_link(format!("/proc/{}/exe", peer.pid()))
            .map_err(|error| format!("who listens at {}: {error}", address.display()))?;
        let of_concourse = is_concourses(&program) || parent_is_concourse(root, peer.pid());
        let line = root.read(format!("/proc/{}/cmdline", peer.pid()), 1 << 20).unwrap_or_default();
        let words = String::from_utf8_lossy(&line).split('\0').map(str::to_owned).collect();
        Ok(Some(Self { program, of_concourse, line: CommandLine::of_words(words) }))
    }

    /// The folders that containerd and its shims make for a namespace, and do not remove with the namespace.
    pub(super) fn folders_of(&self, root: &Root, namespace: &str) -> [PathBuf; 3] {
        let config = self.line.value(&["config", "c"]).unwrap_or(CONTAINERD_CONFIG);
        let settings =
            Format::Toml.read(&root.read_text(config, 1 << 20).unwrap_or_default()).unwrap_or_default();
        let set = |key: &str, default: &str| {
            let of_file = || settings.get(key)?.as_str();
            PathBuf::from(self.line.value(&[key]).or_else(of_file).unwrap_or(default))
        };
        let tasks = |folder: PathBuf| folder.join(TASKS).join(namespace);
        [
            tasks(set("root", "/var/lib/containerd")),
            tasks(set("state", "/run/containerd")),
            Path::new(RUNC).join(namespace),
        ]
    }
}

/// Whether the program is Concourse's own containerd, by its folder: /usr/local/concourse/bin, /var/lib/concourse/bin.
fn is_concourses(program: &Path) -> bool {
    program.components().any(|part| part.as_os_str() == "concourse")
}

/// Whether `concourse worker` started the process.
fn parent_is_concourse(root: &Root, pid: i32) -> bool {
    let status = root.read_text(format!("/proc/{pid}/status"), 64 << 10).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let name = parent.and_then(|parent| root.read_text(format!("/proc/{}/comm", parent.trim()), 256).ok());
    name.is_some_and(|name| name.trim() == "concourse")
}
