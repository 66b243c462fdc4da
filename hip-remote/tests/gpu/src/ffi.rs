//! What the C files beside this folder call. Each function gives a hipError_t.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;
use crate::code_object::{self, Kernel, Module};
use crate::copy::{self, Rows};
use crate::device::{self, Device};
use crate::dispatch::Launch;
use crate::handles::{EVENTS, Event, KERNELS, MODULES, Record, STREAMS};
use crate::memory::{Kind, memory};
use crate::registered;
use crate::settings::SETTINGS;
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

#[unsafe(no_mangle)]
pub extern "C" fn gpu_device_count() -> i32 {
    device::count() as i32
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_total_memory() -> u64 {
    SETTINGS.memory
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_used_memory(number: i32) -> u64 {
    memory().used(number as usize)
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_healthy(number: i32) -> Status {
    status(find_device(number).and_then(Device::healthy))
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_malloc(number: i32, bytes: u64, to: *mut u64) -> Status {
    let allocate = || {
        find_device(number)?.healthy()?;
        if bytes == 0 {
            return Ok(0);
        }
        memory().allocate(number as usize, bytes, Kind::Device)
    };
    status(allocate().and_then(|address| unsafe { give(to, address) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_free(address: u64) -> Status {
    let free = || {
        if address == 0 {
            return Ok(());
        }
        let found = memory()
            .find(address)
            .copied()
            .filter(|found| found.start == address && found.kind == Kind::Device);
        let number = found.ok_or(INVALID_VALUE)?.device;
        // HIP's free waits for the device.
        let drained = device::device(number).ok_or(INVALID_DEVICE)?.drain();
        memory().free(address, Kind::Device)?;
        drained
    };
    status(free())
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_host_malloc(number: i32, bytes: u64, flags: u32, to: *mut u64) -> Status {
    let allocated = if bytes == 0 { Ok(0) } else { memory().allocate_host(number as usize, bytes, flags) };
    status(allocated.and_then(|address| unsafe { give(to, address) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_host_free(address: u64) -> Status {
    if address == 0 {
        return SUCCESS;
    }
    let known =
        memory().find(address).is_some_and(|found| found.start == address && found.kind == Kind::Pinned);
    if !known {
        return INVALID_VALUE;
    }
    for number in 0..device::count() {
        if let Some(device) = device::device(number) {
            let _ = device.drain();
        }
    }
    status(memory().free(address, Kind::Pinned))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_host_register(number: i32, address: u64, bytes: u64, flags: u32) -> Status {
    status(memory().register(number as usize, address, bytes, flags))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_host_unregister(address: u64) -> Status {
    status(memory().unregister(address))
}

/// gpu.h has its twin.
#[repr(C)]
pub struct Found {
    pub start: u64,
    pub bytes: u64,
    pub device: i32,
    /// 1: on a device, 2: of the host.
    pub kind: i32,
    pub flags: u32,
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_find(address: u64, to: *mut Found) -> Status {
    let Some(found) = memory().find(address).copied() else { return INVALID_VALUE };
    let kind = if found.is_on_device() { 1 } else { 2 };
    let found = Found {
        start: found.start,
        bytes: found.bytes,
        device: found.device as i32,
        kind,
        flags: found.flags,
    };
    status(unsafe { give(to, found) })
}

/// # Safety
/// The rows must be where the program's own memory is, or the GPU's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_copy(number: i32, handle: u64, rows: *const Rows, wait: i32) -> Status {
    let copy = || {
        let stream = stream(number, handle)?;
        let device = on(&stream)?;
        device.healthy()?;
        let Some(rows) = (unsafe { rows.as_ref() }) else { return Err(INVALID_VALUE) };
        unsafe { copy::copy(device, &stream, *rows, wait != 0) }
    };
    status(copy())
}

/// Fills rows of elements of 1, 2 or 4 bytes.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_fill(
    number: i32,
    handle: u64,
    to: u64,
    pitch: u64,
    value: u32,
    element: u64,
    width: u64,
    height: u64,
    wait: i32,
) -> Status {
    let fill = || {
        let stream = stream(number, handle)?;
        let device = on(&stream)?;
        device.healthy()?;
        copy::fill(device, &stream, copy::Fill { to, pitch, value, element, width, height }, wait != 0)
    };
    status(fill())
}

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

fn record_event(event: &Event, stream: &Arc<Stream>) -> Result<(), Status> {
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

/// # Safety
/// The image must be as long as its headers say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_module_load(number: i32, image: *const u8, to: *mut u64) -> Status {
    let load = || {
        find_device(number)?.healthy()?;
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        let image = unsafe { code_object::image(image) }?;
        Ok(MODULES.add(Arc::new(Module::load(&image, number as usize)?)))
    };
    status(load().and_then(|handle| unsafe { give(to, handle) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_module_unload(handle: u64) -> Status {
    let Some(module) = MODULES.remove(handle) else { return INVALID_HANDLE };
    let entries: Vec<u64> = module.kernels.values().map(|kernel| kernel.object).collect();
    for kernel in module.kernels.values().take(1) {
        if let Some(device) = device::device(kernel.device) {
            let _ = device.drain();
        }
    }
    KERNELS.retain(|kernel| !entries.contains(&kernel.object));
    SUCCESS
}

/// # Safety
/// `name` must be null or a string, and `to` null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_module_function(module: u64, name: *const c_char, to: *mut u64) -> Status {
    let function = || {
        let name = unsafe { text(name) }?;
        let module = MODULES.get(module).ok_or(INVALID_HANDLE)?;
        Ok(KERNELS.add(module.kernels.get(&name).cloned().ok_or(NOT_FOUND)?))
    };
    status(function().and_then(|handle| unsafe { give(to, handle) }))
}

/// # Safety
/// `name` must be null or a string, and the others null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_module_global(
    module: u64,
    name: *const c_char,
    address: *mut u64,
    bytes: *mut u64,
) -> Status {
    let global = || {
        let name = unsafe { text(name) }?;
        let module = MODULES.get(module).ok_or(INVALID_HANDLE)?;
        let (start, length) = module.variables.get(&name).copied().ok_or(NOT_FOUND)?;
        // HIP takes null for what the program does not ask.
        let _ = unsafe { (give(address, start), give(bytes, length)) };
        Ok(())
    };
    status(global())
}

/// # Safety
/// The pointer must be null or a string.
unsafe fn text(pointer: *const c_char) -> Result<String, Status> {
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// gpu.h has its twin.
#[repr(C)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: u64,
    /// A pointer for each explicit argument, or null.
    pub parameters: *const *const c_void,
    /// The explicit arguments laid out, or null.
    pub buffer: *const u8,
    pub bytes: u64,
    /// Events around the launch, or 0.
    pub start: u64,
    pub stop: u64,
}

/// # Safety
/// The pointers of the shape must be as the kernel's arguments are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_launch(number: i32, kernel: u64, shape: *const Shape) -> Status {
    let launch = || {
        let kernel = KERNELS.get(kernel).ok_or(INVALID_HANDLE)?;
        let Some(shape) = (unsafe { shape.as_ref() }) else { return Err(INVALID_VALUE) };
        let threads: u64 = shape.block.iter().map(|size| u64::from(*size)).product();
        let lanes = shape
            .grid
            .iter()
            .zip(shape.block)
            .all(|(grid, block)| u64::from(*grid) * u64::from(block) <= u64::from(u32::MAX));
        if threads == 0 || shape.grid.contains(&0) || !lanes {
            return Err(INVALID_VALUE);
        }
        if threads > kernel.meta.max_group.min(1024) as u64
            || kernel.descriptor.local + shape.shared as usize > 65536
        {
            return Err(INVALID_VALUE);
        }
        let stream = stream(number, shape.stream)?;
        let device = on(&stream)?;
        device.healthy()?;
        if kernel.device != stream.device {
            return Err(INVALID_DEVICE_FUNCTION);
        }
        let arguments = unsafe { arguments(&kernel, shape) }?;
        if shape.start != 0 {
            record_event(&*EVENTS.get(shape.start).ok_or(INVALID_HANDLE)?, &stream)?;
        }
        let Shape { grid, block, shared, .. } = *shape;
        device.launch(&stream, Launch { kernel, grid, block, shared: shared as usize, arguments });
        if shape.stop != 0 {
            record_event(&*EVENTS.get(shape.stop).ok_or(INVALID_HANDLE)?, &stream)?;
        }
        Ok(())
    };
    status(launch())
}

unsafe fn arguments(kernel: &Kernel, shape: &Shape) -> Result<Vec<u8>, Status> {
    let explicit = || kernel.meta.arguments.iter().filter(|argument| !argument.is_hidden());
    let length = explicit().map(|argument| argument.offset + argument.size).max().unwrap_or(0);
    let mut bytes = vec![0; length];
    if !shape.buffer.is_null() {
        let given = length.min(shape.bytes as usize);
        unsafe { std::ptr::copy_nonoverlapping(shape.buffer, bytes.as_mut_ptr(), given) };
        return Ok(bytes);
    }
    if shape.parameters.is_null() {
        return if length == 0 { Ok(bytes) } else { Err(INVALID_VALUE) };
    }
    for (i, argument) in explicit().enumerate() {
        let from = unsafe { shape.parameters.add(i).read() }.cast::<u8>();
        if from.is_null() {
            return Err(INVALID_VALUE);
        }
        unsafe { std::ptr::copy_nonoverlapping(from, bytes[argument.offset..].as_mut_ptr(), argument.size) };
    }
    Ok(bytes)
}

/// gpu.h has its twin.
#[repr(C)]
pub struct KernelInfo {
    pub local: u32,
    pub scratch: u32,
    pub sgprs: u32,
    pub vgprs: u32,
    pub max_group: u32,
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_kernel_info(kernel: u64, to: *mut KernelInfo) -> Status {
    let Some(kernel) = KERNELS.get(kernel) else { return INVALID_DEVICE_FUNCTION };
    let info = KernelInfo {
        local: kernel.descriptor.local as u32,
        scratch: kernel.descriptor.scratch as u32,
        sgprs: kernel.meta.sgprs as u32,
        vgprs: kernel.meta.vgprs as u32,
        max_group: kernel.meta.max_group as u32,
    };
    status(unsafe { give(to, info) })
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_register_binary(bundle: u64) -> u64 {
    registered::add(bundle)
}

#[unsafe(no_mangle)]
pub extern "C" fn gpu_unregister_binary(handle: u64) {
    registered::remove(handle);
}

/// # Safety
/// `name` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_register_kernel(handle: u64, host: u64, name: *const c_char) {
    if let Ok(name) = unsafe { text(name) } {
        registered::add_kernel(handle, host, name);
    }
}

/// # Safety
/// `name` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_register_variable(handle: u64, host: u64, name: *const c_char) {
    if let Ok(name) = unsafe { text(name) } {
        registered::add_variable(handle, host, name);
    }
}

/// # Safety
/// `to` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_registered_kernel(number: i32, host: u64, to: *mut u64) -> Status {
    status(registered::kernel_handle(host, number as usize).and_then(|handle| unsafe { give(to, handle) }))
}

/// # Safety
/// `address` and `bytes` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_registered_variable(
    number: i32,
    host: u64,
    address: *mut u64,
    bytes: *mut u64,
) -> Status {
    let found = registered::variable(host, number as usize);
    status(found.and_then(|(start, length)| unsafe { give(address, start).and(give(bytes, length)) }))
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
