//! What the running dockerd reports of itself: it may keep a setting that its file has no longer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reconcile::command::Programs;
use root::Root;
use serde_json::Value;

use super::Installed;
use super::doctor;

/// File in which dockerd writes its process number unless its configuration names another place.
const PID_FILE: &str = "/var/run/docker.pid";
/// Socket on which docker.socket listens.
const SOCKET: &str = "/run/docker.sock";
const PATIENCE: Duration = Duration::from_secs(10);

/// The runtime of containers that name none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultRuntime {
    pub name: String,
    pub program: Option<String>,
}

impl DefaultRuntime {
    /// What the dockerd of this machine has; `None` where none runs. Beneath another Root than `/` none is asked.
    ///
    /// # Errors
    /// Why the running dockerd does not tell its default runtime.
    #[must_use]
    pub fn of_running(root: &Root, docker: &Installed) -> Option<Result<Self, String>> {
        let programs = Programs::of(root)?;
        // systemd would start a dockerd that is stopped for whoever connects to its socket.
        let process = process(root, docker)?;
        Some(info(root, &programs, docker, &process).and_then(|info| {
            let name = info.get("DefaultRuntime").and_then(Value::as_str).ok_or("it names none")?;
            let program = info.get("Runtimes").and_then(|all| all.get(name)?.get("path")?.as_str());
            Ok(Self { name: name.to_owned(), program: program.map(str::to_owned) })
        }))
    }
}

/// The folder in /proc of the dockerd that runs.
fn process(root: &Root, docker: &Installed) -> Option<PathBuf> {
    let by_unit = docker.unit.as_ref().and_then(|line| line.value(&["pidfile"]));
    let configured = docker.setting("pidfile");
    let file = by_unit.or_else(|| configured.as_ref()?.as_str()).unwrap_or(PID_FILE);
    let pid: u32 = root.read_text(file, 64).ok()?.trim().parse().ok()?;
    let process = PathBuf::from(format!("/proc/{pid}"));
    // A killed dockerd leaves its file behind, and another process may have its number by now.
    let name = root.read_text(process.join("comm"), 64).ok()?;
    (name.trim_end() == "dockerd").then_some(process)
}

/// The socket at which dockerd can be asked, by `words`, its command line and the `hosts` of its file. The second value
/// is an address of them, where none is a socket of this machine. dockerd has a default socket: `unix://` alone means
/// it, and so does no address at all.
fn socket<'a>(words: impl Iterator<Item = &'a str>) -> (&'a str, Option<&'a str>) {
    let mut elsewhere = None;
    for word in words {
        let options = ["--host=", "--host", "-H=", "-H"];
        let word = options.iter().find_map(|option| word.strip_prefix(option)).unwrap_or(word);
        match word.split_once("://") {
            Some(("unix", "") | ("fd", _)) => return (SOCKET, None),
            Some(("unix", path)) => return (path, None),
            Some(("tcp", _)) => elsewhere = Some(word),
            _ => {}
        }
    }
    (SOCKET, elsewhere)
}

/// What the dockerd of this process answers to `docker info`.
fn info(root: &Root, programs: &Programs, docker: &Installed, process: &Path) -> Result<Value, String> {
    let words = root.read(process.join("cmdline"), 1 << 20).map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&words).into_owned();
    let hosts = docker.setting("hosts");
    let hosts = hosts.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let (socket, elsewhere) = socket(words.split('\0').chain(hosts));
    doctor::info(programs, &["--host", &format!("unix://{socket}")], PATIENCE).map_err(
        |error| match elsewhere {
            Some(address) => format!("it listens on {address} and no socket of this machine: {error}"),
            None => error,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dockerd_is_asked_at_the_first_socket_that_it_names_or_at_its_default() {
        for (line, expected, elsewhere) in [
            ("dockerd", SOCKET, None),
            ("dockerd -H fd:// --containerd=/run/containerd/containerd.sock", SOCKET, None),
            ("dockerd -H unix://", SOCKET, None),
            ("dockerd --host=unix:// --host unix:///srv/d.sock", SOCKET, None),
            ("dockerd -Hunix:///srv/d.sock", "/srv/d.sock", None),
            ("dockerd -H tcp://0.0.0.0:2375 -H unix:///srv/d.sock", "/srv/d.sock", None),
            ("dockerd -H tcp://0.0.0.0:2375", SOCKET, Some("tcp://0.0.0.0:2375")),
            (
                "dockerd --registry-mirror=https://mirror --host=tcp://[::]:2375",
                SOCKET,
                Some("tcp://[::]:2375"),
            ),
            ("dockerd --registry-mirror=https://mirror", SOCKET, None),
        ] {
            assert_eq!(super::socket(line.split(' ')), (expected, elsewhere), "{line}");
        }
    }
}
