//! The entry of `runc-amd-wrapper`, in C's form: std's own start-up sets SIGPIPE to be ignored, which runc would
//! inherit. It costs as much as all the rest that the wrapper does for a container without GPUs.
//!
//! The wrapper passes arguments and environment to runc as the kernel handed them over, whatever their bytes.
//! One variable differs, which counts how many wrappers ran one another.
#![no_main]
#![allow(unsafe_code, reason = "it talks to C: argv and environ in, execve out")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::log::Log;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::runtime::{self, DEPTH};
use runc_amd_wrapper::wrap::{Verdict, wrap};

mod memory;

#[global_allocator]
static MEMORY: memory::Memory = memory::Memory::new();

unsafe extern "C" {
    static environ: *const *const c_char;
    // Both are as wide as a pointer: `unsigned long`.
    fn getauxval(kind: usize) -> usize;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    // What is to be done about a signal is a function's address, or one of the numbers in `WriteSignals`.
    fn signal(number: c_int, what: usize) -> usize;
}

/// What the C library's start-up calls.
///
/// # Safety
/// `argv` and `environ` are null-terminated arrays of strings that live as long as the process.
#[unsafe(no_mangle)]
unsafe extern "C" fn main(_argc: c_int, argv: *const *const c_char) -> c_int {
    open_standard_descriptors();
    let signals = WriteSignals::ignore();
    // SAFETY: both arrays are as the C library made them, and nothing here changes them.
    let call = unsafe { Call { argv, arguments: strings(argv), variables: strings(environ), signals } };
    let arguments: Vec<&[u8]> = call.arguments.iter().skip(1).map(|argument| argument.to_bytes()).collect();
    let entries: Vec<&[u8]> = call.variables.iter().map(|variable| variable.to_bytes()).collect();
    let environment = Environment { entries: &entries, effective_user: rustix::process::geteuid().as_raw() };
    let paths = executed().map_or_else(Paths::system, |own| Paths { own, ..Paths::system() });
    match wrap(&arguments, &environment, &paths) {
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

/// Opens /dev/null as each standard descriptor that the caller has closed, so that no other file gets its number.
/// Close-on-exec: runc has them as the caller left them.
fn open_standard_descriptors() {
    let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    if standard.iter().all(|descriptor| rustix::io::fcntl_getfd(descriptor).is_ok()) {
        return;
    }
    // The kernel gives the lowest number that is free.
    while let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")
        && null.as_raw_fd() <= 2
    {
        let _ = null.into_raw_fd();
    }
}

/// The path under which the kernel executed this program. `/proc/self/exe` says it for certain, and takes longer than all
/// else that most calls need: the kernel builds this process's folder in /proc for it.
fn executed() -> Option<PathBuf> {
    /// Of the auxiliary vector (linux/auxvec.h).
    const AT_EXECFN: usize = 31;
    // SAFETY: the answer is 0 or the address of a string that lives as long as the process.
    let executed = unsafe {
        let executed: *const c_char = std::ptr::with_exposed_provenance(getauxval(AT_EXECFN));
        (!executed.is_null()).then(|| CStr::from_ptr(executed))
    };
    executed.map(|path| OsStr::from_bytes(path.to_bytes()).into())
}

/// The signals that end a process in the middle of a write, with what was done about each before: SIGPIPE where the
/// reader has gone, SIGXFSZ at the limit on a file's size (signal(7)). While they are ignored the write fails with EPIPE or
/// EFBIG. Then the wrapper says what failed, and removes what is half written.
struct WriteSignals([(c_int, usize); 2]);

impl WriteSignals {
    fn ignore() -> Self {
        const SIGPIPE: c_int = 13;
        const SIGXFSZ: c_int = 25;
        const IGNORED: usize = 1;
        // SAFETY: nothing is called when the signal comes.
        Self([SIGPIPE, SIGXFSZ].map(|number| (number, unsafe { signal(number, IGNORED) })))
    }

    /// The runtime inherits what is ignored.
    fn restore(&self) {
        const NOT_KNOWN: usize = usize::MAX;
        for (number, before) in self.0 {
            if before != NOT_KNOWN {
                // SAFETY: this was done about it before.
                unsafe { signal(number, before) };
            }
        }
    }
}

/// Arguments, environment and signals as they came.
struct Call {
    argv: *const *const c_char,
    arguments: Vec<&'static CStr>,
    variables: Vec<&'static CStr>,
    signals: WriteSignals,
}

impl Call {
    /// Returns only with the reason why it did not work.
    fn run(&self, runtime: &Path, depth: u32) -> std::io::Error {
        let Ok(path) = CString::new(runtime.as_os_str().as_bytes()) else {
            return std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path has a NUL in it");
        };
        let is_depth = |variable: &CStr| {
            variable.to_bytes().strip_prefix(DEPTH.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        let counted = CString::new(format!("{DEPTH}={depth}")).unwrap_or_default();
        let others = self.variables.iter().filter(|variable| !is_depth(variable));
        let mut environment: Vec<*const c_char> = others.map(|variable| variable.as_ptr()).collect();
        environment.extend([counted.as_ptr(), std::ptr::null()]);
        self.signals.restore();
        // SAFETY: argv is as it came; the environment is terminated, and its strings outlive the call.
        unsafe { execve(path.as_ptr(), self.argv, environment.as_ptr()) };
        let error = std::io::Error::last_os_error();
        // A warning follows.
        WriteSignals::ignore();
        error
    }
}

/// The strings of a null-terminated array.
///
/// # Safety
/// `array` is null or such an array, whose strings live as long as the process and are not changed.
unsafe fn strings(array: *const *const c_char) -> Vec<&'static CStr> {
    let mut strings = Vec::new();
    // SAFETY: by the contract every place up to the null one is a string.
    while let Some(string) = unsafe { array.add(strings.len()).as_ref() }.filter(|string| !string.is_null()) {
        // SAFETY: as above.
        strings.push(unsafe { CStr::from_ptr(*string) });
    }
    strings
}
