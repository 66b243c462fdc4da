//! What systemd is told (sd_notify(3)): a datagram of `KEY=value` lines to the socket that it names.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

/// What systemd has put into the environment of a service, read once at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manager {
    /// `NOTIFY_SOCKET`: a path, or an abstract name behind an `@`.
    pub socket: Option<String>,
    /// Half of `WATCHDOG_USEC`: as often it is told that all is well.
    pub watchdog: Option<Duration>,
}

impl Manager {
    /// Of an environment. `pid`: this process, for which alone the watchdog is meant (sd_watchdog_enabled(3)).
    pub fn of(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Self {
        let is_ours = variable("WATCHDOG_PID").is_none_or(|meant| meant.parse() == Ok(pid));
        let watchdog = variable("WATCHDOG_USEC").filter(|_| is_ours).and_then(|us| us.parse::<u64>().ok());
        Self {
            socket: variable("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()),
            watchdog: watchdog.filter(|us| *us > 1).map(|us| Duration::from_micros(us / 2)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// With what is shown of it: it does what it is there for.
    Ready(&'a str),
    Status(&'a str),
    Watchdog,
    /// With the microseconds of CLOCK_MONOTONIC, by which systemd knows which reload it is told of.
    Reloading(u64),
    Stopping,
}

impl Message<'_> {
    /// As systemd reads it. A line of a status is one line.
    pub fn text(&self) -> String {
        let status = |text: &str| format!("STATUS={}\n", text.replace('\n', " "));
        match self {
            Self::Ready(text) => format!("READY=1\n{}", status(text)),
            Self::Status(text) => status(text),
            Self::Watchdog => "WATCHDOG=1\n".to_owned(),
            Self::Reloading(us) => format!("RELOADING=1\nMONOTONIC_USEC={us}\n"),
            Self::Stopping => "STOPPING=1\nSTATUS=ending\n".to_owned(),
        }
    }
}

#[derive(Debug)]
pub struct Notifier {
    way: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    pub fn to(socket: Option<&str>) -> io::Result<Self> {
        let Some(name) = socket else { return Ok(Self { way: None }) };
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())))?,
        };
        let socket = UnixDatagram::unbound()?;
        // systemd that does not read must not hang what it watches.
        socket.set_nonblocking(true)?;
        Ok(Self { way: Some((socket, address)) })
    }

    /// Tells it. What does not arrive is not waited for: the watchdog notices.
    pub fn tell(&self, message: &Message<'_>) {
        let Some((socket, address)) = &self.way else { return };
        if let Err(error) = socket.send_to_addr(message.text().as_bytes(), address) {
            tracing::debug!("systemd was not told {message:?}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> Manager {
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|it| it.1.to_owned());
        Manager::of(get, 42)
    }

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
            let expected = Manager { socket: socket.map(str::to_owned), watchdog };
            assert_eq!(manager(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn messages_are_lines() {
        for (message, text) in [
            (Message::Ready("looking"), "READY=1\nSTATUS=looking\n"),
            (Message::Status("a\nb"), "STATUS=a b\n"),
            (Message::Watchdog, "WATCHDOG=1\n"),
            (Message::Reloading(7), "RELOADING=1\nMONOTONIC_USEC=7\n"),
            (Message::Stopping, "STOPPING=1\nSTATUS=ending\n"),
        ] {
            assert_eq!(message.text(), text);
        }
    }

    #[test]
    fn a_name_behind_an_at_is_abstract() {
        let name = format!("rocworker-test-{}", std::process::id());
        let there = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        Notifier::to(Some(&format!("@{name}"))).unwrap().tell(&Message::Watchdog);
        let mut bytes = [0; 64];
        let length = there.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"WATCHDOG=1\n");
    }
}
