//! How a connection begins.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hip_protocol::header::MAGIC;
use rustix::net::{self, AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::refuse::refuse_and_wait;
use crate::socket::Socket;
use crate::tls::Tls;
use crate::{Address, ClientKey, Error, Reader, Result, WorkerKey, Writer};

/// Connects to a worker: by TLS where there is a key. A unix socket is plain, because its file says who may connect.
///
/// # Errors
/// No worker is there, it is another one than the key says, or it speaks otherwise; or the time is over.
pub fn connect(address: &Address, key: Option<&ClientKey>, time: Duration) -> Result<(Reader, Writer)> {
    let deadline = Instant::now() + time;
    let peer = format!("the worker {address}");
    let failed = |why: &dyn std::fmt::Display| Error::Failed(format!("No connection to {peer}: {why}"));
    let (descriptor, key) = match address {
        Address::Unix(path) => (unix(path, time).map_err(|why| failed(&io::Error::from(why)))?, None),
        Address::Tcp { host, port } => {
            let mut last = failed(&"the name has no address");
            let mut stream = None;
            let mut addresses = (host.as_str(), *port).to_socket_addrs().map_err(|why| failed(&why))?;
            while let Some(to) = addresses.next() {
                // An address that drops packets leaves the others their share.
                let left = deadline.saturating_duration_since(Instant::now());
                let share = left / u32::try_from(addresses.len() + 1).unwrap_or(u32::MAX);
                // Zero would be refused as no time at all.
                match TcpStream::connect_timeout(&to, share.max(Duration::from_millis(1))) {
                    Ok(connected) => {
                        stream = Some(connected);
                        break;
                    }
                    Err(why) => last = failed(&why),
                }
            }
            (OwnedFd::from(stream.ok_or(last)?), key)
        }
    };
    let socket = Socket::new(descriptor, peer)?;
    let tls = key.map(|key| Tls::client(&socket, key, deadline)).transpose()?;
    Ok(halves(socket, tls))
}

/// Begins with a client that has connected: by TLS where the worker has a key. The client speaks first.
///
/// # Errors
/// The client speaks otherwise, which it is told; or it says nothing until the time is over.
pub fn accept(descriptor: OwnedFd, key: Option<&WorkerKey>, time: Duration) -> Result<(Reader, Writer)> {
    let deadline = Instant::now() + time;
    let socket = {
        let peer = peer(&descriptor);
        Socket::new(descriptor, peer)
    }?;
    socket.set_patience(Some(time))?;
    if !socket.readable(Some(deadline))? {
        return Err(Error::Silent { peer: socket.peer.clone(), time });
    }
    let mut first = [0];
    if socket.receive(&mut first, RecvFlags::PEEK)? == 0 {
        return Err(Error::Ended { peer: socket.peer.clone() });
    }
    let plain = MAGIC.to_le_bytes().first() == first.first();
    let tls = match (key, plain) {
        (Some(key), false) => Some(Tls::worker(&socket, key, deadline)?),
        (None, true) => None,
        (Some(_), true) => {
            refuse_and_wait(
                &socket,
                "this worker asks for a key: give the client.key that was made with its worker.key",
                deadline,
            );
            return Err(Error::Failed(format!("{} came without TLS and was refused", socket.peer)));
        }
        (None, false) => {
            refuse_and_wait(&socket, "this worker has no key: connect without one", deadline);
            return Err(Error::Failed(format!(
                "{} did not begin with a message and was refused: this worker has no key",
                socket.peer
            )));
        }
    };
    socket.set_patience(None)?;
    Ok(halves(socket, tls))
}

/// A worker that lets its clients wait has a full queue, and connecting to it waits as long as sending may.
fn unix(path: &Path, time: Duration) -> rustix::io::Result<OwnedFd> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(time))?;
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(socket)
}

fn halves(socket: Socket, tls: Option<Tls>) -> (Reader, Writer) {
    let (socket, tls) = (Arc::new(socket), tls.map(Arc::new));
    (Reader::new(Arc::clone(&socket), tls.clone()), Writer::new(socket, tls))
}

/// The client's address; a client of a unix socket has none.
fn peer(descriptor: impl AsFd) -> String {
    let address = net::getpeername(descriptor).ok().flatten();
    match address.and_then(|address| std::net::SocketAddr::try_from(address).ok()) {
        Some(address) => format!("the client {address}"),
        None => "the client of the unix socket".to_owned(),
    }
}
