//! Modules and their kernels.

use std::ffi::{OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::border::hip;
use crate::error::{HipError, Outcome};
use crate::loaded::ATTRIBUTES;
use crate::modules;
use crate::program::{put, text};
use crate::thread::seated;

/// `hipFuncAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FunctionAttributes {
    binary_version: c_int,
    cache_mode: c_int,
    constant_bytes: usize,
    local_bytes: usize,
    most_dynamic_shared_bytes: c_int,
    most_threads: c_int,
    registers: c_int,
    shared_carveout: c_int,
    ptx_version: c_int,
    shared_bytes: usize,
}

fn load(to: *mut usize, image: *const c_void) -> Outcome {
    if to.is_null() || image.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        // SAFETY: the program says that an image is there, and it stays until this call ends.
        let image = unsafe { modules::image_at(image as usize) }?;
        // SAFETY: the program wants the handle there.
        unsafe { put(to, modules::load(seat, image)? as usize) }
    })
}

/// A hint to the GPU, of which AMD's take none: the kernel alone is checked.
fn hint(host: *const c_void) -> Outcome {
    seated(|seat| modules::kernel_of_host(seat, host as usize, seat.device()).map(|_| ()))
}

hip! {
    fn hipModuleLoad(to: *mut usize, file: *const c_char) {
        // SAFETY: the program passes a file's name.
        let file = unsafe { text(file) }?;
        let file = Path::new(OsStr::from_bytes(file));
        // A device or a pipe may have no end.
        if !file.is_file() {
            return Err(HipError::FILE_NOT_FOUND);
        }
        let image = std::fs::read(file).map_err(|_| HipError::FILE_NOT_FOUND)?;
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        // SAFETY: the program wants the handle there.
        seated(|seat| unsafe { put(to, modules::load(seat, &image)? as usize) })
    }

    fn hipModuleLoadData(to: *mut usize, image: *const c_void) { load(to, image) }

    // The options are for a compiler, which AMD's code objects have behind them.
    fn hipModuleLoadDataEx(
        to: *mut usize, image: *const c_void, _count: c_uint, _options: *const c_int, _values: *const *mut c_void,
    ) {
        load(to, image)
    }

    fn hipModuleUnload(module: usize) { seated(|seat| modules::unload(seat, module as u64)) }

    fn hipModuleGetFunction(to: *mut usize, module: usize, name: *const c_char) {
        // SAFETY: the program passes a kernel's name.
        let name = unsafe { text(name) }?;
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        // SAFETY: the program wants the handle there.
        seated(|seat| unsafe { put(to, modules::function(seat, module as u64, name)?.handle as usize) })
    }

    fn hipModuleGetGlobal(to: *mut usize, bytes: *mut usize, module: usize, name: *const c_char) {
        // SAFETY: the program passes a variable's name.
        let name = unsafe { text(name) }?;
        let variable = seated(|seat| modules::variable(seat, module as u64, name))?;
        for (to, value) in [(to, variable.pointer), (bytes, variable.bytes)] {
            if !to.is_null() {
                // SAFETY: the program wants the pointer and the size there.
                unsafe { put(to, value as usize) }?;
            }
        }
        Ok(())
    }

    fn hipGetFuncBySymbol(to: *mut usize, host: *const c_void) {
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        // SAFETY: the program wants the handle there.
        seated(|seat| unsafe { put(to, modules::handle_of_host(seat, host as usize)? as usize) })
    }

    fn hipFuncGetAttribute(to: *mut c_int, number: c_int, function: usize) {
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        seated(|seat| {
            let function = seat.session().tables().modules.function(function as u64);
            let function = function.ok_or(HipError::INVALID_DEVICE_FUNCTION)?;
            // SAFETY: the program wants the value there.
            unsafe { put(to, function.attribute(seat, number)?) }
        })
    }

    fn hipFuncGetAttributes(to: *mut FunctionAttributes, host: *const c_void) {
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        seated(|seat| {
            let function = modules::kernel_of_host(seat, host as usize, seat.device())?;
            let mut all = [0; ATTRIBUTES];
            for (value, number) in all.iter_mut().zip(0..) {
                *value = function.attribute(seat, number)?;
            }
            let [threads, shared, constant, local, registers, ptx, binary, cache, dynamic, carveout] = all;
            let size = |value| usize::try_from(value).unwrap_or(0);
            // SAFETY: the program wants the attributes there.
            unsafe {
                put(to, FunctionAttributes {
                    binary_version: binary,
                    cache_mode: cache,
                    constant_bytes: size(constant),
                    local_bytes: size(local),
                    most_dynamic_shared_bytes: dynamic,
                    most_threads: threads,
                    registers,
                    shared_carveout: carveout,
                    ptx_version: ptx,
                    shared_bytes: size(shared),
                })
            }
        })
    }

    fn hipFuncSetAttribute(host: *const c_void, _attribute: c_int, _value: c_int) { hint(host) }

    fn hipFuncSetCacheConfig(host: *const c_void, _config: c_int) { hint(host) }

    fn hipFuncSetSharedMemConfig(host: *const c_void, _config: c_int) { hint(host) }
}
