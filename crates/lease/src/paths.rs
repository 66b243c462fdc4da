//! The places of leases and of what shows their holders, as one value, so that tests can pass others.

use std::path::PathBuf;
use std::time::Duration;

/// The name of the folder of records.
pub const RECORDS: &str = "records";

/// How long a create waits that has asked for GPUs. A shim holds a lock of its own through create, and its caller
/// has a patience, too; hundreds of decisions find their turn in this time, so that what takes longer is a
/// process that does not run.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

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
            lock_patience: LOCK_PATIENCE,
        }
    }
}
