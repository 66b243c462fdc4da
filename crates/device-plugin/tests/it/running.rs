//! The program while it runs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::waiting::eventually;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker-device-plugin");

/// Killed when dropped.
pub(crate) struct Running {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    pub(crate) fn start(root: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("--root").arg(root).args(arguments);
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                of_thread.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { child, said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Waits until the program has said this.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let begun = std::time::Instant::now();
        while !self.said().contains(text) {
            assert!(begun.elapsed().as_secs() < 30, "it does not say {text:?}:\n{}", self.said());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// The most resident memory until now, in KiB.
    pub(crate) fn most_resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it by a signal, and gives its exit code.
    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
        let mut ended = None;
        eventually("the program ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
