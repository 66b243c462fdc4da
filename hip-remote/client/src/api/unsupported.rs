//! What the stubs of the functions that are not covered call.

use std::ffi::c_char;

use crate::border::quietly;
use crate::error::HipError;
use crate::{process, program, thread};

/// Says a function's name once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocworker_hip_unsupported(name: *const c_char) {
    quietly((), || {
        // SAFETY: the stub passes its own name.
        let name = unsafe { program::text(name) }.unwrap_or_default();
        process::say(&format!("{} is not supported by a remote GPU", String::from_utf8_lossy(name)));
        thread::keep_result(HipError::NOT_SUPPORTED.0);
    });
}
