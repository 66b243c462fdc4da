//! The machine around rocworker: its name, its init, its user namespace.

use root::Root;
pub use telemetry::hostname::hostname;

/// What the kernel shows for a uid or gid that a user namespace does not map (`overflowuid` and `overflowgid`,
/// proc_sys_kernel(5)).
pub const UNMAPPED_ID: u32 = 65534;

/// Whether systemd is the first process, by the folder that sd_booted(3) looks for.
#[must_use]
pub fn runs_systemd(root: &Root) -> bool {
    root.exists("/run/systemd/system")
}
