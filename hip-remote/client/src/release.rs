//! The ROCm release whose library this one stands for: the linker builds one library for each from equal code.

use std::ffi::c_int;

use hip_abi::release::Release;

#[cfg(not(test))]
unsafe extern "C" {
    static rocworker_hip_release: c_int;
}

#[cfg(test)]
#[allow(non_upper_case_globals)]
static rocworker_hip_release: c_int = 6;

pub fn release() -> Release {
    // SAFETY: a constant of the library, which the link step defines.
    #[allow(unused_unsafe)]
    match unsafe { rocworker_hip_release } {
        5 => Release::Rocm5,
        6 => Release::Rocm6,
        _ => Release::Rocm7,
    }
}
