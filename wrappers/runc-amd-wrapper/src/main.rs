//! The entry of `runc-amd-wrapper`: arguments and environment in, runc in this process's place out.
//!
//! runc gets both as they came, whatever their bytes. One variable differs, which counts how many wrappers ran one another.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{execve, geteuid};

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::log::Log;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::runtime::{self, DEPTH};
use runc_amd_wrapper::wrap::{Verdict, wrap};
use runc_amd_wrapper::{args, ask};

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    if ask::is_question(&argv) {
        ask::answer(&argv);
        return ExitCode::SUCCESS;
    }
    let file_size = FileSizeSignal::block();
    let variables: Vec<Vec<u8>> =
        std::env::vars_os().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
    let arguments: Vec<&[u8]> = argv.iter().skip(1).map(|argument| argument.as_bytes()).collect();
    let entries: Vec<&[u8]> = variables.iter().map(Vec::as_slice).collect();
    let environment = Environment { entries: &entries, effective_user: geteuid().as_raw() };
    let paths = Paths::system();
    let Verdict::Run { mut runtime, depth } = wrap(&arguments, &environment, &paths) else {
        return ExitCode::FAILURE;
    };
    let run = |runtime: &Path| {
        file_size.restore();
        let error = run(runtime, &argv, &entries, depth);
        // A warning follows.
        FileSizeSignal::block();
        error
    };
    let mut error = run(&runtime);
    let log = Log::of(&args::read(&arguments).global());
    // Only the kernel knows what it can run: that a file is a program is not enough.
    if let Some(next) = runtime::in_place_of(&runtime, environment.get("PATH"), &paths.own) {
        log.warn(&format!(
            "the policy's runtime {} cannot be run: {error}; the next runc on PATH is run in its place",
            runtime.display()
        ));
        error = run(&next);
        runtime = next;
    }
    log.fail(&format!(
        "running the real runc, {}, failed: {error}; install a runc that this machine can run",
        runtime.display()
    ));
    ExitCode::FAILURE
}

/// Executes the runtime. Returns only with the reason why it did not work.
fn run(runtime: &Path, argv: &[OsString], entries: &[&[u8]], depth: u32) -> std::io::Error {
    // Only the policy's path can have a NUL in it.
    let string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let counts =
        |entry: &&[u8]| entry.strip_prefix(DEPTH.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    let mut environment: Vec<CString> =
        entries.iter().copied().filter(|entry| !counts(entry)).map(string).collect();
    environment.push(string(format!("{DEPTH}={depth}").as_bytes()));
    let argv: Vec<CString> = argv.iter().map(|argument| string(argument.as_bytes())).collect();
    // std ignores this signal from its start on, and runc would inherit that.
    sigpipe::reset();
    let Ok(path) = CString::new(runtime.as_os_str().as_bytes()) else {
        return std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path has a NUL in it");
    };
    match execve(&path, &argv, &environment) {
        Err(error) => error.into(),
        Ok(never) => match never {},
    }
}

/// SIGXFSZ ends a process that writes beyond the limit on a file's size (signal(7)). While it is blocked the write fails with
/// EFBIG. Then the wrapper says what failed, and removes what is half written.
struct FileSizeSignal {
    before: Option<SigSet>,
}

impl FileSizeSignal {
    fn block() -> Self {
        Self { before: only(Signal::SIGXFSZ).thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
    }

    /// The runtime inherits what is blocked, and one that is pending would end it.
    fn restore(&self) {
        let Some(before) = self.before else { return };
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        if let Ok(pending) = SignalFd::with_flags(&only(Signal::SIGXFSZ), flags) {
            while let Ok(Some(_)) = pending.read_signal() {}
        }
        let _ = before.thread_set_mask();
    }
}

fn only(signal: Signal) -> SigSet {
    let mut set = SigSet::empty();
    set.add(signal);
    set
}
