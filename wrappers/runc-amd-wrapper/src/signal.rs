//! Ending a process that is named by its number and start time, and never another one with that number; and not
//! being ended by a signal oneself.
#![allow(unsafe_code, reason = "std has no call that sends a signal, and none that ignores one")]

use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use crate::alive::Process;

/// The same on every architecture (include/uapi/asm-generic/unistd.h). Linux 5.3.
const PIDFD_SEND_SIGNAL: c_long = 424;
const PIDFD_OPEN: c_long = 434;
const SIGKILL: c_int = 9;
const SIGPIPE: c_int = 13;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    // What is to be done about a signal is a function's address, or one of the numbers below.
    fn signal(number: c_int, what: usize) -> usize;
}

/// Writes what may be a pipe whose reader has gone: then the write fails, and this process goes on. It would die of
/// SIGPIPE, and a container would not start because nobody reads a warning. Afterwards the signal does what it did,
/// since the runtime inherits that.
pub(crate) fn without_sigpipe(write: impl FnOnce()) {
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
    let pid = c_int::try_from(process.pid).map_err(io::Error::other)?;
    let no_flags: c_int = 0;
    // SAFETY: pidfd_open takes a number and flags, and touches no memory of this process.
    let descriptor = unsafe { syscall(PIDFD_OPEN, pid, no_flags) };
    let Ok(descriptor) = c_int::try_from(descriptor).and_then(|fd| u32::try_from(fd).map(|_| fd)) else {
        return unless_gone(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just opened this descriptor, and nobody else knows of it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // From here on the descriptor is one process; whether it is the right one is looked up now.
    if !process.is_alive(proc) {
        return Ok(());
    }
    let no_info: *const u8 = std::ptr::null();
    // SAFETY: the descriptor is open, and without a siginfo the kernel reads no memory.
    let sent = unsafe { syscall(PIDFD_SEND_SIGNAL, descriptor.as_raw_fd(), SIGKILL, no_info, no_flags) };
    if sent == 0 { Ok(()) } else { unless_gone(io::Error::last_os_error()) }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    const ESRCH: i32 = 3;
    if error.raw_os_error() == Some(ESRCH) { Ok(()) } else { Err(error) }
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
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
        kill(named, proc).unwrap();
    }
}
