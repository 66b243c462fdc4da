//! How much memory a process may lock, as far as this machine lets it be raised.

use allocation::bundle::ProcessEdits;

use crate::log::Log;
use crate::sys;

/// Lowers what the policy wants to what runc can set, with a warning: above its own hard limit runc needs
/// `CAP_SYS_RESOURCE` in the machine's first user namespace, as a worker in an unprivileged LXD container does not have
/// it, and without it would fail the container.
pub(crate) fn keep_within_reach(process: &mut ProcessEdits<'_>, log: &Log<'_>) {
    let Some(wanted) = process.memlock_bytes else { return };
    if let Err(most) = sys::can_lock(wanted) {
        process.memlock_bytes = Some(most);
        log.warn(&format!(
            "memory that may be locked is limited to {most} bytes instead of the policy's memlock_bytes: runc may not raise \
             its own hard limit; raise that of the service that runs it (LimitMEMLOCK=), or give it CAP_SYS_RESOURCE"
        ));
    }
}
