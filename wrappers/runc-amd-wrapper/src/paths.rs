//! The files that the wrapper knows, in one place, so that a test can pass others.

use std::path::PathBuf;

/// Every path that the wrapper uses.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The policy: without it the wrapper is plain runc.
    pub policy: PathBuf,
    /// The daemon's judgement of the GPUs' health.
    pub health: PathBuf,
    /// The folder of device nodes.
    pub dev: PathBuf,
    /// The wrapper's own program: it must never run itself as the runtime.
    pub own: PathBuf,
    /// The paths of leases and sysfs, and the user who must own files that are believed, such as the policy.
    pub lease: lease::paths::Paths,
}

impl Paths {
    /// The paths of a running machine.
    pub fn system() -> Self {
        Self {
            policy: PathBuf::from(allocation::policy::PATH),
            health: PathBuf::from(inventory::health::PATH),
            dev: PathBuf::from("/dev"),
            own: PathBuf::from("/proc/self/exe"),
            lease: lease::paths::Paths::system(),
        }
    }
}
