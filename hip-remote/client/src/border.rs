//! The border between C and Rust.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{HipError, Outcome};
use crate::thread;

/// Defines HIP functions that return a `hipError_t`: the result is the thread's last error, no panic leaves them, and they leave
/// `errno` as it was.
macro_rules! hip {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::border::call(move || -> $crate::error::Outcome { $body })
        }
    )*};
}
pub(crate) use hip;

pub fn call(body: impl FnOnce() -> Outcome) -> c_int {
    let result = quietly(HipError::UNKNOWN.0, || match body() {
        Ok(()) => 0,
        Err(error) => error.0,
    });
    thread::keep_result(result);
    result
}

/// Runs a body of which the program sees the result alone.
pub fn quietly<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    // SAFETY: the C library gives each thread its errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked);
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}
