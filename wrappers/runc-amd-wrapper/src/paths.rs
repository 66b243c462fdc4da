//! The files that the wrapper knows, in one place, so that a test can pass others.

use std::path::PathBuf;
use std::time::Duration;

use crate::lock;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The policy: without it the wrapper is plain runc.
    pub policy: PathBuf,
    /// The folder of what lasts until the machine's next start: records, and their lock.
    pub run: PathBuf,
    /// What the daemon says of the GPUs' health.
    pub health: PathBuf,
    /// sysfs, which says what a device node's numbers mean.
    pub sys: PathBuf,
    /// The folder of device nodes.
    pub dev: PathBuf,
    /// proc, which says which processes live.
    pub proc: PathBuf,
    /// This program itself: never the runtime that it runs.
    pub own: PathBuf,
    /// Whose the policy and the records have to be: root's, user 0.
    pub owner: u32,
    /// How long a create that asks for GPUs waits for the lock of decisions.
    pub lock_patience: Duration,
}

impl Paths {
    /// Those of a machine.
    pub fn system() -> Self {
        Self {
            policy: PathBuf::from("/etc/rocworker/wrapper.json"),
            run: PathBuf::from("/run/rocworker"),
            health: PathBuf::from(inventory::health::PATH),
            sys: PathBuf::from("/sys"),
            dev: PathBuf::from("/dev"),
            proc: PathBuf::from("/proc"),
            own: PathBuf::from("/proc/self/exe"),
            owner: 0,
            lock_patience: lock::PATIENCE,
        }
    }
}
