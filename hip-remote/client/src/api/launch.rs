//! Launches.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::border::{hip, quietly};
use crate::configuration::{Configuration, Dim3};
use crate::error::{HipError, Outcome};
use crate::launch::{Arguments, Shape, launch};
use crate::modules;
use crate::program::{self, get, put};
use crate::streams::{Default, stream};
use crate::thread::{Seat, configurations, seated};

/// What the program wants recorded before and after a kernel; 0 is nothing.
#[derive(Clone, Copy)]
struct Events {
    start: usize,
    stop: usize,
}

const NO_EVENTS: Events = Events { start: 0, stop: 0 };

impl Events {
    /// Launches between the two events.
    fn around(self, seat: &Seat, on: usize, default: Default, launch: impl FnOnce() -> Outcome) -> Outcome {
        if self.start != 0 {
            super::event::record(seat, self.start, on, default)?;
        }
        launch()?;
        if self.stop != 0 {
            super::event::record(seat, self.stop, on, default)?;
        }
        Ok(())
    }
}

/// Launches the kernel of a stub in the host.
fn launch_host(
    host: usize,
    how: &Configuration,
    arguments: Arguments<'_>,
    default: Default,
    events: Events,
) -> Outcome {
    seated(|seat| {
        let on = stream(seat, how.stream, default)?;
        let function = modules::kernel_of_host(seat, host, on.device)?;
        let shape = Shape { grid: how.grid, block: how.block, shared: how.shared, stream: on.wire };
        events.around(seat, how.stream, default, || launch(seat, &function, &shape, arguments))
    })
}

/// How `hipModuleLaunchKernel` and its relatives give a kernel and its arguments.
struct ModuleLaunch {
    function: usize,
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
    parameters: usize,
    extra: *const usize,
}

/// # Safety
/// The parameters or the extra array are as HIP asks.
unsafe fn launch_module(how: &ModuleLaunch, events: Events) -> Outcome {
    if how.function == 0 {
        return Err(HipError::INVALID_HANDLE);
    }
    if how.parameters != 0 && !how.extra.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    let arguments =
        if how.extra.is_null() { Arguments::Pointers(how.parameters) } else { unsafe { extra(how.extra) }? };
    seated(|seat| {
        let on = stream(seat, how.stream, Default::Null)?;
        let function =
            seat.session().tables().modules.function(how.function as u64).ok_or(HipError::INVALID_HANDLE)?;
        let shape = Shape { grid: how.grid, block: how.block, shared: how.shared, stream: on.wire };
        events.around(seat, how.stream, Default::Null, || launch(seat, &function, &shape, arguments))
    })
}

