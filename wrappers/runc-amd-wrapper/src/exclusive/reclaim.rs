//! GPUs of idle containers, had back by ending these.

use allocation::lease::Lease;

use super::Exclusive;
use crate::idle;
use crate::lease_file::Holder;
use crate::liveness::By;
use crate::shortage::Reason;

impl Exclusive<'_> {
    pub(super) fn reclaim(&self, leases: &[Lease]) -> Result<(), String> {
        for (at, lease) in leases.iter().enumerate() {
            let is_its = |other: &Lease| (&other.root, &other.id) == (&lease.root, &lease.id);
            if leases.iter().take(at).any(is_its) {
                continue;
            }
            idle::end(lease, self.paths)
                .map_err(|error| format!("the idle container {} cannot be killed: {error}", lease.id))?;
            self.log.warn(&format!(
                "the container {} of runc root {} was idle for longer than the policy's grace and was killed: its \
                 GPUs are wanted",
                lease.id, lease.root
            ));
        }
        Ok(())
    }
}

/// Idle holders that together have so many GPUs, those that are idle longest first; none where they have
/// fewer.
pub(super) fn reclaimable<'r>(
    reasons: impl Iterator<Item = &'r Reason>,
    grace_s: u32,
    now_ms: u64,
    missing: usize,
) -> Vec<Lease> {
    let mut leases: Vec<&Lease> = Vec::new();
    for reason in reasons {
        if let Reason::Holder(Holder::Lease { lease, by: By::Init }) = reason
            && idle::is_reclaimable(lease, grace_s, now_ms)
        {
            let at = leases.partition_point(|other| other.idle_since_ms <= lease.idle_since_ms);
            leases.insert(at, lease);
        }
    }
    if leases.len() < missing {
        return Vec::new();
    }
    leases.truncate(missing);
    leases.into_iter().cloned().collect()
}
