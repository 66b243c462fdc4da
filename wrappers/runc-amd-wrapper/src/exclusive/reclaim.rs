//! GPUs of idle containers, had back by ending these.

use allocation::lease::Lease;

use super::Exclusive;
use crate::idle;
use crate::lease_file::Holder;
use crate::liveness::By;
use crate::paths::Paths;
use crate::shortage::Reason;

impl Exclusive<'_> {
    pub(super) fn reclaim(&self, leases: &[Lease]) -> Result<(), String> {
        let mut leases: Vec<&Lease> = leases.iter().collect();
        leases.sort_unstable_by_key(|lease| (&lease.root, &lease.id));
        leases.dedup_by_key(|lease| (&lease.root, &lease.id));
        for lease in leases {
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
    paths: &Paths,
) -> Vec<Lease> {
    let mut leases: Vec<&Lease> = reasons
        .filter_map(|reason| match reason {
            Reason::Holder(Holder::Lease { lease, by: By::Init }) => Some(&**lease),
            _ => None,
        })
        .filter(|lease| idle::is_reclaimable(lease, grace_s, now_ms, paths))
        .collect();
    if leases.len() < missing {
        return Vec::new();
    }
    leases.sort_by_key(|lease| lease.idle_since_ms);
    leases.truncate(missing);
    leases.into_iter().cloned().collect()
}
