//! Signals that end `top`: the terminal is restored first.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Calls `on_signal` with the first of the signals, in a thread of its own.
pub(super) fn hear(on_signal: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let place = Arc::new(AtomicUsize::new(0));
    let (mut hears, says) = UnixStream::pair()?;
    for (number, signal) in ENDING.into_iter().enumerate() {
        // In this order: the byte wakes the thread, which then looks at the number.
        flag::register_usize(signal, Arc::clone(&place), number)?;
        low_level::pipe::register(signal, says.try_clone()?)?;
    }
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if hears.read_exact(&mut [0]).is_ok() {
            on_signal(ENDING.get(place.load(Ordering::SeqCst)).copied().unwrap_or(SIGTERM));
        }
    })?;
    Ok(())
}
