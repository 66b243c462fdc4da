//! Loads code objects at the worker, and finds their kernels and variables.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use hip_code_object::Refused;
use hip_code_object::data::has_writable_data;
use hip_code_object::image::{self, length};
use hip_code_object::kernel::kernels;
use hip_protocol::calls::{
    FunctionAttribute, ModuleFunction, ModuleGlobal, ModuleImage, ModuleLoad, ModuleUnload,
};
use hip_transport::sha256;

use crate::allocations::{Allocation, Kind};
use crate::connection::lock;
use crate::error::{HipError, Outcome};
use crate::loaded::{Attributes, Function, Module, Variable};
use crate::process;
use crate::program;
use crate::registry::{self, Binary, Symbol};
use crate::thread::Seat;

impl Function {
    /// One of `HIP_FUNC_ATTRIBUTE_*`.
    ///
    /// # Errors
    /// There is no such attribute, or the worker's library does not know it.
    pub fn attribute(&self, seat: &Seat, attribute: i32) -> Outcome<i32> {
        self.attributes.get(attribute, || {
            let call = FunctionAttribute { function: self.handle, attribute };
            Ok(seat.session().connection.call(&seat.desk, &call, &[])?.0.value)
        })
    }
}

/// An image of which the program gave the address alone.
///
/// # Errors
/// The bytes there are no image.
///
/// # Safety
/// An image, or at least 64 bytes of something else, is there for as long as the result is used.
pub unsafe fn image_at<'a>(address: usize) -> Outcome<&'a [u8]> {
    let read = |offset: u64, to: &mut [u8]| {
        let Some(from) = usize::try_from(offset).ok().and_then(|offset| address.checked_add(offset)) else {
            return false;
        };
        // SAFETY: length() asks for what the image's own headers say is there.
        to.copy_from_slice(unsafe { program::bytes(from, to.len()) });
        true
    };
    let bytes = length(read).map_err(|why| refused(&why))?;
    let bytes = usize::try_from(bytes).map_err(|_| HipError::INVALID_IMAGE)?;
    // SAFETY: as above.
    Ok(unsafe { program::bytes(address, bytes) })
}

/// Loads the code in an image that fits the thread's device.
///
/// # Errors
/// The image has no code for it, or the worker cannot load it.
pub fn load(seat: &Seat, image: &[u8]) -> Outcome<u64> {
    load_for(seat, image, true)
}

fn load_for(seat: &Seat, image: &[u8], is_held: bool) -> Outcome<u64> {
    let session = seat.session();
    let device = seat.device();
    let target = session.properties(&seat.desk, device)?.target()?;
    let code = image::code_object(image, &target).map_err(|why| refused(&why))?;
    let kernels = kernels(&code).map_err(|why| refused(&why))?;
    let (sha256, bytes) = (sha256(&code), code.len() as u64);
    let mut module = session.connection.call(&seat.desk, &ModuleLoad { sha256, bytes }, &[])?.0.module;
    if module == 0 {
        module = session.connection.upload_image(&seat.desk, &ModuleImage { sha256, bytes }, &code)?.module;
    }
    let is_state = is_held || has_writable_data(&code);
    let made = Module { device, kernels, functions: HashMap::new(), is_state };
    session.tables().modules.by_handle.insert(module, made);
    Ok(module)
}

/// # Errors
/// The program has no such module.
pub fn unload(seat: &Seat, module: u64) -> Outcome {
    {
        let mut tables = seat.session().tables();
        if !tables.modules.remove(module) {
            return Err(HipError::INVALID_HANDLE);
        }
        tables.allocations.remove_module(module);
    }
    seat.session().connection.send(&seat.desk, &ModuleUnload { module }, &[])
}

/// A kernel of a module, by its name.
///
/// # Errors
/// There is no such module or kernel.
pub fn function(seat: &Seat, module: u64, name: &[u8]) -> Outcome<Arc<Function>> {
    let name = CString::new(name).map_err(|_| HipError::NOT_FOUND)?;
    let (device, kernel) = {
        let tables = seat.session().tables();
        let found = tables.modules.by_handle.get(&module).ok_or(HipError::INVALID_HANDLE)?;
        if let Some(function) = found.functions.get(&name) {
            return Ok(Arc::clone(function));
        }
        let kernel = found.kernels.iter().find(|kernel| kernel.name.as_bytes() == name.as_bytes());
        (found.device, kernel.ok_or(HipError::NOT_FOUND)?.clone())
    };
    let shared = seat.session().properties(&seat.desk, device)?.size("sharedMemPerBlock")?;
    let call = ModuleFunction { module };
    let (reply, _) = seat.session().connection.call(&seat.desk, &call, name.as_bytes())?;
    let function = Arc::new(Function {
        handle: reply.function,
        module,
        name: name.clone(),
        most_shared: shared.saturating_sub(kernel.shared as usize),
        kernel,
        attributes: Attributes::default(),
    });
    let modules = &mut seat.session().tables().modules;
    if let Some(of) = modules.by_handle.get_mut(&module) {
        of.functions.insert(name, Arc::clone(&function));
    }
    modules.functions.insert(function.handle, Arc::clone(&function));
    Ok(function)
}

