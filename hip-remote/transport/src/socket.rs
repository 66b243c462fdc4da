//! A connected socket, and the system calls on it.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, sockopt};

use crate::{Error, Result};

/// How long the peer's kernel may leave bytes unacknowledged, or its program unread: a debugger may have stopped it. A machine that is
/// gone is noticed by missing heartbeats.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// `IOV_MAX` of Linux.
const MOST_SLICES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Socket {
    /// Counted, so that a socket whose number is another file's can leave the descriptor open.
    descriptor: Arc<OwnedFd>,
    inode: Option<(u64, u64)>,
    /// For sentences: "The worker gpu:50051".
    pub(crate) peer: String,
}

impl Socket {
    /// Sets the options of a connected socket, TCP's where it is one.
    pub(crate) fn new(descriptor: OwnedFd, peer: String) -> Result<Self> {
        let inode = inode(&descriptor);
        let socket = Self { descriptor: Arc::new(descriptor), inode, peer };
        let tcp =
            sockopt::socket_domain(&socket.descriptor).is_ok_and(|domain| domain != net::AddressFamily::UNIX);
        if tcp {
            socket.tcp_options().map_err(|why| socket.broke(why))?;
        }
        rustix::io::fcntl_setfd(&socket.descriptor, rustix::io::FdFlags::CLOEXEC)
            .map_err(|why| socket.broke(why))?;
        Ok(socket)
    }

    /// Whether the descriptor is still this socket: a program that closes all descriptors may get the number for a file of its own.
    fn is_open(&self) -> bool {
        self.inode.is_some() && inode(&self.descriptor) == self.inode
    }

    fn tcp_options(&self) -> rustix::io::Result<()> {
        let socket = &self.descriptor;
        sockopt::set_tcp_nodelay(socket, true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(3))?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))?;
        sockopt::set_tcp_keepcnt(socket, 5)?;
        sockopt::set_tcp_user_timeout(socket, u32::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(u32::MAX))
    }

    pub(crate) fn broke(&self, why: Errno) -> Error {
        Error::Failed(format!("The connection to {} broke: {}", self.peer, std::io::Error::from(why)))
    }

    /// Sends all bytes, and zeroes for those that are not there. A broken connection is an error and no SIGPIPE, which would end a program of a stranger.
    pub(crate) fn send(&self, mut slices: &mut [IoSlice<'_>]) -> Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        let mut at_once = MOST_SLICES;
        let mut result = Ok(());
        while let Some(first) = slices.first() {
            let some = slices.get(..at_once).unwrap_or(slices);
            let none = &mut SendAncillaryBuffer::default();
            let sent = retry_on_intr(|| net::sendmsg(&self.descriptor, some, none, SendFlags::NOSIGNAL));
            match sent {
                Ok(sent) => IoSlice::advance_slices(&mut slices, sent),
                // One of the slices is no memory; it shows itself when it is alone.
                Err(Errno::FAULT) if some.len() > 1 => at_once = 1,
                Err(Errno::FAULT) => {
                    let length = first.len();
                    self.send(&mut [IoSlice::new(&vec![0; length])])?;
                    IoSlice::advance_slices(&mut slices, length);
                    result = Err(Error::Fault);
                }
                Err(Errno::AGAIN) => {
                    return Err(Error::Failed(format!("{} takes no bytes in time", self.peer)));
                }
                Err(why) => return Err(self.broke(why)),
            }
        }
        result
    }

    /// Receives some bytes until a deadline. 0 is the end.
    pub(crate) fn receive_until(
        &self,
        to: &mut [u8],
        flags: RecvFlags,
        deadline: Option<Instant>,
    ) -> Result<usize> {
        // A peer that always has bytes ready must not outlast it.
        let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_over || deadline.is_some() && !self.readable(deadline)? {
            return Err(Error::Failed(format!("{} did not answer in time", self.peer)));
        }
        self.receive(to, flags)
    }

    /// Receives some bytes, or as many as fit with [`RecvFlags::WAITALL`]. 0 is the end.
    pub(crate) fn receive(&self, to: &mut [u8], flags: RecvFlags) -> Result<usize> {
        match retry_on_intr(|| net::recv(&self.descriptor, &mut *to, flags)) {
            Ok((_, received)) => Ok(received),
            Err(Errno::AGAIN) => {
                let time = sockopt::socket_timeout(&self.descriptor, sockopt::Timeout::Recv).ok().flatten();
                Err(Error::Silent { peer: self.peer.clone(), time: time.unwrap_or_default() })
            }
            Err(Errno::FAULT) => Err(Error::Fault),
            Err(why) => Err(self.broke(why)),
        }
    }

    /// Waits until bytes or the end have come. False when the deadline comes first.
    pub(crate) fn readable(&self, deadline: Option<Instant>) -> Result<bool> {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], left.as_ref()) {
                Ok(count) => return Ok(count > 0),
                Err(Errno::INTR) => {}
                Err(why) => return Err(self.broke(why)),
            }
        }
    }

    /// How long [`Self::receive`] waits before the peer is [`Error::Silent`].
    pub(crate) fn set_silence(&self, time: Option<Duration>) -> Result<()> {
        sockopt::set_socket_timeout(&self.descriptor, sockopt::Timeout::Recv, time)
            .map_err(|why| self.broke(why))
    }

    /// How long [`Self::send`] waits for a peer that takes nothing.
    pub(crate) fn set_patience(&self, time: Option<Duration>) -> Result<()> {
        sockopt::set_socket_timeout(&self.descriptor, sockopt::Timeout::Send, time)
            .map_err(|why| self.broke(why))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.is_open() {
            std::mem::forget(Arc::clone(&self.descriptor));
        }
    }
}

/// The device and the inode by which the kernel knows a file.
fn inode(descriptor: impl AsFd) -> Option<(u64, u64)> {
    rustix::fs::fstat(descriptor).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

/// Ends a connection from any thread: whoever reads or writes it gets an error at once.
#[derive(Clone, Debug)]
pub struct Shutdown(pub(crate) Arc<Socket>);

impl Shutdown {
    pub fn now(&self) {
        if self.0.is_open() {
            let _ = net::shutdown(&self.0.descriptor, net::Shutdown::Both);
        }
    }

    /// The connection's descriptor, unless the program has closed it.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.0.is_open().then(|| self.0.descriptor.as_raw_fd())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
