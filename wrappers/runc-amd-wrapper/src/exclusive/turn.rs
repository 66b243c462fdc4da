//! A decision under the lock: the request's GPUs, or why it gets none.

use allocation::gpu::Gpu;
use allocation::lease::Lease;
use allocation::policy::LONGEST_WAIT_S;
use allocation::request::GPU_WAIT;
use allocation::withheld::Withheld;

use super::{Exclusive, Wanted};
use lease::alive;
use lease::idle;
use lease::kfd::Kfd;
use lease::lease_file::{Held, Holder, Leases};
use lease::liveness::{By, Judge};
use lease::lock::Lock;
use lease::queue::{Queue, Waiting};

/// The most GPUs and waiters that one sentence names.
const MOST: usize = 16;

/// Why a GPU is not free.
#[derive(Debug)]
pub(super) enum Reason {
    /// The daemon withholds the GPU, with this reason.
    Withheld(String),
    Holder(Holder),
    /// A container that was given it when GPUs were shared, which it then may still be.
    Shared {
        root: String,
        id: String,
    },
    /// A process without a lease, as KFD names it.
    Stranger(String),
    /// A create that came earlier gets the GPU.
    Reserved,
}

/// The result of a decision.
pub(super) enum Turn<'a> {
    Nothing,
    Granted(Vec<&'a Gpu>),
    /// The wanted GPUs are held by these leases, whose containers are idle.
    Idle(Vec<Lease>),
    Short(String),
}

