//! What the running dockerd reports of itself: it may keep a setting that its file has no longer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{self as sys, AddressFamily, SockFlag, SockType, UnixAddr};
use root::Root;
use serde_json::Value;

use super::Installed;

/// File in which dockerd writes its process number unless its configuration names another place.
const PID_FILE: &str = "/var/run/docker.pid";
/// Socket on which docker.socket listens.
const SOCKET: &str = "/run/docker.sock";
const PATIENCE: Duration = Duration::from_secs(10);
/// Far more than dockerd answers of a machine with thousands of containers.
const LIMIT: usize = 16 << 20;

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
        if !root.is_host() {
            return None;
        }
        // systemd would start a dockerd that is stopped for whoever connects to its socket.
        let process = process(root, docker)?;
        Some(info(root, docker, &process).and_then(|info| {
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

/// What `docker info` asks for.
fn info(root: &Root, docker: &Installed, process: &Path) -> Result<Value, String> {
    let words = root.read(process.join("cmdline"), 1 << 20).map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&words).into_owned();
    let hosts = docker.setting("hosts");
    let hosts = hosts.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let (socket, elsewhere) = socket(words.split('\0').chain(hosts));
    ask(socket, PATIENCE).map_err(|error| match elsewhere {
        Some(address) => format!("it listens on {address} and no socket of this machine: {error}"),
        None => error,
    })
}

fn ask(socket: &str, patience: Duration) -> Result<Value, String> {
    let failed = |error: std::io::Error| format!("{socket}: {error}");
    let answer = answer(socket, patience).map_err(failed)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(format!("{socket} answers {status:?}"));
    }
    serde_json::from_str(body).map_err(|error| format!("{socket}: {error}"))
}

/// Everything that the socket answers. `patience` bounds the whole answer: a dockerd that hangs may still send a byte
/// now and then.
fn answer(socket: &str, patience: Duration) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    let mut stream = connect(socket)?;
    // dockerd answers HTTP/1.0 without chunks, and ends the connection.
    stream.write_all(b"GET /info HTTP/1.0\r\nHost: docker\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 8 << 10];
    while answer.len() < LIMIT {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Does not wait for a dockerd that accepts no client: connect(2) then fails at once (unix(7), EAGAIN).
fn connect(socket: &str) -> std::io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let opened = sys::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    sys::connect(opened.as_raw_fd(), &UnixAddr::new(socket)?)?;
    let stream = UnixStream::from(opened);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::net::UnixListener;

    use nix::sys::socket::Backlog;

    use super::*;

    #[test]
    fn a_dockerd_that_drips_or_accepts_nobody_is_waited_for_no_longer_than_said() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let patience = Duration::from_millis(200);

        let dripping = UnixListener::bind(at("dripping")).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = dripping.accept().unwrap();
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let began = Instant::now();
        assert!(ask(&at("dripping"), patience).unwrap_err().contains("timed out"));

        let full = sys::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        sys::bind(full.as_raw_fd(), &UnixAddr::new(at("full").as_str()).unwrap()).unwrap();
        sys::listen(&full, Backlog::new(0).unwrap()).unwrap();
        let waiting: Vec<_> =
            std::iter::repeat_with(|| connect(&at("full"))).take_while(Result::is_ok).take(9).collect();
        assert!(waiting.len() < 9, "no client is refused");
        assert!(ask(&at("full"), patience).is_err());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

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