/// A variable of a module, by its name.
///
/// # Errors
/// There is no such module or variable.
pub fn variable(seat: &Seat, module: u64, name: &[u8]) -> Outcome<Variable> {
    let device = {
        let tables = seat.session().tables();
        tables.modules.by_handle.get(&module).ok_or(HipError::INVALID_HANDLE)?.device
    };
    let (reply, _) = seat.session().connection.call(&seat.desk, &ModuleGlobal { module }, name)?;
    seat.session().tables().allocations.add_variable(Allocation {
        start: reply.pointer,
        bytes: reply.bytes,
        device,
        kind: Kind::Variable { module },
    });
    Ok(Variable { module, pointer: reply.pointer, bytes: reply.bytes })
}

/// The kernel that the host's stub at this address launches, on a device.
///
/// # Errors
/// No kernel was registered for the address, or its code cannot be loaded.
pub fn kernel_of_host(seat: &Seat, host: usize, device: i32) -> Outcome<Arc<Function>> {
    if let Some(function) = seat.session().tables().modules.by_host.get(&(host, device)) {
        return Ok(Arc::clone(function));
    }
    let symbol = registry::kernel(host).ok_or(HipError::INVALID_DEVICE_FUNCTION)?;
    let module = seat.on_device(device, || module_of(seat, &symbol))?;
    let function = function(seat, module, &symbol.name)?;
    seat.session().tables().modules.by_host.insert((host, device), Arc::clone(&function));
    Ok(function)
}

/// As [`kernel_of_host`], for a program that keeps the kernel's handle.
///
/// # Errors
/// As [`kernel_of_host`].
pub fn handle_of_host(seat: &Seat, host: usize) -> Outcome<u64> {
    let function = kernel_of_host(seat, host, seat.device())?;
    if let Some(module) = seat.session().tables().modules.by_handle.get_mut(&function.module) {
        module.is_state = true;
    }
    Ok(function.handle)
}

/// The variable whose shadow in the host is at this address, on the thread's device.
///
/// # Errors
/// No variable was registered for the address, or its code cannot be loaded.
pub fn variable_of_host(seat: &Seat, host: usize) -> Outcome<Variable> {
    let key = (host, seat.device());
    if let Some(variable) = seat.session().tables().modules.variables.get(&key) {
        return Ok(*variable);
    }
    let symbol = registry::variable(host).ok_or(HipError::INVALID_SYMBOL)?;
    let module = module_of(seat, &symbol)?;
    let variable = variable(seat, module, &symbol.name)?;
    seat.session().tables().modules.variables.insert(key, variable);
    Ok(variable)
}

/// The module of a fat binary on the thread's device, which is loaded now where it was not.
fn module_of(seat: &Seat, symbol: &Symbol) -> Outcome<u64> {
    let key = (symbol.binary, seat.device());
    let _loading = lock(&seat.session().loading);
    if let Some(module) = seat.session().tables().modules.of_binaries.get(&key) {
        return Ok(*module);
    }
    if !registry::is_supported(symbol.binary) {
        process::say_what_is_not_supported();
        return Err(HipError::NOT_SUPPORTED);
    }
    let address = registry::image(symbol.binary).ok_or(HipError::INVALID_IMAGE)?;
    // SAFETY: the program registered the image, and has not taken it back.
    let image = unsafe { image_at(address) }?;
    let module = load_for(seat, image, false)?;
    seat.session().tables().modules.of_binaries.insert(key, module);
    Ok(module)
}

/// Unloads what came from a fat binary, which the program takes back.
pub fn unload_binary(seat: &Seat, binary: Binary) {
    let modules: Vec<u64> = {
        let tables = seat.session().tables();
        tables
            .modules
            .of_binaries
            .iter()
            .filter(|((of, _), _)| *of == binary)
            .map(|(_, module)| *module)
            .collect()
    };
    for module in modules {
        // The program cannot use it any more, whatever becomes of the worker's.
        let _ = unload(seat, module);
    }
}

fn refused(why: &Refused) -> HipError {
    process::say(&format!("a code object cannot be loaded: {why}"));
    match why {
        Refused::Malformed(_) => HipError::INVALID_IMAGE,
        Refused::NoCodeFor { .. } => HipError::NO_BINARY_FOR_GPU,
    }
}