impl<'a> Exclusive<'a> {
    /// Makes one decision under the lock.
    pub(super) fn turn(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        wanted: &Wanted<'a>,
        number: Option<u64>,
        waited_s: Option<u32>,
        withheld: &Withheld,
    ) -> Result<Turn<'a>, String> {
        let waiting = Queue::of(&self.paths.lease, Some(lock)).reap(lock, judge)?;
        let earlier: Vec<&Waiting> =
            waiting.iter().filter(|waiting| number.is_none_or(|own| waiting.number < own)).collect();
        let now_ms = self.policy.idle_grace_s.map(|_| alive::since_boot_ms());
        let kfd = Kfd::read(&self.paths.lease);
        let held = self.held(lock, judge, now_ms, &kfd)?;
        if let Some(answer) = self.own(&held) {
            return answer;
        }
        let shared = self.given_while_shared(lock, &held)?;
        let taken = self.taken(withheld, held, shared, &earlier, &kfd);
        let reason =
            |gpu: &Gpu| taken.iter().find(|(render, _)| *render == gpu.render).map(|(_, reason)| reason);
        let is_free = |gpu: &Gpu| reason(gpu).is_none();
        let (would_do, picked) = match wanted {
            Wanted::Named(gpus) => (gpus.clone(), gpus.iter().all(|gpu| is_free(gpu)).then(|| gpus.clone())),
            Wanted::Count(count) => (self.pool.available(), self.pool.pick_free(*count, is_free)),
        };
        if let Some(selected) = picked {
            return Ok(Turn::Granted(selected));
        }
        if let (Some(grace), Some(now_ms), true) = (self.policy.idle_grace_s, now_ms, earlier.is_empty()) {
            let missing = match wanted {
                Wanted::Named(_) => would_do.iter().filter(|gpu| !is_free(gpu)).count(),
                Wanted::Count(count) => {
                    let free = would_do.iter().filter(|gpu| is_free(gpu)).count();
                    usize::try_from(*count).map_or(usize::MAX, |count| count.saturating_sub(free))
                }
            };
            let reasons = would_do.iter().filter_map(|gpu| reason(gpu));
            let idle = reclaimable(reasons, grace, now_ms, missing);
            if !idle.is_empty() {
                return Ok(Turn::Idle(idle));
            }
        }
        let leases = Leases::of(&self.paths.lease, Some(lock));
        let taken: Vec<String> =
            would_do.iter().filter_map(|gpu| Some(why(gpu, reason(gpu)?, &leases))).collect();
        Ok(Turn::Short(self.shortage(wanted, would_do.len(), &taken, &earlier, waited_s)))
    }

    /// The sentence that says why GPUs cannot be had: who has which of the `all` that would do, since when, and who waits.
    fn shortage(
        &self,
        wanted: &Wanted<'_>,
        all: usize,
        taken: &[String],
        waiting: &[&Waiting],
        waited_s: Option<u32>,
    ) -> String {
        let free = all.saturating_sub(taken.len());
        let mut sentence = format!("the container asks for {}", self.request.describe());
        sentence += &match wanted {
            Wanted::Count(_) => format!(", and {free} of {all} are free: "),
            Wanted::Named(_) if all == 1 => ", which is not free: ".to_owned(),
            Wanted::Named(_) => format!(", of which {free} of {all} are free: "),
        };
        sentence += &taken.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
        if taken.len() > MOST {
            sentence += &format!("; and {} more", taken.len() - MOST);
        }
        if let Wanted::Count(_) = wanted {
            sentence += &self.pool.quarantine_note();
        }
        for Waiting { ticket, .. } in waiting.iter().take(MOST) {
            sentence +=
                &format!("; the container {} waits for {} since {}", ticket.id, ticket.wants, ticket.since);
        }
        if waiting.len() > MOST {
            sentence += &format!("; and {} more wait", waiting.len() - MOST);
        }
        let asked = self.wait_s;
        sentence += &match (waited_s, self.policy.wait_limit_s) {
            (Some(seconds), limit) if asked > limit => {
                format!(
                    "; it has waited for {seconds} s, and wrapper.wait-limit-s ends {GPU_WAIT}={asked} there"
                )
            }
            (Some(seconds), _) => format!("; it has waited for {seconds} s"),
            (None, 0) if asked > 0 => format!(
                "; {GPU_WAIT}={asked} has no effect while wrapper.wait-limit-s is 0: set it in rocworker's \
                 configuration, to {LONGEST_WAIT_S} at most"
            ),
            (None, 0) => String::new(),
            (None, limit) => format!("; {GPU_WAIT}=N lets it wait, for up to {limit} s"),
        };
        sentence
    }

    /// The decision where this container already has a living lease.
    fn own(&self, held: &[Held]) -> Option<Result<Turn<'a>, String>> {
        let (lease, by) = held.iter().find_map(|held| match &held.holder {
            Holder::Lease { lease, by: Some(by) } if self.is_own(&lease.root, &lease.id) => {
                Some((lease, *by))
            }
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

    /// Ends idle containers, whose GPUs are wanted.
    pub(super) fn reclaim(&self, leases: &[Lease]) -> Result<(), String> {
        for (at, lease) in leases.iter().enumerate() {
            let is_its = |other: &Lease| (&other.root, &other.id) == (&lease.root, &lease.id);
            if leases.iter().take(at).any(is_its) {
                continue;
            }
            idle::end(lease, &self.paths.lease)
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
fn reclaimable<'r>(
    reasons: impl Iterator<Item = &'r Reason>,
    grace_s: u32,
    now_ms: u64,
    missing: usize,
) -> Vec<Lease> {
    let mut leases: Vec<&Lease> = Vec::new();
    for reason in reasons {
        if let Reason::Holder(Holder::Lease { lease, by: Some(By::Init) }) = reason
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

fn why(gpu: &Gpu, reason: &Reason, leases: &Leases) -> String {
    match reason {
        Reason::Withheld(why) => format!("the GPU {gpu} {why} (see rocworker health)"),
        Reason::Holder(Holder::Lease { lease, .. }) => format!(
            "the GPU {gpu} is held by the container {} of runc root {} since {}",
            lease.id, lease.root, lease.since
        ),
        Reason::Holder(Holder::Unknown(reason)) => format!(
            "the holder of the GPU {gpu} is unknown, since the lease {} {reason}: `rocworker lease release \
             --force {}` when nothing uses it",
            leases.path_of(gpu.render).display(),
            gpu.render
        ),
        Reason::Shared { root, id } => format!(
            "the GPU {gpu} was given to the container {id} of runc root {root} while GPUs were shared"
        ),
        Reason::Stranger(who) => format!("the GPU {gpu} is in use by {who}, which has no lease"),
        Reason::Reserved => format!("the GPU {gpu} goes to a container that has waited longer"),
    }
}
