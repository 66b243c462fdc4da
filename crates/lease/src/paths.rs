//! The places of leases and of what shows their holders, as one value, so that tests can pass others.

use std::path::PathBuf;
use std::time::Duration;

use crate::lock;

/// Every path that a decision needs.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The folder of what lasts until the machine's next start: records, leases, and their lock.
    pub run: PathBuf,
    /// sysfs, by which KFD says who uses a GPU.
    pub sys: PathBuf,
    /// proc, which says which processes live.
    pub proc: PathBuf,
    /// The user who must own the records: root (0).
    pub owner: u32,
    /// How long a create that asks for GPUs waits for the lock of decisions.
    pub lock_patience: Duration,
}

impl Paths {
    /// The paths of a running machine.
    #[must_use]
    pub fn system() -> Self {
        Self {
            run: PathBuf::from("/run/rocworker"),
            sys: PathBuf::from("/sys"),
            proc: PathBuf::from("/proc"),
            owner: 0,
            lock_patience: lock::PATIENCE,
        }
    }
}
