//! Modules, what programs register, and launches.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::streams::record_event;
use super::{find_device, give, on, status, stream, text};
use crate::code_object::{self, Kernel, Module};
use crate::device;
use crate::dispatch::Launch;
use crate::handles::{EVENTS, KERNELS, MODULES};
use crate::registered;
use crate::status::*;

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
