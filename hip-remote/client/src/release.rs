//! The ROCm release whose library this one stands for: the linker builds one library for each from equal code.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use hip_abi::release::Release;

#[cfg(not(test))]
unsafe extern "C" {
    static rocworker_hip_release: c_int;
}

#[cfg(not(test))]
fn number() -> c_int {
    // SAFETY: a constant of the library, which the link step defines.
    unsafe { rocworker_hip_release }
}

#[cfg(test)]
use tests::number;

pub fn release() -> Release {
    match number() {
        5 => Release::Rocm5,
        6 => Release::Rocm6,
        7 => Release::Rocm7,
        _ => of_the_program(),
    }
}

/// The release of the library that the program loaded beside this one: `libhip_client_stub.so` stands before any.
fn of_the_program() -> Release {
    static FOUND: OnceLock<Release> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut found = None;
        // SAFETY: the callback gets the address of `found` and keeps nothing.
        unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut found).cast()) };
        found.unwrap_or(Release::Rocm7)
    })
}

unsafe extern "C" fn look_at(object: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes an object of its list, and the caller's `found`.
    let (object, found) = unsafe { (&*object, &mut *found.cast::<Option<Release>>()) };
    if !object.dlpi_name.is_null() {
        // SAFETY: the loader's names end with a zero byte.
        let path = unsafe { CStr::from_ptr(object.dlpi_name) }.to_bytes();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        *found = Release::ALL.into_iter().find(|release| name.starts_with(release.soname().as_bytes()));
    }
    c_int::from(found.is_some())
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;
    use std::ffi::c_int;

    thread_local! {
        static NUMBER: Cell<c_int> = const { Cell::new(6) };
    }

    pub fn number() -> c_int {
        NUMBER.get()
    }

    /// Lets a test's thread be a program of each release in turn.
    pub fn each(test: impl Fn(c_int)) {
        for number in [5, 6, 7] {
            NUMBER.set(number);
            test(number);
        }
    }
}
