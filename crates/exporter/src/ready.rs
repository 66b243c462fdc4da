//! Reports to systemd that a unit with `Type=notify` is ready (sd_notify(3)).

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that the exporter answers; nothing where systemd did not start it.
///
/// # Errors
/// `NOTIFY_SOCKET` is no address, or no process reads there.
#[expect(clippy::disallowed_methods, reason = "systemd names its socket by this variable alone")]
pub(crate) fn tell_systemd() -> io::Result<()> {
    let Some(name) = std::env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}
