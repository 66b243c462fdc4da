//! Offers the AMD GPUs of a Kubernetes node to its kubelet as a device plugin, and labels the node by them.
//!
//! `look` reads the machine beneath a Root. `offer` makes of what was read what the kubelet may give away: a pure
//! function. `watch` does both twice a second and publishes each new offer. `endpoint` serves one resource of it, and
//! registers it with each kubelet that starts.

pub mod api;
mod args;
mod device;
mod endpoint;
mod leftovers;
mod look;
mod node;
mod offer;
mod plugin;
mod pod_resources;
mod preference;
mod said;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use clap::error::ErrorKind;
use root::Root;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use tokio::signal::unix::{SignalKind, signal};

use args::Args;

/// Runs the program until a signal ends it.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            error.print().ok();
            return ExitCode::from(if wanted { 0 } else { 2 });
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(if matches!(error, Error::Root(_)) { 2 } else { 1 })
        }
    }
}

/// Why the program cannot start.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    #[error("a part of the program has ended: this is a defect, report it")]
    Ended,
}

/// A line for the pod's log.
fn say(line: &str) {
    let line = line.replace(|c: char| c.is_control(), " ");
    writeln!(std::io::stderr(), "rocworker-device-plugin: {line}").ok();
}

/// A pod of it is privileged, since Kubernetes opens the device cgroup in no other way. Nothing here needs a capability:
/// root owns the sockets, and the rest is read by anybody.
fn drop_privileges() -> std::io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(set_no_new_privs(true)?)
}

fn run(args: Args) -> Result<(), Error> {
    // Threads that begin later have none either.
    drop_privileges()?;
    let root = Arc::new(Root::open(&args.root)?);
    let args = Arc::new(args);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One reads the machine, one labels the node.
        .max_blocking_threads(2)
        .build()?;
    let ended = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let offers = watch::start(&root, Arc::clone(&args));
        let sockets = endpoint::Sockets::default();
        let labels = node::keep_labelled(Arc::clone(&root), Arc::clone(&args), offers.clone());
        let ended = tokio::select! {
            _ = terminated.recv() => Ok(()),
            _ = interrupted.recv() => Ok(()),
            () = endpoint::serve_each(&root, &args, &sockets, offers) => Err(Error::Ended),
            () = labels => Err(Error::Ended),
        };
        sockets.remove(&root);
        ended
    });
    // The program must not wait for a thread whose read hangs.
    runtime.shutdown_background();
    ended
}
