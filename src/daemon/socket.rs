//! Where `rocworker status` asks: one line in, one JSON object out. Whoever is slow or says too much is left, and
//! nobody is waited for.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use root::Root;

use super::SOCKET;

/// The request that is understood.
pub const STATUS: &str = "status\n";

/// More than any request.
const LONGEST: usize = 64;

/// So many are served at a time; one more takes the place of the oldest.
const MOST: usize = 8;

/// So long one may take from its coming to its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The socket by its opened folder. By the path that people name it would be out of reach beneath a Root whose own is long:
/// a socket's path has at most 107 bytes (unix(7)).
pub(super) struct Place {
    folder: OwnedFd,
}

impl Place {
    pub(super) fn open(root: &Root) -> Result<Self, root::Error> {
        Ok(Self { folder: root.folder(Path::new(SOCKET).parent().unwrap_or(Path::new("/")))? })
    }

    /// As long as this is held.
    pub(super) fn path(&self) -> PathBuf {
        let name = Path::new(SOCKET).file_name().unwrap_or_default();
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(name)
    }
}

#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    asked: Vec<u8>,
    /// What is still to be written, once it is known.
    answer: Option<Vec<u8>>,
    until: Duration,
}

impl Server {
    /// Takes the place of a socket that an earlier daemon has left: that none runs is for the caller to know.
    pub fn bind(root: &Root) -> io::Result<Self> {
        root.remove(SOCKET).map_err(io::Error::other)?;
        let place = Place::open(root).map_err(io::Error::other)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        // Nobody but root may connect, from the first moment: bind(2) takes the mode over from the socket. A umask would
        // be the reconciler's too, which writes meanwhile.
        fchmod(&socket, Mode::from_bits_truncate(0o600))?;
        bind(socket.as_raw_fd(), &UnixAddr::new(&place.path())?)?;
        listen(&socket, Backlog::MAXCONN)?;
        Ok(Self { listener: socket.into(), clients: Vec::new() })
    }

    /// What is waited for, and with which events.
    pub fn waits(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let clients = self.clients.iter().map(|client| {
            let flags = if client.answer.is_some() { PollFlags::POLLOUT } else { PollFlags::POLLIN };
            (client.stream.as_fd(), flags)
        });
        std::iter::once((self.listener.as_fd(), PollFlags::POLLIN)).chain(clients)
    }

    /// When somebody has taken too long.
    pub fn next(&self) -> Option<Duration> {
        self.clients.iter().map(|client| client.until).min()
    }

    /// Does what can be done now, without waiting. `answer`: to a whole request.
    pub fn turn(&mut self, now: Duration, answer: impl Fn(&[u8]) -> String) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.clients.len() >= MOST {
                self.clients.remove(0);
            }
            self.clients.push(Client { stream, asked: Vec::new(), answer: None, until: now + PATIENCE });
        }
        self.clients
            .retain_mut(|client| client.until > now && client.turn(&answer).is_ok_and(|goes_on| goes_on));
    }
}

impl Client {
    /// Whether it goes on.
    fn turn(&mut self, answer: &impl Fn(&[u8]) -> String) -> io::Result<bool> {
        while self.answer.is_none() {
            let mut bytes = [0; LONGEST];
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.asked.extend(bytes.iter().take(count));
            if self.asked.len() > LONGEST {
                return Ok(false);
            }
            if self.asked.ends_with(b"\n") {
                self.answer = Some(answer(&self.asked).into_bytes());
            }
        }
        while let Some(left) = self.answer.as_mut().filter(|left| !left.is_empty()) {
            match self.stream.write(left) {
                Ok(count) => drop(left.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
