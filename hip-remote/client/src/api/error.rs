//! Errors.

use std::ffi::{CStr, c_char, c_int};

use hip_abi::errors;
use hip_abi::release::Release;

use crate::border::{hip, quietly};
use crate::error::{HipError, Outcome};
use crate::program::put;
use crate::release::release;
use crate::thread;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetLastError() -> c_int {
    quietly(0, thread::take_last_error)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipPeekAtLastError() -> c_int {
    quietly(0, thread::last_error)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipExtGetLastError() -> c_int {
    quietly(0, thread::take_last_result)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(code: c_int) -> *const c_char {
    errors::name(release(), code).as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(code: c_int) -> *const c_char {
    errors::text(release(), code).as_ptr()
}

fn put_known(to: *mut *const c_char, code: c_int, text: fn(Release, i32) -> &'static CStr) -> Outcome {
    if !errors::is_known(release(), code) {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: the program wants the text's address there.
    unsafe { put(to, text(release(), code).as_ptr()) }
}

hip! {
    fn hipDrvGetErrorName(code: c_int, to: *mut *const c_char) { put_known(to, code, errors::name) }

    fn hipDrvGetErrorString(code: c_int, to: *mut *const c_char) { put_known(to, code, errors::text) }
}
