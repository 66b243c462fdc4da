//! The machine around its GPUs: [`facts`] is everything that decides what should be on it, read once; [`groups`] and
//! [`version`] answer what only a program of the machine knows.

pub mod env_file;
pub mod facts;
pub mod glob;
pub mod groups;
pub mod module_load;
pub mod own_containerd;
pub mod pinned_devices;
pub mod remarks;
pub mod timestamp;
pub mod unit;
pub mod unserved;
pub mod version;

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
