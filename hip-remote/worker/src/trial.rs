//! Whether the HIP library works, tried before the first client comes.
//!
//! A process of its own opens the library: it may hang, crash or keep the GPUs open.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hip_abi::errors;
use hip_abi::release::Release;
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};

use crate::arguments::Serve;
use crate::hip::Hip;

/// A driver that has just been loaded takes seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the kernel may take to end it.
const TAKEN_DOWN: Duration = Duration::from_millis(100);

/// Starts the process and waits for it.
///
/// # Errors
/// The library cannot be used by any client.
pub fn run() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the HIP library cannot be tried: {error}");
    let mut child = Command::new("/proc/self/exe")
        // Nothing is an option behind a `--`.
        .arg("--try-library")
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
            None => {
                // A process that hangs in the kernel is not waited for.
                let _ = child.kill();
                std::thread::sleep(TAKEN_DOWN);
                let _ = child.try_wait();
                log!(
                    "the HIP library has not opened within {} s: clients may wait for ever",
                    PATIENCE.as_secs()
                );
                return Ok(());
            }
        }
    };
    if status.code().is_some() {
        return Err("no client could be served: the worker does not start".to_owned());
    }
    if status.signal() != Some(Signal::KILL.as_raw()) {
        log!("the HIP library crashed when it opened ({status}): clients may fail");
    }
    Ok(())
}

/// What that process does. The library's reasons for having no devices come and go; it may have some for the next client.
///
/// # Errors
/// The library cannot be opened, or lacks a function.
pub fn open(options: &Serve) -> Result<(), String> {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let hip = Hip::open(options.hip_library.as_deref())?;
    let _ = hip.init();
    match (hip.device_count(), options.gpus) {
        (Err(status), _) => log!(
            "the HIP library finds no device: {} ({status}); clients get this error until it finds one",
            errors::name(Release::Rocm7, status).to_string_lossy()
        ),
        (Ok(0), _) => {
            log!("the HIP library finds no device: clients get hipErrorNoDevice until it finds one")
        }
        (Ok(devices), Some(gpus)) if i64::from(gpus) > i64::from(devices) => {
            log!("--gpus asks for {gpus}, and the HIP library finds {devices}: clients will be refused")
        }
        _ => {}
    }
    // Without the library's own end, which may hang. Its destructors are for clients' processes.
    let _ = kill_process(getpid(), Signal::KILL);
    Ok(())
}
