//! Asks the daemon that runs, and waits no longer than a second for its answer.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use root::Root;
use serde::Serialize;

use super::report::Report;
use super::socket::{STATUS, place};
use super::{LOCK, SOCKET};

/// Far longer than an answer takes, and no time for a person.
const PATIENCE: Duration = Duration::from_secs(1);

/// Some hundred times an answer.
const LIMIT: u64 = 4 << 20;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Report(Box<Report>),
    /// It runs, as far as this can be seen, and does not answer.
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
        // Nor could a daemon have its lock there.
        Err(error) if error.is_not_found() || matches!(error, root::Error::Folder { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let connected = socket(AddressFamily::Unix, SockType::Stream, flags, None).and_then(|socket| {
        connect(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
        Ok(socket)
    });
    match connected {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::ENOENT | Errno::ECONNREFUSED) => Ok(None),
        Err(Errno::EACCES) => Err(only_root()),
        // Its queue of connections is full.
        Err(Errno::EAGAIN) => Err("it does not take calls".to_owned()),
        Err(errno) => Err(errno.to_string()),
    }
}

fn exchange(socket: OwnedFd) -> Result<Report, String> {
    let answer = answer(socket.into()).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
        _ => error.to_string(),
    })?;
    serde_json::from_slice(&answer).map_err(|error| format!("its answer cannot be read: {error}"))
}

fn answer(mut stream: UnixStream) -> io::Result<Vec<u8>> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(STATUS.as_bytes())?;
    let mut text = Vec::new();
    stream.take(LIMIT).read_to_end(&mut text)?;
    Ok(text)
}
