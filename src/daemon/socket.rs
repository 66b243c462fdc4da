//! The socket by which `rocworker status` asks the daemon: one line in, one JSON object out. Neither side waits long
//! for the other.

use std::cell::LazyCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use root::Root;
use serde::Serialize;

use super::report::Report;
use super::{LOCK, SOCKET};

/// The only request that the socket answers.
const STATUS: &str = "status\n";

/// How many bytes of a request are read: more than any has.
const LONGEST: usize = 64;

/// How many clients are served at a time; one more takes the place of the oldest. Each takes a thread of the unit's
/// `TasksMax=`, which a look needs as well.
const MOST: usize = 8;

/// A client whose request and answer take longer together is left.
const SERVES: Duration = Duration::from_secs(2);

/// How long `status` waits for the daemon: far longer than an answer takes, and short for a person.
const ASKS: Duration = Duration::from_secs(1);

/// The limit for an answer's bytes: some hundred times an answer.
const LIMIT: u64 = 4 << 20;

/// The socket's path by its opened folder, as long as that is held. Beneath a Root whose own path is long, the path
/// that people name would be too long for a socket: it has at most 107 bytes (unix(7)).
fn place(root: &Root) -> Result<(OwnedFd, PathBuf), root::Error> {
    let path = Path::new(SOCKET);
    let folder = root.folder(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default();
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((folder, path))
}

fn unbound() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

/// Takes the place of a socket that an earlier daemon has left: the caller knows that none runs.
pub fn listener(root: &Root) -> io::Result<UnixListener> {
    root.remove(SOCKET).map_err(io::Error::other)?;
    let (_folder, path) = place(root).map_err(io::Error::other)?;
    let socket = unbound()?;
    // Only root may connect, from the first moment: bind(2) takes the mode over from the socket. A umask would be the
    // reconciler's too, which writes meanwhile.
    fchmod(&socket, Mode::from_bits_truncate(0o600))?;
    bind(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// The clients that are served, the oldest first.
pub type Clients = VecDeque<(Arc<UnixStream>, JoinHandle<()>)>;

/// Serves the clients that wait, each in a thread of its own: a slow one delays no other.
pub fn serve(listener: &UnixListener, clients: &mut Clients, report: &impl Serialize) {
    // The answer is made once, when the first client is accepted.
    let answer = LazyCell::new(|| {
        Arc::<str>::from(format!("{}\n", serde_json::to_string(report).unwrap_or_default()))
    });
    // At most `MOST` clients a call: a flood of clients must not keep the daemon from the watchdog and SIGTERM.
    for _ in 0..MOST {
        let Ok((stream, _)) = listener.accept() else { return };
        clients.retain(|(_, thread)| !thread.is_finished());
        if clients.len() >= MOST
            && let Some((oldest, thread)) = clients.pop_front()
        {
            // The client's thread waits for this socket alone, so that it ends now.
            oldest.shutdown(Shutdown::Both).ok();
            thread.join().ok();
        }
        let answer = Arc::clone(&answer);
        let stream = Arc::new(stream);
        let served = Arc::clone(&stream);
        let thread = Builder::new().spawn(move || {
            serve_one(&served, &answer).ok();
            served.shutdown(Shutdown::Both).ok();
        });
        // A client that gets no thread is left.
        clients.extend(thread.ok().map(|thread| (stream, thread)));
    }
}

fn serve_one(mut stream: &UnixStream, report: &str) -> io::Result<()> {
    let until = Instant::now() + SERVES;
    // A limit of zero is an error: it ends the exchange.
    let left = || Some(until.saturating_duration_since(Instant::now()));
    let (mut asked, mut byte) = (Vec::new(), [0]);
    while !asked.ends_with(b"\n") && asked.len() < LONGEST {
        stream.set_read_timeout(left())?;
        stream.read_exact(&mut byte)?;
        asked.extend(byte);
    }
    let mut answer = match asked.as_slice() {
        asked if asked == STATUS.as_bytes() => report.as_bytes(),
        [.., b'\n'] => b"{\"error\":\"ask for status\",\"schema_version\":1}\n",
        _ => b"",
    };
    while !answer.is_empty() {
        stream.set_write_timeout(left())?;
        let written = stream.write(answer)?;
        answer = answer.get(written..).unwrap_or_default();
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Report(Box<Report>),
    /// The daemon runs, as far as can be seen, and does not answer.
    Silent {
        problem: String,
    },
}

/// Asks the daemon of this machine; `None` where none runs.
pub fn ask(root: &Root) -> Option<Answer> {
    let asked = match open(root) {
        Ok(None) => return None,
        Ok(Some(socket)) => exchange(socket),
        Err(problem) => Err(problem),
    };
    Some(match asked {
        Ok(report) => Answer::Report(Box::new(report)),
        Err(problem) => Answer::Silent { problem: format!("{}: {problem}", root.shown(SOCKET).display()) },
    })
}

/// Waits until no daemon runs; the answer of the one that runs for longer than `patience`.
pub fn serving(root: &Root, patience: Duration) -> Result<Option<Answer>, root::Error> {
    // Without the lock's file none has run since the machine began; asking makes none.
    if !root.exists(LOCK) {
        return Ok(None);
    }
    match root.lock(LOCK, patience) {
        Ok(_) => Ok(None),
        Err(locked @ root::Error::Locked { .. }) => {
            Ok(ask(root).or(Some(Answer::Silent { problem: locked.to_string() })))
        }
        Err(other) => Err(other),
    }
}

/// `None` where no process listens.
fn open(root: &Root) -> Result<Option<OwnedFd>, String> {
    let only_root = || "only root may ask it".to_owned();
    let (_folder, path) = match place(root) {
        Ok(place) => place,
        Err(error) if error.is_denied() => return Err(only_root()),
        // A daemon could not have its lock in such a folder either.
        Err(error) if error.is_not_found() || matches!(error, root::Error::Folder { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let connected = unbound().and_then(|socket| {
        connect(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
        Ok(socket)
    });
    match connected {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::ENOENT | Errno::ECONNREFUSED) => Ok(None),
        Err(Errno::EACCES) => Err(only_root()),
        // The daemon's queue of connections is full.
        Err(Errno::EAGAIN) => Err("it does not take calls".to_owned()),
        Err(errno) => Err(errno.to_string()),
    }
}

fn exchange(socket: OwnedFd) -> Result<Report, String> {
    let answer = answer(socket.into()).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {} s", ASKS.as_secs()),
        _ => error.to_string(),
    })?;
    serde_json::from_slice(&answer).map_err(|error| format!("its answer cannot be read: {error}"))
}

fn answer(mut stream: UnixStream) -> io::Result<Vec<u8>> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ASKS))?;
    stream.set_read_timeout(Some(ASKS))?;
    stream.write_all(STATUS.as_bytes())?;
    let mut text = Vec::new();
    stream.take(LIMIT).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::cell::Cell;

    use serde::Serializer;

    use super::*;

    /// Counts how often it is written as JSON.
    struct Counted(Cell<u32>);

    impl Serialize for Counted {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_str("the report")
        }
    }

    #[test]
    fn clients_of_one_turn_get_one_json() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (report, mut clients) = (Counted(Cell::new(0)), Clients::new());
        serve(&listener, &mut clients, &report);
        assert_eq!(report.0.get(), 0, "nobody asks");
        let streams: Vec<_> = (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect();
        serve(&listener, &mut clients, &report);
        for stream in streams {
            assert_eq!(answer(stream).unwrap(), b"\"the report\"\n");
        }
        assert_eq!(report.0.get(), 1);
    }
}
