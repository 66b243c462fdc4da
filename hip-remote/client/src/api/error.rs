//! Errors.

use std::ffi::c_int;

use crate::border::quietly;
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
