//! Finds who has which GPU: by leases, by records of times when GPUs were shared, by KFD, and by waiting
//! creates.

use std::collections::BTreeSet;
use std::path::Path;

use allocation::Render;
use allocation::gpu::Gpu;
use allocation::record::Record;
use allocation::ticket::Wants;
use allocation::withheld::Withheld;

use super::Exclusive;
use super::turn::Reason;
use lease::idle;
use lease::kfd::Kfd;
use lease::lease_file::{Held, Holder, Leases};
use lease::liveness::Judge;
use lease::lock::Lock;
use lease::queue::Waiting;
use lease::reap;

impl Exclusive<'_> {
    /// The holders of GPUs. Removes the leases and records of dead containers, and marks idle ones.
    pub(super) fn held(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        now_ms: Option<u64>,
        kfd: &Kfd,
    ) -> Result<Vec<Held>, String> {
        let leases = Leases::of(&self.paths.lease, Some(lock));
        let mut held = Vec::new();
        for mut one in leases.all(judge)? {
            match &mut one.holder {
                Holder::Lease { by: None, .. } => {
                    leases.remove(lock, one.render)?;
                    continue;
                }
                Holder::Lease { lease, by: Some(by) } => {
                    if let Some(now_ms) = now_ms {
                        let mark = idle::mark(lease, *by, now_ms, kfd, &self.paths.lease);
                        if lease.idle_since_ms != mark {
                            lease.idle_since_ms = mark;
                            leases.write(lock, lease)?;
                        }
                    }
                }
                Holder::Unknown(_) => {}
            }
            held.push(one);
        }
        Ok(held)
    }

    /// The GPUs of living containers that have a record and no lease: they were made under another policy.
    /// The records of the dead are removed.
    pub(super) fn given_while_shared(
        &self,
        lock: &Lock,
        held: &[Held],
    ) -> Result<Vec<(Render, Reason)>, String> {
        let has_lease = |record: &Record| {
            held.iter().any(|held| match &held.holder {
                Holder::Lease { lease, .. } => lease.id == record.id && lease.root == record.root,
                _ => false,
            })
        };
        let passed_over = |record: &Record| self.is_own(&record.root, &record.id) || has_lease(record);
        let living = reap::all(self.records, lock, &self.paths.lease, passed_over)?;
        let mut taken = Vec::new();
        for Record { root, id, gpus, .. } in living {
            let reason = || Reason::Shared { root: root.clone(), id: id.clone() };
            taken.extend(gpus.iter().map(|gpu| (gpu.render, reason())));
        }
        Ok(taken)
    }

    /// Every GPU that the request cannot get, with the reason.
    pub(super) fn taken(
        &self,
        withheld: &Withheld,
        held: Vec<Held>,
        shared: Vec<(Render, Reason)>,
        earlier: &[&Waiting],
        kfd: &Kfd,
    ) -> Vec<(Render, Reason)> {
        // First: to kill an idle holder of such a GPU would give it to nobody.
        let mut taken = self.withheld(withheld);
        taken.extend(held.into_iter().map(|held| (held.render, Reason::Holder(held.holder))));
        taken.extend(shared);
        for gpu in self.pool.gpus() {
            if !taken.iter().any(|(render, _)| *render == gpu.render) {
                taken.extend(kfd.user_of(gpu.render).map(|who| (gpu.render, Reason::Stranger(who))));
            }
        }
        let mut reserved: BTreeSet<Render> = BTreeSet::new();
        for waiting in earlier {
            let is_free = |gpu: &Gpu| {
                !reserved.contains(&gpu.render) && !taken.iter().any(|(render, _)| *render == gpu.render)
            };
            let renders: Vec<Render> = match &waiting.ticket.wants {
                Wants::Named(renders) => renders.clone(),
                Wants::Count(count) => match self.pool.pick_free(*count, is_free) {
                    Some(picked) => picked.iter().map(|gpu| gpu.render).collect(),
                    None => self.pool.gpus().iter().map(|gpu| gpu.render).collect(),
                },
            };
            reserved.extend(renders);
        }
        for render in reserved {
            if !taken.iter().any(|(other, _)| *other == render) {
                taken.push((render, Reason::Reserved));
            }
        }
        taken
    }

    /// The GPUs that the daemon withholds. Leftovers keep a GPU from every container; quarantine does not
    /// take from a bundle what an earlier create gave it.
    fn withheld(&self, withheld: &Withheld) -> Vec<(Render, Reason)> {
        let why = |gpu: &Gpu| {
            let card = gpu.withheld(withheld)?;
            let quarantine = card.quarantine.as_ref().filter(|_| !self.in_bundle.contains(&gpu.render));
            quarantine.or(card.leftover.as_ref()).cloned()
        };
        self.pool.gpus().iter().filter_map(|gpu| Some((gpu.render, Reason::Withheld(why(gpu)?)))).collect()
    }

    pub(super) fn is_own(&self, root: &str, id: &str) -> bool {
        id == self.key.id && Path::new(root) == self.key.root
    }
}
