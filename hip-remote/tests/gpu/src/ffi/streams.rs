//! Streams and events, and waits for devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{find_device, give, on, status, stream};
use crate::clock;
use crate::device::Device;
use crate::handles::{EVENTS, Event, Record, STREAMS};
use crate::memory::memory;
use crate::status::*;
use crate::stream::Stream;

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_stream_create(number: i32, flags: u32, priority: i32, to: *mut u64) -> Status {
    let create = || {
        let device = find_device(number)?;
        device.healthy()?;
        let stream = Stream::new(number as usize, flags, priority);
        device.add(&stream);
        Ok(STREAMS.add(stream))
    };
    status(create().and_then(|handle| unsafe { give(to, handle) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_stream_destroy(handle: u64) -> Status {
    match STREAMS.remove(handle) {
        Some(stream) => {
            stream.end();
            SUCCESS
        }
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_stream_sync(number: i32, handle: u64) -> Status {
    let sync = || {
        let stream = stream(number, handle)?;
        let device = on(&stream)?;
        if Arc::ptr_eq(&stream, &device.null) {
            return device.drain_null();
        }
        stream.last().wait();
        device.healthy()
    };
    status(sync())
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_stream_query(number: i32, handle: u64) -> Status {
    let query = || {
        let stream = stream(number, handle)?;
        if !stream.last().is_done() {
            return Err(NOT_READY);
        }
        on(&stream)?.healthy()
    };
    status(query())
}

/// # Safety
/// The pointers must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_stream_info(
    number: i32,
    handle: u64,
    device: *mut i32,
    flags: *mut u32,
    priority: *mut i32,
) -> Status {
    let stream = match stream(number, handle) {
        Ok(stream) => stream,
        Err(status) => return status,
    };
    for result in unsafe {
        [give(device, stream.device as i32), give(flags, stream.flags), give(priority, stream.priority)]
    } {
        let _ = result;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_stream_wait_event(number: i32, handle: u64, event: u64) -> Status {
    let wait = || {
        let stream = stream(number, handle)?;
        let event = EVENTS.get(event).ok_or(INVALID_HANDLE)?;
        if let Some(record) = event.record() {
            on(&stream)?.submit(&stream, Some(record.ticket), true, || Ok(()));
        }
        Ok(())
    };
    status(wait())
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_device_sync(number: i32) -> Status {
    status(find_device(number).and_then(Device::drain))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_device_reset(number: i32) -> Status {
    let reset = || {
        let device = find_device(number)?;
        let _ = device.drain();
        device.recover();
        memory().reset(number as usize);
        STREAMS.retain(|stream| {
            let stays = stream.device as i32 != number;
            if !stays {
                stream.end();
            }
            stays
        });
        Ok(())
    };
    status(reset())
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_event_create(flags: u32, to: *mut u64) -> Status {
    status(unsafe { give(to, EVENTS.add(Arc::new(Event { flags, record: Default::default() }))) })
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_event_destroy(handle: u64) -> Status {
    if EVENTS.remove(handle).is_some() { SUCCESS } else { INVALID_HANDLE }
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_event_record(number: i32, event: u64, handle: u64) -> Status {
    let record = || {
        let stream = stream(number, handle)?;
        let event = EVENTS.get(event).ok_or(INVALID_HANDLE)?;
        record_event(&event, &stream)
    };
    status(record())
}

pub(super) fn record_event(event: &Event, stream: &Arc<Stream>) -> Result<(), Status> {
    let device = on(stream)?;
    device.healthy()?;
    let nanoseconds = Arc::new(AtomicU64::new(0));
    let time = nanoseconds.clone();
    let ticket = device.submit(stream, None, true, move || {
        time.store(clock::nanoseconds(), Ordering::Release);
        Ok(())
    });
    *event.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) =
        Some(Record { ticket, nanoseconds });
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_event_sync(event: u64) -> Status {
    let sync = || {
        let Some(record) = EVENTS.get(event).ok_or(INVALID_HANDLE)?.record() else { return Ok(()) };
        record.ticket.wait();
        on(&record.ticket.stream)?.healthy()
    };
    status(sync())
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_event_query(event: u64) -> Status {
    let query = || {
        let Some(record) = EVENTS.get(event).ok_or(INVALID_HANDLE)?.record() else { return Ok(()) };
        if !record.ticket.is_done() {
            return Err(NOT_READY);
        }
        on(&record.ticket.stream)?.healthy()
    };
    status(query())
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_event_elapsed(start: u64, stop: u64, to: *mut f32) -> Status {
    let elapsed = || {
        let time = |handle: u64| {
            let event = EVENTS.get(handle).ok_or(INVALID_HANDLE)?;
            // hipEventDisableTiming is 2.
            let record = event.record().filter(|_| event.flags & 2 == 0).ok_or(INVALID_HANDLE)?;
            if !record.ticket.is_done() {
                return Err(NOT_READY);
            }
            Ok(record.nanoseconds.load(Ordering::Acquire) as f64)
        };
        Ok(((time(stop)? - time(start)?) / 1e6) as f32)
    };
    status(elapsed().and_then(|milliseconds| unsafe { give(to, milliseconds) }))
}
