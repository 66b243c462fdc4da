//! What copies and fills are given alike.

use crate::error::Outcome;
use crate::streams::{Default, stream};
use crate::thread::Seat;

/// A stream as a call gives it, and whether the call waits.
#[derive(Clone, Copy)]
pub(super) struct On {
    pub(super) stream: usize,
    pub(super) default: Default,
    pub(super) wait: bool,
}

/// The calls that wait go to the null stream, or to the thread's.
pub(super) const WAIT: On = On { stream: 0, default: Default::Null, wait: true };
pub(super) const WAIT_SPT: On = On { stream: 0, default: Default::PerThread, wait: true };

pub(super) fn wait(stream: usize) -> On {
    On { stream, ..WAIT }
}

pub(super) fn later(stream: usize) -> On {
    On { stream, default: Default::Null, wait: false }
}

pub(super) fn later_spt(stream: usize) -> On {
    On { stream, default: Default::PerThread, wait: false }
}

impl On {
    /// The stream as the worker knows it.
    ///
    /// # Errors
    /// The program has no such stream.
    pub(super) fn wire(self, seat: &Seat) -> Outcome<u64> {
        Ok(stream(seat, self.stream, self.default)?.wire)
    }
}

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PitchedPtr {
    pub(super) address: usize,
    pub(super) pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}
