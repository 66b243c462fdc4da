//! The entry of `runc-amd-wrapper`, in C's form: std's own start-up costs as much as all else that the
//! wrapper does for a container without GPUs, and it sets SIGPIPE to be ignored, which runc would inherit.
//!
//! Arguments and environment go on to runc as the kernel handed them over, whatever their bytes, but for
//! one variable that counts how many wrappers ran one another.
#![no_main]
#![allow(unsafe_code, reason = "it talks to C: argv and environ in, execve out")]

mod arena;

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::log::Log;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::runtime::DEPTH;
use runc_amd_wrapper::wrap::{Verdict, wrap};

#[global_allocator]
static MEMORY: arena::Arena = arena::Arena::new();

unsafe extern "C" {
    static environ: *const *const c_char;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn geteuid() -> u32;
}

/// What the C library's start-up calls.
///
/// # Safety
/// `argv` and `environ` are null-terminated arrays of strings that live as long as the process.
#[unsafe(no_mangle)]
unsafe extern "C" fn main(_argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: both arrays are as the C library made them, and nothing here changes them.
    let (arguments, variables) = unsafe { (strings(argv), strings(environ)) };
    // SAFETY: geteuid has no preconditions and cannot fail.
    let effective_user = unsafe { geteuid() };
    let argument_bytes: Vec<&[u8]> = arguments.iter().skip(1).map(|s| s.to_bytes()).collect();
    let entries: Vec<&[u8]> = variables.iter().map(|s| s.to_bytes()).collect();
    let environment = Environment { entries: &entries, effective_user };
    match wrap(&argument_bytes, &environment, &Paths::system()) {
        Verdict::Run { runtime, depth } => {
            let error = run(&runtime, depth, argv, &variables);
            let log = Log::of(&runc_amd_wrapper::args::read(&argument_bytes).global());
            log.fail(&format!("running the real runc, {}, failed: {error}", runtime.display()));
            1
        }
        Verdict::Fail => 1,
    }
}

/// Comes back only with the reason why it did not work.
fn run(runtime: &Path, depth: u32, argv: *const *const c_char, variables: &[&CStr]) -> std::io::Error {
    let path = CString::new(runtime.as_os_str().as_bytes());
    let counted = CString::new(format!("{DEPTH}={depth}"));
    let (Ok(path), Ok(counted)) = (path, counted) else {
        return std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path has a NUL in it");
    };
    let is_count = |variable: &&&CStr| {
        variable.to_bytes().strip_prefix(DEPTH.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    let mut environment: Vec<*const c_char> = Vec::with_capacity(variables.len() + 2);
    environment
        .extend(variables.iter().filter(|variable| !is_count(variable)).map(|variable| variable.as_ptr()));
    environment.push(counted.as_ptr());
    environment.push(std::ptr::null());
    // SAFETY: argv came from the C library; the environment is terminated, and its strings outlive the call.
    unsafe { execve(path.as_ptr(), argv, environment.as_ptr()) };
    std::io::Error::last_os_error()
}

/// The strings of a null-terminated array.
///
/// # Safety
/// `array` is null or such an array, which nobody changes while the strings are used.
unsafe fn strings<'a>(array: *const *const c_char) -> Vec<&'a CStr> {
    let mut strings = Vec::with_capacity(32);
    if array.is_null() {
        return strings;
    }
    // SAFETY: by the contract every place up to the null one is a string.
    unsafe {
        let mut place = array;
        while !(*place).is_null() {
            strings.push(CStr::from_ptr(*place));
            place = place.add(1);
        }
    }
    strings
}
