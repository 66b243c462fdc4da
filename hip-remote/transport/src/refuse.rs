//! A refusal before TLS has begun, or in its place: one [`Close`] message with a sentence, unencrypted.
//!
//! A client takes it as a hint for its user and fails either way, so that whoever forges one gains nothing.

use hip_protocol::calls::{Call, Close};
use hip_protocol::envelope::Envelope;
use hip_protocol::header::{self, Header};
use hip_protocol::message;
use rustix::net::RecvFlags;

use crate::socket::Socket;
use crate::text::printable;

/// Says why to a client whose connection is about to be closed, without waiting for it.
pub fn refuse(socket: impl std::os::fd::AsFd, sentence: &str) {
    let mut bytes = Vec::new();
    message::put(Close::OP, 0, Envelope::default(), &Close {}, sentence.as_bytes(), &mut bytes);
    let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
    let _ = rustix::net::send(&socket, &bytes, flags);
    let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Write);
    // A kernel that closes a socket with unread bytes resets the connection, and the sentence is lost.
    let mut unread = [0; 4096];
    let _ = rustix::net::recv(&socket, &mut unread, RecvFlags::DONTWAIT);
}

/// The sentence of a refusal, where bytes begin with one.
pub(crate) fn sentence(bytes: &[u8]) -> Option<String> {
    let (head, mut rest) = bytes.split_first_chunk::<{ header::SIZE }>()?;
    let header = Header::parse(head).ok()?;
    Envelope::take(&mut rest).ok()?;
    if header.op != Close::OP {
        return None;
    }
    Some(printable(rest))
}

/// Refuses and waits until the peer has read it, at most until the deadline.
pub(crate) fn refuse_and_wait(socket: &Socket, sentence: &str, deadline: std::time::Instant) {
    refuse(socket, sentence);
    let mut unread = [0; 4096];
    while let Ok(1..) = socket.receive_until(&mut unread, RecvFlags::empty(), Some(deadline)) {}
}
