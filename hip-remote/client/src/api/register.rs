//! What the compiler's constructors call before main, and its destructors after: they only remember.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::border::quietly;
use crate::modules;
use crate::process;
use crate::program;
use crate::registry::{self, Binary, Symbol};
use crate::thread::seated_anywhere;

/// `HIPF`: clang's wrapper of a fat binary (CGCUDANV.cpp).
const WRAPPER: u32 = 0x4849_5046;

#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    image: usize,
    unused: usize,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    quietly(std::ptr::null_mut(), || {
        // The host code gives its address back, and nobody looks at what is there.
        let binary: *mut *mut c_void = Box::leak(Box::new(std::ptr::null_mut()));
        // SAFETY: the compiler passes a wrapper.
        let wrapper = unsafe { program::get(wrapper.cast::<Wrapper>()) };
        if let Ok(Wrapper { magic: WRAPPER, image: image @ 1.., .. }) = wrapper {
            registry::add_binary(binary as Binary, image);
        }
        binary
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipUnregisterFatBinary(binary: *mut *mut c_void) {
    quietly((), || {
        registry::remove_binary(binary as Binary);
        // A library that is closed gives its code back. At the program's end the worker frees all.
        if process::is_connected() {
            let _ = seated_anywhere(|seat| {
                modules::unload_binary(seat, binary as Binary);
                Ok(())
            });
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterFunction(
    binary: *mut *mut c_void,
    host: *const c_void,
    _device_function: *mut c_char,
    name: *const c_char,
    _thread_limit: c_uint,
    _thread_id: *mut c_void,
    _block_id: *mut c_void,
    _block_dim: *mut c_void,
    _grid_dim: *mut c_void,
    _warp_size: *mut c_int,
) {
    quietly((), || {
        // SAFETY: the compiler passes a name.
        if let Ok(name) = unsafe { program::text(name) } {
            registry::add_kernel(host as usize, Symbol { binary: binary as Binary, name: name.to_vec() });
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterVar(
    binary: *mut *mut c_void,
    host: *mut c_void,
    _host_name: *mut c_char,
    name: *mut c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    quietly((), || {
        // SAFETY: the compiler passes a name.
        if let Ok(name) = unsafe { program::text(name) } {
            registry::add_variable(host as usize, Symbol { binary: binary as Binary, name: name.to_vec() });
        }
    });
}

// The constructors of a program with textures, surfaces or managed variables call these. Nothing may be printed so early: the
// first call that connects says what is not supported, and no code of the binary runs.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterManagedVar(
    binary: *mut c_void,
    _pointer: *mut *mut c_void,
    _initial: *mut c_void,
    name: *const c_char,
    _size: usize,
    _align: c_uint,
) {
    quietly((), || lacks(binary as Binary, "managed variable", name));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterSurface(
    binary: *mut *mut c_void,
    _host: *mut c_void,
    _host_name: *mut c_char,
    name: *mut c_char,
    _kind: c_int,
    _external: c_int,
) {
    quietly((), || lacks(binary as Binary, "surface", name));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterTexture(
    binary: *mut *mut c_void,
    _host: *mut c_void,
    _host_name: *mut c_char,
    name: *mut c_char,
    _kind: c_int,
    _normalized: c_int,
    _external: c_int,
) {
    quietly((), || lacks(binary as Binary, "texture", name));
}

fn lacks(binary: Binary, what: &str, name: *const c_char) {
    // SAFETY: the compiler passes a name.
    let name = unsafe { program::text(name) }.unwrap_or_default();
    registry::add_unsupported(binary, format!("the {what} {}", String::from_utf8_lossy(name)));
}
