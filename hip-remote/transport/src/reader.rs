//! The receiving half of a connection.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hip_protocol::envelope::{self, Envelope};
use hip_protocol::header::{self, Header, VERSION_2};
use rustix::net::RecvFlags;

use crate::socket::{Shutdown, Socket};
use crate::tls::{STEP, Tls};
use crate::{Error, Result};

/// What one system call may bring: many small messages.
const BUFFER: usize = 64 * 1024;

/// The most that one system call brings after bytes went straight to the caller: what follows is most often another chunk,
/// and of it the buffer should take the prefix alone.
const AFTER_BULK: usize = 512;

/// A message's prefix. Its other `length` bytes come from [`Reader::bytes`], [`Reader::read_exact`] or [`Reader::skip`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub version: u16,
    pub op: u16,
    pub id: u32,
    /// Version 1 has none: zeroes.
    pub envelope: Envelope,
    /// How many bytes follow: at most [`header::MAX_PAYLOAD`].
    pub length: usize,
}

#[derive(Debug)]
pub struct Reader {
    socket: Arc<Socket>,
    tls: Option<Arc<Tls>>,
    /// What TLS receives.
    encrypted: Vec<u8>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    bulk: bool,
    deadline: Option<Instant>,
}

impl Reader {
    pub(crate) fn new(socket: Arc<Socket>, tls: Option<Arc<Tls>>) -> Self {
        let encrypted = vec![0; if tls.is_some() { STEP } else { 0 }];
        Self {
            socket,
            tls,
            encrypted,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            bulk: false,
            deadline: None,
        }
    }

    /// Waits for the next message, whose predecessor the caller has taken whole.
    ///
    /// # Errors
    /// The connection ended or broke, or these are the bytes of no message.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator lends nothing, and goes on after an error"
    )]
    pub fn next(&mut self) -> Result<Message> {
        if !self.buffered(header::SIZE)? {
            return Err(Error::Ended { peer: self.socket.peer.clone() });
        }
        let malformed = |why: hip_protocol::Malformed| {
            Error::Failed(format!("{} sent what is no message: {why}", self.socket.peer))
        };
        let have = self.buffer.get(self.start..self.end).unwrap_or_default();
        let head = have.first_chunk().ok_or_else(|| Error::Ended { peer: self.socket.peer.clone() })?;
        let Header { version, op, id, length } = Header::parse(head).map_err(malformed)?;
        let mut message = Message {
            version,
            op,
            id,
            envelope: Envelope::default(),
            length: usize::try_from(length).unwrap_or(usize::MAX),
        };
        self.start += header::SIZE;
        if version == VERSION_2 {
            let mut payload = self.bytes(message.length.min(envelope::SIZE))?;
            let taken = Envelope::take(&mut payload);
            message.envelope = taken.map_err(|why| {
                Error::Failed(format!("{} sent what is no message: {why}", self.socket.peer))
            })?;
            message.length -= envelope::SIZE;
        }
        Ok(message)
    }

    /// Takes the next bytes of a message, one after the other in the reader's memory.
    ///
    /// # Errors
    /// The connection ended or broke.
    pub fn bytes(&mut self, length: usize) -> Result<&[u8]> {
        if !self.buffered(length)? {
            return Err(self.cut());
        }
        let taken = self.start..self.start + length;
        self.start = taken.end;
        Ok(self.buffer.get(taken).unwrap_or_default())
    }

    /// Takes the next bytes of a message into the caller's memory: from the kernel straight into it, but for the few bytes
    /// that came with the message's prefix.
    ///
    /// # Errors
    /// The connection ended or broke, or the memory is not the process's.
    pub fn read_exact(&mut self, to: &mut [u8]) -> Result<()> {
        let have = self.buffer.get(self.start..self.end).unwrap_or_default();
        let mut filled = have.len().min(to.len());
        if let (Some(first), Some(have)) = (to.get_mut(..filled), have.get(..filled)) {
            first.copy_from_slice(have);
            self.start += filled;
        }
        while let Some(rest) = to.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            self.bulk = true;
            let received = match &self.tls {
                // The kernel keeps what it could not write.
                None => match self.socket.receive(rest, RecvFlags::WAITALL) {
                    Err(Error::Fault) => {
                        let left = rest.len();
                        return self.skip(left).and(Err(Error::Fault));
                    }
                    received => received?,
                },
                Some(tls) => tls.receive(&self.socket, rest, &mut self.encrypted, self.deadline)?,
            };
            if received == 0 {
                return Err(self.cut());
            }
            filled += received;
        }
        Ok(())
    }

    /// Leaves out the next bytes of a message.
    ///
    /// # Errors
    /// The connection ended or broke.
    pub fn skip(&mut self, mut length: usize) -> Result<()> {
        while length > 0 {
            let some = length.min(BUFFER);
            self.bytes(some)?;
            length -= some;
        }
        Ok(())
    }

    /// Whether so many bytes are there, so that a call takes them without the other side. Those that are still encrypted
    /// do not count.
    pub fn has(&self, bytes: usize) -> bool {
        self.end - self.start >= bytes
    }

    /// Whether bytes have come that no call has taken: then [`Self::as_fd`] may not be readable.
    fn is_buffered(&self) -> bool {
        self.start < self.end || self.tls.as_ref().is_some_and(|tls| tls.is_buffered())
    }

    /// Waits until bytes have come, or the connection's end. False when the time is over first.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn poll(&self, time: Duration) -> Result<bool> {
        Ok(self.is_buffered() || self.socket.readable(Instant::now().checked_add(time))?)
    }

    /// How long a call may wait for bytes before it fails with [`Error::Silent`]. `None` is for ever.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_silence(&self, time: Option<Duration>) -> Result<()> {
        self.socket.set_silence(time)
    }

    /// When [`Self::next`] and [`Self::bytes`] fail, however many bytes come until then. `None` is never.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    pub fn shutdown(&self) -> Shutdown {
        Shutdown(Arc::clone(&self.socket))
    }

    /// The other side, for sentences.
    pub fn peer(&self) -> &str {
        &self.socket.peer
    }

    fn cut(&self) -> Error {
        Error::Failed(format!("{} closed the connection within a message", self.socket.peer))
    }

    /// Waits until the buffer has so many bytes. False where the connection ended and the buffer is empty.
    fn buffered(&mut self, length: usize) -> Result<bool> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.start + length > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if length > self.buffer.len() {
                self.buffer.resize(length, 0);
            }
        }
        while self.end - self.start < length {
            let limit = if self.bulk { self.start + length.max(AFTER_BULK) } else { self.buffer.len() };
            self.bulk = false;
            let to = self.end..limit.clamp(self.end, self.buffer.len());
            let to = self.buffer.get_mut(to).unwrap_or_default();
            let received = match &self.tls {
                None => self.socket.receive_until(to, RecvFlags::empty(), self.deadline)?,
                Some(tls) => tls.receive(&self.socket, to, &mut self.encrypted, self.deadline)?,
            };
            if received == 0 {
                return if self.start == self.end { Ok(false) } else { Err(self.cut()) };
            }
            self.end += received;
        }
        Ok(true)
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
