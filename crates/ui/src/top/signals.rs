//! Signals that end, stop or continue `top`: it restores the terminal before it obeys them.
//!
//! Every thread blocks them, and one waits for them. A handler could not obey: only the kernel's own action of SIGTSTP
//! spares a process that no shell would continue.

use std::io;
use std::thread;

use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::Pid;

const ENDING: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Keeps the signals from this thread and from those that it starts, for a thread that begins before [`live`](super::live)
/// does.
pub fn block() {
    // The set is right, so that the kernel does not refuse.
    all().thread_block().ok();
}

fn all() -> SigSet {
    ENDING.into_iter().chain([Signal::SIGTSTP, Signal::SIGCONT]).collect()
}

/// Calls `on_signal` with each signal, in a thread of its own. Call this before other threads start: they inherit the mask.
pub(super) fn receive(on_signal: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
    let signals = all();
    signals.thread_block()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut is_ending = false;
        while let Ok(signal) = signals.wait() {
            let ends = ENDING.contains(&signal);
            // The main thread has not ended since the first one: it may wait in a write to the terminal.
            if ends && is_ending {
                obey(signal).ok();
            }
            is_ending |= ends;
            on_signal(signal);
        }
    })?;
    Ok(())
}

/// Lets a signal do to this process what it does by default.
pub(super) fn obey(signal: Signal) -> io::Result<()> {
    let mask = SigSet::from(signal);
    mask.thread_unblock()?;
    raise(signal)?;
    Ok(mask.thread_block()?)
}

/// Asks this process and all others of its job to stop, as the terminal does for Ctrl-Z.
pub(super) fn stop_job() -> io::Result<()> {
    Ok(kill(Pid::from_raw(0), Signal::SIGTSTP)?)
}

/// Stops this process until a shell continues it. [`receive`] hears SIGCONT afterwards, also where nothing has stopped.
pub(super) fn stop() -> io::Result<()> {
    obey(Signal::SIGTSTP)?;
    // The kernel stops no process whose job no shell controls.
    Ok(kill(Pid::this(), Signal::SIGCONT)?)
}
