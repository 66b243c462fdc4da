//! Finds how much memory a process may lock on this machine.

use allocation::bundle::ProcessEdits;
use allocation::policy::UNLIMITED;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::log::Log;

/// Lowers what the policy wants to what runc can set, with a warning. Above its own hard limit runc needs
/// `CAP_SYS_RESOURCE` in the machine's first user namespace, and without it would fail the container. A worker in an
/// unprivileged LXD container does not have it.
pub(crate) fn keep_within_reach(process: &mut ProcessEdits<'_>, log: &Log<'_>) {
    let Some(wanted) = process.memlock_bytes else { return };
    if let Err(most) = can_lock(wanted) {
        process.memlock_bytes = Some(most);
        log.warn(&format!(
            "memory that may be locked is limited to {most} bytes instead of the policy's memlock_bytes: runc may not raise \
             its own hard limit; raise that of the service that runs it (LimitMEMLOCK=), or give it CAP_SYS_RESOURCE"
        ));
    }
}

/// Whether a process can be allowed to lock so much memory, in bytes. The kernel answers that: the wrapper
/// raises its own limit and lowers it again. A capability in a user namespace only is not enough.
///
/// # Errors
/// The highest limit that is possible.
fn can_lock(bytes: u64) -> Result<(), u64> {
    let before = getrlimit(Resource::Memlock);
    let Some(most) = before.maximum.filter(|most| *most < bytes) else { return Ok(()) };
    let maximum = (bytes != UNLIMITED).then_some(bytes);
    setrlimit(Resource::Memlock, Rlimit { maximum, ..before }).map_err(|_| most)?;
    // A limit may always be lowered.
    let _ = setrlimit(Resource::Memlock, before);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_raise_the_limit_on_locked_memory_is_who_the_shell_can_raise_it_for() {
        let shell = |script: &str| std::process::Command::new("sh").args(["-c", script]).output().unwrap();
        let limits = || shell("ulimit -H -l; ulimit -S -l").stdout;
        let before = limits();
        assert_eq!(can_lock(1), Ok(()));
        let most = String::from_utf8(before.clone()).unwrap();
        let most = most.lines().next().unwrap().to_owned();
        let can_raise = shell("ulimit -H -l unlimited").status.success();
        match most.parse::<u64>() {
            Ok(kib) if !can_raise => assert_eq!(can_lock(UNLIMITED), Err(kib * 1024)),
            _ => assert_eq!(can_lock(UNLIMITED), Ok(())),
        }
        assert_eq!(limits(), before, "asking changes nothing");
    }
}
