//! A daemon that runs, and waiting for what it does: never longer than it may take, and by its own word.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::waiting::LONGEST;
pub(crate) use support::waiting::eventually;

use crate::setup::laid::Laid;

pub(crate) const SOCKET: &str = "run/rocworker/daemon.sock";

/// Where a test may hear what the daemon reports to systemd.
pub(crate) const NOTIFY: &str = "notify";

pub(crate) struct Running<'a> {
    pub(crate) laid: &'a Laid,
    child: Child,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The machine, set up, with a daemon that has looked at it.
pub(crate) fn applied(laid: &Laid) -> Running<'_> {
    laid.run(&["apply"]).success();
    Running::begin(laid)
}

impl<'a> Running<'a> {
    pub(crate) fn begin(laid: &'a Laid) -> Self {
        Self::by(Path::new(env!("CARGO_BIN_EXE_rocworker")), laid)
    }

    /// Starts the daemon by the program at this path, and waits until it has looked.
    pub(crate) fn by(program: &Path, laid: &'a Laid) -> Self {
        let running = Self::started(&mut of(program, laid), laid);
        running.until("it has looked", |daemon| daemon["counts"]["looks"].as_u64() > Some(0));
        running
    }

    /// One that may not have looked yet.
    pub(crate) fn started(command: &mut Command, laid: &'a Laid) -> Self {
        Self { laid, child: command.spawn().unwrap() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// What it says of itself.
    pub(crate) fn says(&self) -> Value {
        serde_json::from_str(&answer(self.laid, b"status\n")).unwrap()
    }

    /// Waits until it says something.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut said = Value::Null;
        eventually(what, || {
            said = if self.laid.path(SOCKET).exists() { self.says() } else { Value::Null };
            is_so(&said)
        });
        said
    }

    /// Has it look at once, and waits until it has.
    pub(crate) fn look(&self) -> Value {
        let before = self.says()["counts"]["looks"].as_u64();
        self.signal(Signal::SIGHUP);
        self.until("it has looked", |daemon| daemon["counts"]["looks"].as_u64() > before)
    }

    /// How it ended, and how long that took.
    pub(crate) fn ended(mut self, signal: Signal) -> (ExitStatus, Duration, String) {
        self.signal(signal);
        let began = Instant::now();
        eventually("it has ended", || self.child.try_wait().unwrap().is_some());
        let took = began.elapsed();
        let (status, said) = self.ends_by_itself();
        (status, took, said)
    }

    /// How it ends, and what it has said.
    pub(crate) fn ends_by_itself(mut self) -> (ExitStatus, String) {
        eventually("it has ended", || self.child.try_wait().unwrap().is_some());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }

    /// Whether it has a file of the machine open.
    pub(crate) fn has_open(&self, path: &str) -> bool {
        let path = self.laid.path(path).canonicalize().unwrap();
        let mut open = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        open.any(|entry| fs::read_link(entry.unwrap().path()).is_ok_and(|link| link == path))
    }

    /// A number of kilobytes from /proc/PID/status.
    pub(crate) fn kib(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }
}

/// What is answered to a request, as far as it is.
pub(crate) fn answer(laid: &Laid, request: &[u8]) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = UnixStream::connect(laid.path(SOCKET)) {
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        stream.write_all(request).unwrap();
        // One that is left in the middle of its question gets a reset.
        stream.read_to_string(&mut text).ok();
    }
    if text.is_empty() { "null".to_owned() } else { text }
}

pub(crate) fn command(laid: &Laid) -> Command {
    of(Path::new(env!("CARGO_BIN_EXE_rocworker")), laid)
}

fn of(program: &Path, laid: &Laid) -> Command {
    let mut command = Command::new(program);
    command.arg("--root").arg(laid.top()).arg("serve");
    command.env("NOTIFY_SOCKET", laid.path(NOTIFY));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}
