//! Events.

use std::ffi::c_uint;

use hip_protocol::calls::{EventCreate, EventDestroy, EventElapsed, EventQuery, EventRecord, EventSync};

use crate::border::hip;
use crate::error::{HipError, Outcome};
use crate::program::put;
use crate::session::Event;
use crate::streams::{Default, event, stream};
use crate::thread::{Seat, seated};

/// `hipEventInterprocess`, for which there is no other process at the worker.
const INTERPROCESS: c_uint = 0x4;

const BLOCKING_SYNC: c_uint = 0x1;
const DISABLE_TIMING: c_uint = 0x2;
const DISABLE_SYSTEM_FENCE: c_uint = 0x2000_0000;
const RELEASE_TO_DEVICE: c_uint = 0x4000_0000;
const RELEASE_TO_SYSTEM: c_uint = 0x8000_0000;

/// What the worker is asked for. A system fence that the program does without costs it time alone, and HIP 5.2 does not know
/// the flag.
fn wire(flags: c_uint) -> Outcome<c_uint> {
    let known = BLOCKING_SYNC
        | DISABLE_TIMING
        | INTERPROCESS
        | DISABLE_SYSTEM_FENCE
        | RELEASE_TO_DEVICE
        | RELEASE_TO_SYSTEM;
    match flags {
        _ if flags & !known != 0 => Err(HipError::INVALID_VALUE),
        _ if flags & INTERPROCESS != 0 => Err(HipError::NOT_SUPPORTED),
        _ => Ok(flags & !DISABLE_SYSTEM_FENCE),
    }
}

fn create(to: *mut usize, flags: c_uint) -> Outcome {
    let flags = wire(flags)?;
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let (reply, _) = seat.session().connection.call(&seat.desk, &EventCreate { flags }, &[])?;
        seat.session().tables().events.insert(reply.event, Event { device: seat.device() });
        // SAFETY: the program wants the handle there.
        unsafe { put(to, reply.event as usize) }
    })
}

pub(super) fn record(seat: &Seat, handle: usize, on: usize, default: Default) -> Outcome {
    let call = EventRecord { event: event(seat, handle)?, stream: stream(seat, on, default)?.wire };
    seat.session().connection.send(&seat.desk, &call, &[])
}

hip! {
    fn hipEventCreate(to: *mut usize) { create(to, 0) }

    fn hipEventCreateWithFlags(to: *mut usize, flags: c_uint) { create(to, flags) }

    fn hipEventDestroy(handle: usize) {
        seated(|seat| {
            let call = EventDestroy { event: handle as u64 };
            seat.session().tables().events.remove(&call.event).ok_or(HipError::INVALID_HANDLE)?;
            seat.session().connection.send(&seat.desk, &call, &[])
        })
    }

    fn hipEventRecord(handle: usize, on: usize) { seated(|seat| record(seat, handle, on, Default::Null)) }

    fn hipEventRecord_spt(handle: usize, on: usize) { seated(|seat| record(seat, handle, on, Default::PerThread)) }

    fn hipEventSynchronize(handle: usize) {
        seated(|seat| {
            let call = EventSync { event: event(seat, handle)? };
            seat.session().connection.call(&seat.desk, &call, &[]).map(|_| ())
        })
    }

    fn hipEventQuery(handle: usize) {
        seated(|seat| {
            let call = EventQuery { event: event(seat, handle)? };
            seat.session().connection.call(&seat.desk, &call, &[]).map(|_| ())
        })
    }

    fn hipEventElapsedTime(to: *mut f32, start: usize, stop: usize) {
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        seated(|seat| {
            let call = EventElapsed { start: event(seat, start)?, stop: event(seat, stop)? };
            let (reply, _) = seat.session().connection.call(&seat.desk, &call, &[])?;
            // SAFETY: the program wants the time there.
            unsafe { put(to, reply.milliseconds) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_asked_for_the_flags_that_each_library_knows() {
        assert_eq!(wire(DISABLE_TIMING | RELEASE_TO_SYSTEM), Ok(DISABLE_TIMING | RELEASE_TO_SYSTEM));
        assert_eq!(wire(DISABLE_SYSTEM_FENCE | DISABLE_TIMING), Ok(DISABLE_TIMING));
        assert_eq!(wire(INTERPROCESS | DISABLE_TIMING), Err(HipError::NOT_SUPPORTED));
        assert_eq!(wire(0x1000_0000), Err(HipError::INVALID_VALUE));
    }
}
