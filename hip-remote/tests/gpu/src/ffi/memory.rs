//! Devices, their memory, copies and fills.

use super::{find_device, give, on, status, stream};
use crate::copy::{self, Rows};
use crate::device::{self, Device};
use crate::memory::{Kind, memory};
use crate::settings::SETTINGS;
use crate::status::*;

#[unsafe(no_mangle)]
pub extern "C" fn gpu_device_count() -> i32 {
    device::count() as i32
}

/// A device's PCI bus, by which it is known whatever else is shown.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_bus(device: i32) -> i32 {
    0x40 + SETTINGS.devices[device as usize] as i32
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
