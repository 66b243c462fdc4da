//! Ending a process that is named by its number and start time, and never another one with that number; and not
//! being ended by a signal oneself.
#![allow(unsafe_code, reason = "no library that is safe has a call by which a signal is ignored")]

use std::ffi::c_int;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::alive::Process;

unsafe extern "C" {
    // What is to be done about a signal is a function's address, or one of the numbers below.
    fn signal(number: c_int, what: usize) -> usize;
}

/// Writes what may be a pipe whose reader has gone: then the write fails, and this process goes on. It would die of
/// SIGPIPE, and a container would not start because nobody reads a warning. Afterwards the signal does what it did,
/// since the runtime inherits that.
pub(crate) fn without_sigpipe(write: impl FnOnce()) {
    const SIGPIPE: c_int = 13;
    const IGNORED: usize = 1;
    const NOT_KNOWN: usize = usize::MAX;
    // SAFETY: nothing is called when the signal comes, and this process has only one thread.
    let before = unsafe { signal(SIGPIPE, IGNORED) };
    write();
    if before != NOT_KNOWN {
        // SAFETY: this was done about it before.
        unsafe { signal(SIGPIPE, before) };
    }
}

/// Sends SIGKILL. One that has ended already is no error.
///
/// # Errors
/// What the kernel said.
pub(crate) fn kill(process: Process, proc: &Path) -> io::Result<()> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process has this number"))?;
    let kill = || {
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        // From here on the descriptor is one process; whether it is the right one is looked up now.
        if process.is_alive(proc) { pidfd_send_signal(descriptor, Signal::KILL) } else { Ok(()) }
    };
    match kill() {
        Err(Errno::SRCH) => Ok(()),
        killed => Ok(killed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    #[test]
    fn a_process_is_ended_and_another_one_with_its_number_is_not() {
        let proc = Path::new("/proc");
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let named = Process::now(proc, child.id()).unwrap();
        kill(Process { start_time: named.start_time - 1, ..named }, proc).unwrap();
        kill(Process { start_time: named.start_time + 1, ..named }, proc).unwrap();
        assert!(named.is_alive(proc));
        kill(named, proc).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        kill(named, proc).unwrap();
    }
}
