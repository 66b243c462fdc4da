//! Waiting for what file descriptors bring, and sockets whose bytes only wake.

use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits until one of these has something to read, or for as long as `timeout`; false: nothing has.
pub fn wait<'a>(
    fds: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout: Option<Duration>,
) -> Result<bool, Errno> {
    let timeout = timeout.map_or(PollTimeout::NONE, |left| {
        // Rounded up to a millisecond: poll(2) would else wake too early, again and again.
        let left = left.saturating_add(Duration::from_micros(999));
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    });
    let mut fds: Vec<_> = fds.into_iter().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match poll(&mut fds, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// A pair of sockets of which neither side waits.
pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

/// Whether a byte has come since the last call; `None`: the other side is closed, and none comes any more.
pub fn has_byte(mut socket: &UnixStream) -> Option<bool> {
    let mut bytes = [0; 64];
    let mut has = false;
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return None,
            Ok(_) => has = true,
            Err(_) => return Some(has),
        }
    }
}