/// Reads `extra`: the bytes of the arguments and their number, behind `HIP_LAUNCH_PARAM_*`.
///
/// # Safety
/// The array ends with `HIP_LAUNCH_PARAM_END`.
unsafe fn extra<'a>(array: *const usize) -> Outcome<Arguments<'a>> {
    const BUFFER: usize = 1;
    const SIZE: usize = 2;
    const END: usize = 3;
    let (mut buffer, mut size) = (0, 0);
    // Two settings and the end.
    for number in 0..3 {
        // SAFETY: as the caller promises.
        let [kind, value] = [0, 1].map(|part| unsafe { array.add(2 * number + part) });
        // SAFETY: as above; the end has no value.
        match unsafe { get(kind) }? {
            // SAFETY: as above.
            BUFFER => buffer = unsafe { get(value) }?,
            // SAFETY: as above; the value leads to the size.
            SIZE => size = unsafe { get(get(value)? as *const usize) }?,
            END => break,
            _ => return Err(HipError::INVALID_VALUE),
        }
    }
    if buffer == 0 && size > 0 {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: the program says that so many bytes are there.
    Ok(Arguments::LaidOut(if size == 0 { &[] } else { unsafe { program::bytes(buffer, size) } }))
}

/// `hipExtModuleLaunchKernel` counts threads where `hipModuleLaunchKernel` counts blocks.
fn blocks(threads: Dim3, block: Dim3) -> Outcome<Dim3> {
    let of = |threads: u32, block: u32| match threads.checked_rem(block) {
        Some(0) => Ok(threads / block),
        Some(_) => Err(HipError::NOT_SUPPORTED),
        None => Err(HipError::INVALID_CONFIGURATION),
    };
    Ok(Dim3 { x: of(threads.x, block.x)?, y: of(threads.y, block.y)?, z: of(threads.z, block.z)? })
}

fn push(grid: Dim3, block: Dim3, shared: usize, stream: usize) -> Outcome {
    configurations(|all| {
        all.push(Configuration { grid, block, shared, stream, arguments: Vec::new() });
        Ok(())
    })
}

fn pop() -> Outcome<Configuration> {
    configurations(|all| all.pop().ok_or(HipError::MISSING_CONFIGURATION))
}

hip! {
    fn __hipPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) { push(grid, block, shared, stream) }

    fn __hipPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, shared: *mut usize, stream: *mut usize) {
        let configuration = pop()?;
        // SAFETY: the compiler's stub passes places for all four.
        unsafe {
            put(grid, configuration.grid)?;
            put(block, configuration.block)?;
            put(shared, configuration.shared)?;
            put(stream, configuration.stream)
        }
    }

    fn hipConfigureCall(grid: Dim3, block: Dim3, shared: usize, stream: usize) { push(grid, block, shared, stream) }

    fn hipSetupArgument(argument: *const c_void, size: usize, offset: usize) {
        let end = offset.checked_add(size).ok_or(HipError::INVALID_VALUE)?;
        if argument.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        // SAFETY: the program says that so many bytes are there.
        let argument = unsafe { program::bytes(argument as usize, size) };
        configurations(|all| {
            let configuration = all.last_mut().ok_or(HipError::MISSING_CONFIGURATION)?;
            if configuration.arguments.len() < end {
                configuration.arguments.resize(end, 0);
            }
            configuration.arguments.get_mut(offset..end).ok_or(HipError::INVALID_VALUE)?.copy_from_slice(argument);
            Ok(())
        })
    }

    fn hipLaunchByPtr(host: *const c_void) {
        let configuration = pop()?;
        let arguments = Arguments::LaidOut(&configuration.arguments);
        launch_host(host as usize, &configuration, arguments, Default::Null, NO_EVENTS)
    }

    fn hipLaunchKernel(
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void, shared: usize, stream: usize,
    ) {
        let how = Configuration { grid, block, shared, stream, arguments: Vec::new() };
        launch_host(host as usize, &how, Arguments::Pointers(arguments as usize), Default::Null, NO_EVENTS)
    }

    fn hipLaunchKernel_spt(
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void, shared: usize, stream: usize,
    ) {
        let how = Configuration { grid, block, shared, stream, arguments: Vec::new() };
        launch_host(host as usize, &how, Arguments::Pointers(arguments as usize), Default::PerThread, NO_EVENTS)
    }

    fn hipExtLaunchKernel(
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void, shared: usize, stream: usize,
        start: usize, stop: usize, _flags: c_int,
    ) {
        let how = Configuration { grid, block, shared, stream, arguments: Vec::new() };
        launch_host(host as usize, &how, Arguments::Pointers(arguments as usize), Default::Null, Events { start, stop })
    }

    fn hipModuleLaunchKernel(
        function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: usize, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        let how = ModuleLaunch {
            function,
            grid: Dim3 { x: grid_x, y: grid_y, z: grid_z },
            block: Dim3 { x: block_x, y: block_y, z: block_z },
            shared: shared as usize,
            stream,
            parameters: parameters as usize,
            extra: extra.cast(),
        };
        // SAFETY: the program passes what HIP asks.
        unsafe { launch_module(&how, NO_EVENTS) }
    }

    fn hipExtModuleLaunchKernel(
        function: usize, threads_x: c_uint, threads_y: c_uint, threads_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: usize, stream: usize, parameters: *mut *mut c_void, extra: *mut *mut c_void, start: usize,
        stop: usize, _flags: c_uint,
    ) {
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let how = ModuleLaunch {
            function,
            grid: blocks(Dim3 { x: threads_x, y: threads_y, z: threads_z }, block)?,
            block,
            shared,
            stream,
            parameters: parameters as usize,
            extra: extra.cast(),
        };
        // SAFETY: the program passes what HIP asks.
        unsafe { launch_module(&how, Events { start, stop }) }
    }
}

/// hip_ext.h declares it for C++, so that programs ask for its mangled name.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    function: usize,
    threads_x: c_uint,
    threads_y: c_uint,
    threads_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: usize,
    stream: usize,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
    start: usize,
    stop: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the arguments are the program's for this function.
    unsafe {
        hipExtModuleLaunchKernel(
            function, threads_x, threads_y, threads_z, block_x, block_y, block_z, shared, stream, parameters,
            extra, start, stop, flags,
        )
    }
}

/// The name of a kernel that the program has a handle of. The text lives as long as its module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipKernelNameRef(function: usize) -> *const c_char {
    quietly(std::ptr::null(), || {
        let name = seated(|seat| {
            let function =
                seat.session().tables().modules.function(function as u64).ok_or(HipError::INVALID_HANDLE)?;
            Ok(function.name.as_ptr())
        });
        name.unwrap_or(std::ptr::null())
    })
}

/// The name of the kernel of a stub in the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipKernelNameRefByPtr(host: *const c_void, on: usize) -> *const c_char {
    quietly(std::ptr::null(), || {
        let name = seated(|seat| {
            let device = stream(seat, on, Default::Null)?.device;
            Ok(modules::kernel_of_host(seat, host as usize, device)?.name.as_ptr())
        });
        name.unwrap_or(std::ptr::null())
    })
}
