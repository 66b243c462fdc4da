//! Asks the daemon that runs, and does not wait for one that does not answer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use root::Root;
use serde::Serialize;

use super::report::Report;
use super::socket::{Place, STATUS};
use super::{LOCK, SOCKET};

/// Far longer than an answer takes, and no time for a person.
const PATIENCE: Duration = Duration::from_secs(1);

/// Some hundred times an answer.
const LIMIT: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Report(Box<Report>),
    /// It runs, as far as can be told, and does not say how it stands.
    Silent {
        problem: String,
    },
}

/// Asks the daemon of this machine; `None` where none runs.
pub fn ask(root: &Root) -> Option<Answer> {
    let shown = root.shown(SOCKET);
    let silent =
        |problem: String| Some(Answer::Silent { problem: format!("{}: {problem}", shown.display()) });
    let stream = match open(root) {
        Ok(Some(stream)) => stream,
        Ok(None) => return None,
        Err(problem) => return silent(problem),
    };
    match exchange(stream) {
        Ok(text) => match serde_json::from_slice::<Report>(&text) {
            Ok(report) => Some(Answer::Report(Box::new(report))),
            Err(error) => silent(format!("its answer cannot be read: {error}")),
        },
        Err(problem) => silent(problem),
    }
}

/// Who serves on this machine, when it goes on for longer than `patience`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Process(u32),
    /// It does not say which.
    Unknown,
}

/// Waits until no daemon runs.
pub fn serving(root: &Root, patience: Duration) -> Result<Option<Serving>, root::Error> {
    // Without the lock's file none has run since the machine began, and none is made for the asking.
    if !root.exists(LOCK) {
        return Ok(None);
    }
    match root.lock(LOCK, patience) {
        Ok(_) => Ok(None),
        Err(root::Error::Locked { .. }) => Ok(Some(match ask(root) {
            Some(Answer::Report(report)) => Serving::Process(report.pid),
            Some(Answer::Silent { .. }) | None => Serving::Unknown,
        })),
        Err(other) => Err(other),
    }
}

/// `None` where nobody listens.
fn open(root: &Root) -> Result<Option<OwnedFd>, String> {
    let for_root_alone = || "only root may ask it".to_owned();
    let place = match Place::open(root) {
        Ok(place) => place,
        Err(error) if error.is_denied() => return Err(for_root_alone()),
        // Nor could a daemon have its lock there.
        Err(error) if error.is_not_found() || matches!(error, root::Error::Folder { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    match connect_to(&place) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::ENOENT | Errno::ECONNREFUSED) => Ok(None),
        Err(Errno::EACCES) => Err(for_root_alone()),
        // So many wait already that one more would have to.
        Err(Errno::EAGAIN) => Err("it does not take calls".to_owned()),
        Err(errno) => Err(errno.to_string()),
    }
}

fn connect_to(place: &Place) -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(&place.path())?)?;
    Ok(socket)
}

fn exchange(socket: OwnedFd) -> Result<Vec<u8>, String> {
    let until = Instant::now() + PATIENCE;
    let told = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
        _ => error.to_string(),
    };
    let mut stream = UnixStream::from(socket);
    stream.set_nonblocking(false).map_err(told)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(told)?;
    stream.write_all(STATUS.as_bytes()).map_err(told)?;
    let mut text = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || text.len() > LIMIT {
            return Err(format!("no whole answer within {} s", PATIENCE.as_secs()));
        }
        stream.set_read_timeout(Some(left)).map_err(told)?;
        let mut bytes = [0; 8192];
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(text),
            Ok(count) => text.extend(bytes.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(told(error)),
        }
    }
}
