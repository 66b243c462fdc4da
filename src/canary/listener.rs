//! Who answers at containerd's socket: the system's own, or Concourse's, which takes the same address.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use root::Root;

/// The process that listens at a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    /// Its program.
    pub(super) program: PathBuf,
    pub(super) of_concourse: bool,
}

impl Listener {
    /// `None`: nobody listens there.
    pub(super) fn at(root: &Root, address: &Path) -> Result<Option<Self>, String> {
        // A daemon that is gone leaves its socket.
        let Ok(stream) = UnixStream::connect(root.shown(address)) else { return Ok(None) };
        let peer = getsockopt(&stream, PeerCredentials)
            .map_err(|errno| format!("who listens at {}: {}", address.display(), errno.desc()))?;
        let program = root
            .read_link(format!("/proc/{}/exe", peer.pid()))
            .map_err(|error| format!("who listens at {}: {error}", address.display()))?;
        let of_concourse = is_concourses(&program) || parent_is_concourse(root, peer.pid());
        Ok(Some(Self { program, of_concourse }))
    }

    /// A program of the same installation.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.program.with_file_name(name)
    }
}

/// Concourse's own stands in its package: /usr/local/concourse/bin, /var/lib/concourse/bin.
fn is_concourses(program: &Path) -> bool {
    program.components().any(|part| part.as_os_str() == "concourse")
}

/// `concourse worker` starts it.
fn parent_is_concourse(root: &Root, pid: i32) -> bool {
    let status = root.read_text(format!("/proc/{pid}/status"), 64 << 10).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let name = parent.and_then(|parent| root.read_text(format!("/proc/{}/comm", parent.trim()), 256).ok());
    name.is_some_and(|name| name.trim() == "concourse")
}
