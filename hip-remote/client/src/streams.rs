//! What the program's stream and event handles mean.

use hip_protocol::calls::PER_THREAD;

use crate::error::{HipError, Outcome};
use crate::thread::Seat;

/// `hipStreamLegacy`: the null stream by another name (ROCm 6.2).
const LEGACY: usize = 1;

/// `hipStreamPerThread`.
const THREAD: usize = 2;

/// Which stream a call means that gives none: the device's null stream, or by `_spt` the thread's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Default {
    Null,
    PerThread,
}

/// A stream as the worker knows it, and its device.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub wire: u64,
    pub device: i32,
}

/// # Errors
/// The program has no such stream.
pub fn stream(seat: &Seat, handle: usize, default: Default) -> Outcome<Stream> {
    let wire = match handle {
        0 if default == Default::Null => 0,
        0 | THREAD => PER_THREAD,
        LEGACY => 0,
        _ => {
            let wire = handle as u64;
            let tables = seat.session().tables();
            let found = tables.streams.get(&wire).ok_or(HipError::INVALID_HANDLE)?;
            return Ok(Stream { wire, device: found.device });
        }
    };
    Ok(Stream { wire, device: seat.device() })
}

/// # Errors
/// The program has no such event.
pub fn event(seat: &Seat, handle: usize) -> Outcome<u64> {
    let wire = handle as u64;
    if seat.session().tables().events.contains_key(&wire) { Ok(wire) } else { Err(HipError::INVALID_HANDLE) }
}
