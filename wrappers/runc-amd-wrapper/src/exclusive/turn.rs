//! One decision under the lock: granted, or why not.

use allocation::lease::Lease;
use allocation::selection::{Chosen, Gpu};

use super::Exclusive;
use super::reclaim::reclaimable;
use super::wanted::Wanted;
use crate::alive;
use crate::kfd::Kfd;
use crate::lease_file::{Held, Holder, Leases};
use crate::liveness::{By, Judge};
use crate::lock::Lock;
use crate::queue::{Queue, Waiting};
use crate::shortage::{Reason, Shortage};

/// What came of a decision.
pub(super) enum Turn<'a> {
    Nothing,
    Granted(Vec<Chosen<'a>>),
    /// These hold what is wanted, and are idle.
    Idle(Vec<Lease>),
    Short(String),
}

impl<'a> Exclusive<'a> {
    /// One decision.
    pub(super) fn turn(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        wanted: &Wanted<'a>,
        number: Option<u64>,
        waited_s: Option<u32>,
    ) -> Result<Turn<'a>, String> {
        let queue = Queue::under(lock, self.paths);
        let waiting = queue.reap(lock, judge).map_err(|error| error.to_string())?;
        let earlier: Vec<&Waiting> =
            waiting.iter().filter(|waiting| number.is_none_or(|own| waiting.number < own)).collect();
        let now_ms = self.policy.idle_grace_s.map(|_| alive::since_boot_ms());
        let kfd = Kfd::read(self.paths);
        let held = self.held(lock, judge, now_ms, &kfd)?;
        if let Some(answer) = self.own(&held) {
            return answer;
        }
        let shared = self.given_while_shared(lock, &held)?;
        let taken = self.taken(held, shared, &earlier, &kfd);
        let reason =
            |gpu: &Gpu| taken.iter().find(|(render, _)| *render == gpu.render).map(|(_, reason)| reason);
        let is_free = |gpu: &Gpu| reason(gpu).is_none();
        let (would_do, picked) = match wanted {
            Wanted::Named(gpus) => {
                (gpus.clone(), gpus.iter().all(|chosen| is_free(chosen.gpu)).then(|| gpus.clone()))
            }
            Wanted::Count(count) => (self.inventory.there(), self.inventory.pick_free(*count, is_free)),
        };
        if let Some(chosen) = picked {
            return Ok(Turn::Granted(chosen));
        }
        if let (Some(grace), Some(now_ms), true) = (self.policy.idle_grace_s, now_ms, earlier.is_empty()) {
            let missing = match wanted {
                Wanted::Named(_) => would_do.iter().filter(|chosen| !is_free(chosen.gpu)).count(),
                Wanted::Count(count) => {
                    let free = would_do.iter().filter(|chosen| is_free(chosen.gpu)).count();
                    usize::try_from(*count).map_or(usize::MAX, |count| count.saturating_sub(free))
                }
            };
            let reasons = would_do.iter().filter_map(|chosen| reason(chosen.gpu));
            let idle = reclaimable(reasons, grace, now_ms, missing);
            if !idle.is_empty() {
                return Ok(Turn::Idle(idle));
            }
        }
        let leases = Leases::under(lock, self.paths);
        let listed: Vec<(&Gpu, &Reason, String)> = would_do
            .iter()
            .filter_map(|chosen| {
                let path = leases.path_of(chosen.gpu.render).display().to_string();
                reason(chosen.gpu).map(|reason| (chosen.gpu, reason, path))
            })
            .collect();
        let shortage = Shortage {
            request: self.request,
            count: matches!(wanted, Wanted::Count(_)),
            would_do: &would_do,
            taken: &listed,
            waiting: &earlier,
            wait_limit_s: self.policy.wait_limit_s,
            waited_s,
        };
        Ok(Turn::Short(shortage.sentence()))
    }

    /// Where a lease of this very container is alive: what is to be done about it.
    fn own(&self, held: &[Held]) -> Option<Result<Turn<'a>, String>> {
        let (lease, by) = held.iter().find_map(|held| match &held.holder {
            Holder::Lease { lease, by } if self.is_own(&lease.root, &lease.id) => Some((lease, *by)),
            _ => None,
        })?;
        let id = self.key.id;
        Some(match by {
            By::Creator if lease.creator == *self.creator => Ok(Turn::Nothing),
            By::Creator => Err(format!(
                "another create of the container {id} is running (process {}): wait for it",
                lease.creator.pid
            )),
            By::Init => Ok(Turn::Nothing),
            By::Cgroup => Err(format!(
                "processes of an earlier container {id} are left in its cgroup and hold its GPUs: end them"
            )),
        })
    }
}
