//! What systemd hears from a service (sd_notify(3)): a datagram of `KEY=value` lines to the socket that it names.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The way to the systemd that started this process; no way where none did.
#[derive(Debug)]
pub struct Notifier {
    way: Option<(UnixDatagram, SocketAddr)>,
    /// Half of `WATCHDOG_USEC`: systemd wants `WATCHDOG=1` as often.
    pub watchdog: Option<Duration>,
}

impl Notifier {
    /// Reads how to notify systemd from a service's environment variables. `pid`: this process, for which alone the
    /// watchdog is meant (sd_watchdog_enabled(3)).
    ///
    /// # Errors
    /// `NOTIFY_SOCKET` is neither a path nor an abstract name behind an `@`.
    pub fn of(variable: impl Fn(&str) -> Option<String>, pid: u32) -> io::Result<Self> {
        let is_meant = variable("WATCHDOG_PID").is_none_or(|meant| meant.parse() == Ok(pid));
        let watchdog = variable("WATCHDOG_USEC").filter(|_| is_meant).and_then(|us| us.parse::<u64>().ok());
        let watchdog = watchdog.filter(|us| *us > 1).map(|us| Duration::from_micros(us / 2));
        let Some(name) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(Self { way: None, watchdog });
        };
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        // systemd that does not read must not hang what it watches.
        socket.set_nonblocking(true)?;
        Ok(Self { way: Some((socket, address)), watchdog })
    }

    /// Sends lines. What does not arrive is lost: the watchdog notices.
    pub fn send(&self, lines: &str) {
        let Some((socket, address)) = &self.way else { return };
        if let Err(error) = socket.send_to_addr(lines.as_bytes(), address) {
            tracing::debug!("systemd did not get {lines:?}: {error}");
        }
    }
}

/// The line that has systemd show a text, on one line.
pub fn status(text: &str) -> String {
    format!("STATUS={}\n", text.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_a_service_says_where_and_how_often() {
        let half = |us| Some(Duration::from_micros(us));
        for (variables, socket, watchdog) in [
            (&[][..], None, None),
            (&[("NOTIFY_SOCKET", "/run/systemd/notify")], Some("/run/systemd/notify"), None),
            (&[("NOTIFY_SOCKET", "")], None, None),
            (&[("WATCHDOG_USEC", "60000000")], None, half(30_000_000)),
            (&[("WATCHDOG_USEC", "60000000"), ("WATCHDOG_PID", "42")], None, half(30_000_000)),
            (&[("WATCHDOG_USEC", "60000000"), ("WATCHDOG_PID", "43")], None, None),
            (&[("WATCHDOG_USEC", "0")], None, None),
            (&[("WATCHDOG_USEC", "soon")], None, None),
        ] {
            let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|it| it.1.to_owned());
            let notifier = Notifier::of(get, 42).unwrap();
            let path = notifier.way.as_ref().and_then(|(_, address)| address.as_pathname()?.to_str());
            assert_eq!((path, notifier.watchdog), (socket, watchdog), "{variables:?}");
        }
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(status("a\nb"), "STATUS=a b\n");
    }

    #[test]
    fn a_name_behind_an_at_is_abstract() {
        let name = format!("rocworker-test-{}", std::process::id());
        let there = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let variable = |key: &str| (key == "NOTIFY_SOCKET").then(|| format!("@{name}"));
        Notifier::of(variable, 42).unwrap().send("WATCHDOG=1\n");
        let mut bytes = [0; 64];
        let length = there.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"WATCHDOG=1\n");
    }
}
