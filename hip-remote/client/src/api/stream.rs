//! Streams.

use std::ffi::{c_int, c_uint};

use hip_protocol::calls::{
    PER_THREAD, StreamCreate, StreamDestroy, StreamPriorities, StreamQuery, StreamSync, StreamWaitEvent,
};

use crate::border::{hip, quietly};
use crate::error::{HipError, Outcome};
use crate::program::put;
use crate::session;
use crate::streams::{Default, event, stream};
use crate::thread::{Seat, seated};

const NON_BLOCKING: c_uint = 1;

fn create(to: *mut usize, flags: c_uint, priority: c_int) -> Outcome {
    if flags & !NON_BLOCKING != 0 || to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let (reply, _) =
            seat.session().connection.call(&seat.desk, &StreamCreate { flags, priority }, &[])?;
        let made = session::Stream { device: seat.device(), flags, priority };
        seat.session().tables().streams.insert(reply.stream, made);
        // SAFETY: the program wants the handle there.
        unsafe { put(to, reply.stream as usize) }
    })
}

fn synchronize(handle: usize, default: Default) -> Outcome {
    seated(|seat| {
        let call = StreamSync { stream: stream(seat, handle, default)?.wire };
        seat.session().connection.call(&seat.desk, &call, &[]).map(|_| ())
    })
}

fn query(handle: usize, default: Default) -> Outcome {
    seated(|seat| {
        let call = StreamQuery { stream: stream(seat, handle, default)?.wire };
        seat.session().connection.call(&seat.desk, &call, &[]).map(|_| ())
    })
}

fn wait_event(handle: usize, for_event: usize, flags: c_uint, default: Default) -> Outcome {
    seated(|seat| {
        let call = StreamWaitEvent {
            stream: stream(seat, handle, default)?.wire,
            event: event(seat, for_event)?,
            flags,
        };
        seat.session().connection.send(&seat.desk, &call, &[])
    })
}

/// What the program made the stream with. The streams that each device and each thread has are made with nothing.
fn made_with(seat: &Seat, handle: usize, default: Default) -> Outcome<session::Stream> {
    let found = stream(seat, handle, default)?;
    if found.wire == 0 || found.wire == PER_THREAD {
        return Ok(session::Stream { device: found.device, flags: 0, priority: 0 });
    }
    seat.session().tables().streams.get(&found.wire).copied().ok_or(HipError::INVALID_HANDLE)
}

fn get_flags(handle: usize, to: *mut c_uint, default: Default) -> Outcome {
    // SAFETY: the program wants the flags there.
    seated(|seat| unsafe { put(to, made_with(seat, handle, default)?.flags) })
}

fn get_priority(handle: usize, to: *mut c_int, default: Default) -> Outcome {
    // SAFETY: the program wants the priority there.
    seated(|seat| unsafe { put(to, made_with(seat, handle, default)?.priority) })
}

/// Graphs are not supported, so that no stream is ever captured.
fn is_capturing(handle: usize, to: *mut c_int, default: Default) -> Outcome {
    seated(|seat| {
        stream(seat, handle, default)?;
        // SAFETY: the program wants the status there.
        unsafe { put(to, 0) }
    })
}

hip! {
    fn hipStreamCreate(to: *mut usize) { create(to, 0, 0) }

    fn hipStreamCreateWithFlags(to: *mut usize, flags: c_uint) { create(to, flags, 0) }

    fn hipStreamCreateWithPriority(to: *mut usize, flags: c_uint, priority: c_int) { create(to, flags, priority) }

    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        seated(|seat| {
            let (range, _) = seat.session().connection.call(&seat.desk, &StreamPriorities {}, &[])?;
            for (to, value) in [(least, range.least), (greatest, range.greatest)] {
                if !to.is_null() {
                    // SAFETY: the program wants the priority there.
                    unsafe { put(to, value) }?;
                }
            }
            Ok(())
        })
    }

    fn hipStreamDestroy(handle: usize) {
        seated(|seat| {
            let call = StreamDestroy { stream: handle as u64 };
            seat.session().tables().streams.remove(&call.stream).ok_or(HipError::INVALID_HANDLE)?;
            seat.session().connection.send(&seat.desk, &call, &[])
        })
    }

    fn hipStreamSynchronize(handle: usize) { synchronize(handle, Default::Null) }

    fn hipStreamSynchronize_spt(handle: usize) { synchronize(handle, Default::PerThread) }

    fn hipStreamQuery(handle: usize) { query(handle, Default::Null) }

    fn hipStreamQuery_spt(handle: usize) { query(handle, Default::PerThread) }

    fn hipStreamWaitEvent(handle: usize, for_event: usize, flags: c_uint) {
        wait_event(handle, for_event, flags, Default::Null)
    }

    fn hipStreamWaitEvent_spt(handle: usize, for_event: usize, flags: c_uint) {
        wait_event(handle, for_event, flags, Default::PerThread)
    }

    fn hipStreamGetFlags(handle: usize, to: *mut c_uint) { get_flags(handle, to, Default::Null) }

    fn hipStreamGetFlags_spt(handle: usize, to: *mut c_uint) { get_flags(handle, to, Default::PerThread) }

    fn hipStreamGetPriority(handle: usize, to: *mut c_int) { get_priority(handle, to, Default::Null) }

    fn hipStreamGetPriority_spt(handle: usize, to: *mut c_int) { get_priority(handle, to, Default::PerThread) }

    fn hipStreamGetDevice(handle: usize, to: *mut c_int) {
        // SAFETY: the program wants the device there.
        seated(|seat| unsafe { put(to, stream(seat, handle, Default::Null)?.device) })
    }

    fn hipStreamIsCapturing(handle: usize, to: *mut c_int) { is_capturing(handle, to, Default::Null) }

    fn hipStreamIsCapturing_spt(handle: usize, to: *mut c_int) { is_capturing(handle, to, Default::PerThread) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetStreamDeviceId(handle: usize) -> c_int {
    quietly(-1, || seated(|seat| Ok(stream(seat, handle, Default::Null)?.device)).unwrap_or(-1))
}
