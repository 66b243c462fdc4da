//! Runs this program again as a process that answers through a socket: if it hangs, its caller does not.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// The program of this process, also where its file was replaced since (proc_pid_exe(5)).
const OWN: &str = "/proc/self/exe";

/// A process of this program. One that is dropped goes on, and ends by itself.
#[derive(Debug)]
pub struct OwnProcess(Child);

impl OwnProcess {
    /// `words`: its arguments. `stdin`: the socket. It has no other stream of this process: one that hangs would hold open
    /// what a person's shell waits for.
    ///
    /// # Errors
    /// Why it cannot be started.
    #[expect(
        clippy::disallowed_methods,
        reason = "its only stream is a socket, and nobody waits for its end"
    )]
    pub fn start(words: &[&OsStr], stdin: OwnedFd) -> io::Result<Self> {
        let mut command = Command::new(OWN);
        command.args(words).stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl+C at a terminal ends this process, and with its socket that one.
        command.process_group(0);
        Ok(Self(command.spawn()?))
    }

    /// Waits for the end of one that ends now: its socket is closed.
    pub fn wait(mut self) {
        self.0.wait().ok();
    }
}
