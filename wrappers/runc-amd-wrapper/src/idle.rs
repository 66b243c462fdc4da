//! Holders that do nothing: a container in which only its first process is left.
//!
//! Concourse's containers outlive their task, with nothing in them but an init that waits. Since nothing
//! of the wrapper stays running, idleness is seen at decisions: the first one that finds a holder idle
//! marks its leases, one that finds it busy takes the mark off, and once a mark is older than the policy's
//! grace the leases can be had back, by ending that init.

use std::io;
use std::time::{Duration, Instant};

use allocation::lease::Lease;

use crate::alive::Process;
use crate::liveness::{self, By, Judge};
use crate::paths::Paths;
use crate::signal;

/// How long to wait until nothing is left of a container that was killed.
const UNTIL_EMPTY: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// The time since the boot in milliseconds, suspend included: no clock that somebody sets.
pub fn now_ms(paths: &Paths) -> Option<u64> {
    let uptime = std::fs::read_to_string(paths.proc.join("uptime")).ok()?;
    let (seconds, hundredths) = uptime.split_ascii_whitespace().next()?.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let hundredths: u64 = hundredths.parse().ok()?;
    seconds.checked_mul(1000)?.checked_add(hundredths * 10)
}

/// The one process of a container in which there is no other; `None` where there are more, or nobody knows.
pub fn only_process(lease: &Lease, paths: &Paths) -> Option<Process> {
    let (init, pids) = liveness::processes(&lease.root, &lease.id, &paths.proc)?;
    (pids.len() == 1 && pids.contains(&init.pid)).then_some(init)
}

/// The mark that a lease should have now.
pub fn mark(lease: &Lease, by: By, now_ms: u64, paths: &Paths) -> Option<u64> {
    let idle = by == By::Init && only_process(lease, paths).is_some();
    idle.then(|| lease.idle_since_ms.filter(|since| *since <= now_ms).unwrap_or(now_ms))
}

/// Whether the lease can be had back. The container must be idle at this very moment too.
pub fn is_reclaimable(lease: &Lease, grace_s: u32, now_ms: u64, paths: &Paths) -> bool {
    let grace = u64::from(grace_s) * 1000;
    lease.idle_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= grace)
        && only_process(lease, paths).is_some()
}

/// Ends the only process of an idle container.
///
/// # Errors
/// The kernel does not let it.
pub fn end(lease: &Lease, paths: &Paths) -> io::Result<()> {
    match only_process(lease, paths) {
        Some(init) => signal::kill(init, &paths.proc),
        None => Ok(()),
    }
}

/// Waits until nothing is left of these containers, for two seconds at most: not to be called with the lock.
pub fn wait_until_gone(leases: &[Lease], judge: &mut Judge<'_>) {
    let deadline = Instant::now() + UNTIL_EMPTY;
    while leases.iter().any(|lease| judge.lease(lease).is_some()) && Instant::now() < deadline {
        std::thread::sleep(POLL);
        judge.look_again();
    }
}
