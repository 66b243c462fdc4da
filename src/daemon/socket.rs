//! Where `rocworker status` asks: one line in, one JSON object out.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use root::Root;

use super::SOCKET;
use super::report::Report;

/// The request that is understood.
pub const STATUS: &str = "status\n";

/// More than any request.
const LONGEST: u64 = 64;

/// A client that takes longer for its request or for the answer is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// The socket's path by its opened folder, as long as that is held. Beneath a Root whose own path is long, the path
/// that people name would be too long for a socket: it has at most 107 bytes (unix(7)).
pub(super) fn place(root: &Root) -> Result<(OwnedFd, PathBuf), root::Error> {
    let path = Path::new(SOCKET);
    let folder = root.folder(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default();
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((folder, path))
}

/// Takes the place of a socket that an earlier daemon has left: the caller knows that none runs.
pub fn listener(root: &Root) -> io::Result<UnixListener> {
    root.remove(SOCKET).map_err(io::Error::other)?;
    let (_folder, path) = place(root).map_err(io::Error::other)?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // Only root may connect, from the first moment: bind(2) takes the mode over from the socket. A umask would be the
    // reconciler's too, which writes meanwhile.
    fchmod(&socket, Mode::from_bits_truncate(0o600))?;
    bind(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// Serves whoever waits, each in a thread of its own: a slow client delays no other. The unit's `TasksMax=` bounds
/// them.
pub fn serve(listener: &UnixListener, report: &Report) {
    while let Ok((stream, _)) = listener.accept() {
        let report = format!("{}\n", serde_json::to_string(report).unwrap_or_default());
        // A client that gets no thread is left.
        std::thread::Builder::new().spawn(move || answer(&stream, &report).ok()).ok();
    }
}

fn answer(mut stream: &UnixStream, report: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut asked = Vec::new();
    BufReader::new(stream.take(LONGEST)).read_until(b'\n', &mut asked)?;
    if asked == STATUS.as_bytes() {
        stream.write_all(report.as_bytes())?;
    } else if asked.ends_with(b"\n") {
        stream.write_all(b"{\"error\":\"ask for status\",\"schema_version\":1}\n")?;
    }
    Ok(())
}
