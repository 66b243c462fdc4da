//! What the C files beside this folder call. Each function gives a hipError_t.

mod memory;
mod modules;
mod streams;

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use crate::device::{self, Device};
use crate::handles::{EVENTS, MODULES, STREAMS};
use crate::memory::{Kind, memory};
use crate::status::*;
use crate::stream::Stream;

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(SUCCESS)
}

fn find_device(number: i32) -> Result<&'static Device, Status> {
    usize::try_from(number).ok().and_then(device::device).ok_or(INVALID_DEVICE)
}

thread_local! {
    /// hipStreamPerThread's streams, by device.
    static OWN: std::cell::RefCell<Vec<Arc<Stream>>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// A stream by its handle: 0 and 1 are the null stream of a device, 2 is the thread's own.
fn stream(number: i32, handle: u64) -> Result<Arc<Stream>, Status> {
    match handle {
        0 | 1 => Ok(find_device(number)?.null.clone()),
        2 => OWN.with_borrow_mut(|own| {
            if let Some(stream) = own.iter().find(|stream| stream.device as i32 == number) {
                return Ok(stream.clone());
            }
            let stream = Stream::new(number as usize, 0, 0);
            find_device(number)?.add(&stream);
            own.push(stream.clone());
            Ok(stream)
        }),
        _ => STREAMS.get(handle).ok_or(INVALID_HANDLE),
    }
}

fn on(stream: &Stream) -> Result<&'static Device, Status> {
    device::device(stream.device).ok_or(INVALID_DEVICE)
}

/// # Safety
/// `to` must be null or valid.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), Status> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    unsafe { to.write(value) };
    Ok(())
}

/// # Safety
/// The pointer must be null or a string.
unsafe fn text(pointer: *const c_char) -> Result<String, Status> {
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Writes what the program has not given back to the file that TEST_GPU_REPORT names.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_report() {
    let Some(file) = std::env::var_os("TEST_GPU_REPORT") else { return };
    let memory = memory();
    let report = format!(
        "allocations {}\npinned {}\nregistered {}\nstreams {}\nevents {}\nmodules {}\n",
        memory.count(Kind::Device),
        memory.count(Kind::Pinned),
        memory.count(Kind::Registered),
        STREAMS.count(),
        EVENTS.count(),
        MODULES.count(),
    );
    if let Err(error) = std::fs::write(&file, report) {
        eprintln!(
            "test GPU: writing {}: {error}: set TEST_GPU_REPORT to a file that can be written",
            file.display()
        );
    }
}
