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

impl Default {
    /// What the worker knows a stream by that the program has not made.
    ///
    /// The `_spt` calls take `hipStreamLegacy` for 0, too (clr's PER_THREAD_DEFAULT_STREAM).
    fn without_handle(self, handle: usize) -> Option<u64> {
        match handle {
            0 | LEGACY if self == Self::Null => Some(0),
            0 | LEGACY | THREAD => Some(PER_THREAD),
            _ => None,
        }
    }
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
    if let Some(wire) = default.without_handle(handle) {
        return Ok(Stream { wire, device: seat.device() });
    }
    let wire = handle as u64;
    let tables = seat.session().tables();
    let found = tables.streams.get(&wire).ok_or(HipError::INVALID_HANDLE)?;
    Ok(Stream { wire, device: found.device })
}

/// # Errors
/// The program has no such event.
pub fn event(seat: &Seat, handle: usize) -> Outcome<u64> {
    let wire = handle as u64;
    if seat.session().tables().events.contains_key(&wire) { Ok(wire) } else { Err(HipError::INVALID_HANDLE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_the_program_did_not_make_is_the_null_stream_or_the_threads_own() {
        for (handle, null, spt) in [
            (0, Some(0), Some(PER_THREAD)),
            (LEGACY, Some(0), Some(PER_THREAD)),
            (THREAD, Some(PER_THREAD), Some(PER_THREAD)),
            (3, None, None),
        ] {
            let found = [Default::Null, Default::PerThread].map(|default| default.without_handle(handle));
            assert_eq!(found, [null, spt], "{handle}");
        }
    }
}
