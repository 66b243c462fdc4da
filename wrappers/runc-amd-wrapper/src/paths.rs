//! The files that the wrapper knows, in one place, so that a test can pass others.

use std::path::PathBuf;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The policy: without it the wrapper is plain runc.
    pub policy: PathBuf,
    /// What the daemon says of the GPUs' health.
    pub health: PathBuf,
    /// The folder of device nodes.
    pub dev: PathBuf,
    /// This program itself: never the runtime that it runs.
    pub own: PathBuf,
    /// Where leases are, sysfs, and who owns what is to be believed, the policy among it.
    pub lease: lease::paths::Paths,
}

impl Paths {
    /// The paths of a running machine.
    pub fn system() -> Self {
        Self {
            policy: PathBuf::from("/etc/rocworker/wrapper.json"),
            health: PathBuf::from(inventory::health::PATH),
            dev: PathBuf::from("/dev"),
            own: PathBuf::from("/proc/self/exe"),
            lease: lease::paths::Paths::system(),
        }
    }
}
