//! The entry of `runc-amd-wrapper`, in C's form: std's own start-up costs as much as all else that the
//! wrapper does for a container without GPUs, and it sets SIGPIPE to be ignored, which runc would inherit.
//!
//! Where the C library is musl (build.rs), the program begins even before its start-up, in [`early`]: most calls need
//! no C library at all.
//!
//! Arguments and environment go on to runc as the kernel handed them over, whatever their bytes, but for
//! one variable that counts how many wrappers ran one another.
#![no_main]
#![allow(unsafe_code, reason = "it talks to C and the kernel: argv and environ in, execve out")]

mod arena;
#[cfg(early_entry)]
mod early;

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use runc_amd_wrapper::environment::Environment;
#[cfg(not(early_entry))]
use runc_amd_wrapper::glance::{Seen, glance};
use runc_amd_wrapper::log::Log;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::runtime::{self, DEPTH};
use runc_amd_wrapper::sys;
use runc_amd_wrapper::wrap::{Verdict, wrap};

#[global_allocator]
static MEMORY: arena::Arena = arena::Arena::new();

unsafe extern "C" {
    static environ: *const *const c_char;
    // Both are as wide as a pointer: `unsigned long`.
    fn getauxval(kind: usize) -> usize;
}

/// Of the auxiliary vector: the effective user, and the path that was executed (linux/auxvec.h).
const AT_EUID: usize = 12;
const AT_EXECFN: usize = 31;

/// What the C library's start-up calls.
///
/// # Safety
/// `argv` and `environ` are null-terminated arrays of strings that live as long as the process.
#[unsafe(no_mangle)]
unsafe extern "C" fn main(_argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: both arrays are as the C library made them, and nothing here changes them.
    let call = unsafe { Call::new(argv, environ) };
    // The kernel hands it over, so that it need not be asked.
    // SAFETY: getauxval has no preconditions.
    let effective_user = u32::try_from(unsafe { getauxval(AT_EUID) }).unwrap_or(u32::MAX);
    let (arguments, entries) = (call.arguments(), call.entries());
    let environment = Environment { entries: &entries, effective_user };
    // `/proc/self/exe`, which says it for certain, is looked at where this does not (`runtime::own`).
    // SAFETY: the answer is 0 or the address of a string that lives as long as the process.
    let own = unsafe {
        let executed: *const c_char = std::ptr::with_exposed_provenance(getauxval(AT_EXECFN));
        (!executed.is_null()).then(|| CStr::from_ptr(executed))
    };
    let own = own.map_or_else(|| Paths::system().own, |own| OsStr::from_bytes(own.to_bytes()).into());
    let paths = Paths { own, ..Paths::system() };
    #[cfg(early_entry)]
    // SAFETY: no thread has been started.
    let (at_a_glance, mut seen) = (None, unsafe { early::SEEN.take() });
    #[cfg(not(early_entry))]
    let (at_a_glance, mut seen) = {
        let mut seen = Seen::default();
        (glance(&arguments, &environment, &paths, &mut seen), seen)
    };
    // Nothing was said or written before. The bundle is opened again, behind them.
    seen.bundle.take_if(|(file, _)| file.is_standard());
    sys::open_standard_descriptors();
    let verdict = at_a_glance.unwrap_or_else(|| wrap(&arguments, &environment, &paths, seen));
    match verdict {
        Verdict::Run { mut runtime, depth } => {
            let mut error = call.run(&runtime, depth);
            let log = Log::of(&runc_amd_wrapper::args::read(&arguments).global());
            // Only the kernel knows what it can run: that a file is a program is not enough.
            if let Some(next) = runtime::in_place_of(&runtime, environment.get("PATH"), &paths.own) {
                log.warn(&format!(
                    "the policy's runtime {} cannot be run: {error}; the next runc on PATH is run in its place",
                    runtime.display()
                ));
                error = call.run(&next, depth);
                runtime = next;
            }
            log.fail(&format!(
                "running the real runc, {}, failed: {error}; install a runc that this machine can run",
                runtime.display()
            ));
            1
        }
        Verdict::Fail => 1,
    }
}

/// In the place of musl's, for short texts: see [`runc_amd_wrapper::copying`].
#[cfg(all(early_entry, target_arch = "x86_64"))]
mod c {
    use runc_amd_wrapper::copying;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
        // SAFETY: the contract is the same.
        unsafe { copying::copy(to, from, length) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
        // SAFETY: the contract is the same.
        unsafe { copying::shift(to, from, length) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
        // SAFETY: the contract is the same.
        unsafe { copying::compare(one, other, length) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
        // SAFETY: the contract is the same.
        unsafe { copying::compare(one, other, length) }
    }
}

/// Arguments and environment as they came.
struct Call {
    argv: *const *const c_char,
    arguments: Vec<&'static CStr>,
    variables: Vec<&'static CStr>,
}

impl Call {
    /// # Safety
    /// Both are null-terminated arrays of strings that live as long as the process, and nobody changes them.
    unsafe fn new(argv: *const *const c_char, variables: *const *const c_char) -> Self {
        // SAFETY: by the contract.
        let (arguments, variables) = unsafe { (strings(argv), strings(variables)) };
        Self { argv, arguments, variables }
    }

    /// Without the program's own name.
    fn arguments(&self) -> Vec<&'static [u8]> {
        self.arguments.iter().skip(1).map(|argument| argument.to_bytes()).collect()
    }

    fn entries(&self) -> Vec<&'static [u8]> {
        self.variables.iter().map(|variable| variable.to_bytes()).collect()
    }

    /// Comes back only with the reason why it did not work.
    fn run(&self, runtime: &Path, depth: u32) -> std::io::Error {
        let Ok(path) = CString::new(runtime.as_os_str().as_bytes()) else {
            return std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path has a NUL in it");
        };
        let is_count = |variable: &&&CStr| {
            variable.to_bytes().strip_prefix(DEPTH.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        let mut counted = Vec::with_capacity(DEPTH.len() + 3);
        counted.extend(DEPTH.bytes());
        // No more than a digit: there is an end to it long before ten.
        counted.extend([b'=', char::from_digit(depth, 10).map_or(b'9', |digit| digit as u8), 0]);
        let mut environment: Vec<*const c_char> = Vec::with_capacity(self.variables.len() + 2);
        let others = self.variables.iter().filter(|variable| !is_count(variable));
        environment.extend(others.map(|variable| variable.as_ptr()));
        environment.push(counted.as_ptr().cast());
        environment.push(std::ptr::null());
        // SAFETY: argv is as it came; the environment is terminated, and its strings outlive the call.
        unsafe { sys::execute(&path, self.argv, environment.as_ptr()) }.into()
    }
}

/// The strings of a null-terminated array.
///
/// # Safety
/// `array` is null or such an array, whose strings live as long as the process and are not changed.
unsafe fn strings(array: *const *const c_char) -> Vec<&'static CStr> {
    if array.is_null() {
        return Vec::new();
    }
    // SAFETY: by the contract every place up to the null one is a string.
    unsafe {
        let mut count = 0;
        while !(*array.add(count)).is_null() {
            count += 1;
        }
        // As much as they need: the first page of memory is all that most calls touch.
        let mut strings = Vec::with_capacity(count);
        strings.extend((0..count).map(|at| CStr::from_ptr(*array.add(at))));
        strings
    }
}
