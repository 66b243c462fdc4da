//! Where the worker listens.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::arguments::Serve;

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// The file is removed when the worker ends, if it is still the worker's: by its device and inode.
    Unix(UnixListener, PathBuf, (u64, u64)),
}

/// Listens on all addresses.
///
/// # Errors
/// A sentence: an address beyond this machine without a key, or one that cannot be had.
pub fn open(options: &Serve) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    for address in options.addresses()? {
        if !address.ip().is_loopback() && options.key.is_none() {
            return Err(format!(
                "whoever reaches {address} could run code on this machine's GPUs: make a key by `rocworker-hip-worker key \
                 /etc/rocworker/hip` and listen with --key /etc/rocworker/hip/worker.key"
            ));
        }
        listeners
            .push(tcp(address).map_err(|error| format!("the worker cannot listen on {address}: {error}"))?);
    }
    if let Some(path) = &options.unix {
        listeners.push(unix(path)?);
    }
    Ok(listeners)
}

fn tcp(address: SocketAddr) -> io::Result<Listener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(Listener::Tcp(listener))
}

fn unix(path: &Path) -> Result<Listener, String> {
    let failed = |error: io::Error| format!("the worker cannot listen on {}: {error}", path.display());
    // A worker that was killed leaves its socket.
    match UnixStream::connect(path) {
        Ok(_) => {
            return Err(format!(
                "another process listens on {}: end it, or name another path",
                path.display()
            ));
        }
        // The kernel refuses connections to files of every other kind, too.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            if !fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
                return Err(format!(
                    "{} is no socket: move it away, or name another path by --unix",
                    path.display()
                ));
            }
            fs::remove_file(path).map_err(failed)?
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let file = fs::symlink_metadata(path).map_err(failed)?;
    Ok(Listener::Unix(listener, path.to_owned(), (file.dev(), file.ino())))
}

impl Listener {
    /// The next connection, and its address, if it has one; `None`: there is no connection now.
    ///
    /// # Errors
    /// The machine has no more descriptors, mostly.
    pub fn accept(&self) -> io::Result<Option<(OwnedFd, Option<IpAddr>)>> {
        let accepted = match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, peer)| (stream.into(), Some(peer.ip()))),
            Self::Unix(listener, ..) => listener.accept().map(|(stream, _)| (stream.into(), None)),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => write!(f, "{address}"),
                Err(error) => write!(f, "an unknown address ({error})"),
            },
            Self::Unix(_, path, _) => write!(f, "{}", path.display()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, ..) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path, own) = self
            && fs::symlink_metadata(&*path).is_ok_and(|file| (file.dev(), file.ino()) == *own)
        {
            let _ = fs::remove_file(path);
        }
    }
}
