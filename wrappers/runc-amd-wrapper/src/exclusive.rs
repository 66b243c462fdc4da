//! `sharing: exclusive`: every grant is a lease, and a GPU has one holder.
//!
//! # A decision
//! Under the lock: what the dead have left is cleared away, then all that is wanted is free, or nothing is
//! granted. The lock is let go before anybody waits. A wrapper that is killed anywhere in this leaves files
//! that name a dead process, which the next decision clears away.
//!
//! # The order of arrival
//! A ticket reserves what its owner would get now, and a count that cannot be met yet reserves all that is
//! free. Whoever comes later takes what is left, so that nobody waits for GPUs that no earlier one wants.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use allocation::Render;
use allocation::lease::{self, Kind, Lease};
use allocation::policy::Policy;
use allocation::record::{Creator, Record, RecordedGpu};
use allocation::request::{Request, Selector};
use allocation::selection::{Chosen, Gpu, Inventory};
use allocation::ticket::{self, Ticket, Wants};

use crate::container::is_in_use;
use crate::idle;
use crate::kfd::Kfd;
use crate::lease_file::{Held, Holder, Leases};
use crate::liveness::{By, Judge};
use crate::log::{self, Log};
use crate::paths::Paths;
use crate::queue::{Queue, Waiting};
use crate::shortage::{Reason, Shortage};
use crate::store::{Key, Lock, Store};

/// How often one that waits looks again.
const POLL: Duration = Duration::from_millis(50);
/// Killing idle containers is tried this often: others may take what becomes free.
const RECLAIMS: u32 = 3;

/// A create that wants GPUs for itself.
#[derive(Debug)]
pub struct Exclusive<'a> {
    pub policy: &'a Policy,
    pub inventory: &'a Inventory,
    pub request: &'a Request,
    /// Of this many seconds, as many as the policy allows.
    pub wait_s: u32,
    pub key: Key<'a>,
    pub creator: &'a Creator,
    pub store: &'a Store,
    pub paths: &'a Paths,
    pub log: Log<'a>,
    /// Render nodes that the bundle has already, of an earlier try mostly.
    pub in_bundle: &'a [Render],
    /// `linux.cgroupsPath`.
    pub cgroups_path: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub enum Acquired<'a> {
    /// These are this container's once [`Exclusive::write`] has written it down under the same lock.
    Granted(Lock, Vec<Chosen<'a>>),
    /// runc refuses the id, or this process has been here before: nothing is to be done.
    Nothing,
}

/// What is wanted of what is there.
enum Wanted<'a> {
    Named(Vec<Chosen<'a>>),
    Count(u32),
}

enum Turn<'a> {
    Nothing,
    Granted(Vec<Chosen<'a>>),
    /// These hold what is wanted, and are idle.
    Idle(Vec<Lease>),
    Short(String),
}

impl<'a> Exclusive<'a> {
    /// Decides, and waits where the container and the policy want that. `lock` is let go meanwhile.
    ///
    /// # Errors
    /// The sentence that says why it cannot have what it wants.
    pub fn acquire(&self, lock: Lock) -> Result<Acquired<'a>, String> {
        let wanted = self.wanted()?;
        let mut judge = Judge::new(self.paths)?;
        let wait_s = self.wait_s.min(self.policy.wait_limit_s);
        let deadline = Instant::now() + Duration::from_secs(u64::from(wait_s));
        let (mut lock, mut number, mut reclaims) = (lock, None, 0);
        let queue = Queue::of(self.paths);
        loop {
            let waited = number.map(|_| wait_s);
            match self.turn(&lock, &judge, &wanted, number, waited)? {
                end @ (Turn::Nothing | Turn::Granted(_)) => {
                    if let Some(number) = number {
                        queue.remove(&lock, number).map_err(|error| error.to_string())?;
                    }
                    return Ok(match end {
                        Turn::Granted(chosen) => Acquired::Granted(lock, chosen),
                        _ => Acquired::Nothing,
                    });
                }
                Turn::Idle(leases) if reclaims < RECLAIMS => {
                    reclaims += 1;
                    self.reclaim(&leases)?;
                    drop(lock);
                    idle::wait_until_gone(&leases, &mut judge);
                }
                Turn::Idle(leases) => {
                    let ids: Vec<&str> = leases.iter().map(|lease| lease.id.as_str()).collect();
                    return Err(format!(
                        "the idle containers {} were killed for their GPUs, and others took these or processes \
                         are left: try again",
                        ids.join(", ")
                    ));
                }
                Turn::Short(sentence) => {
                    let now = Instant::now();
                    if now >= deadline {
                        if let Some(number) = number {
                            queue.remove(&lock, number).map_err(|error| error.to_string())?;
                        }
                        return Err(sentence);
                    }
                    if number.is_none() {
                        let ticket = self.ticket(&wanted)?;
                        number = Some(queue.draw(&lock, &ticket).map_err(|error| error.to_string())?);
                    }
                    drop(lock);
                    std::thread::sleep(POLL.min(deadline - now));
                }
            }
            lock = self.store.lock().map_err(|error| error.to_string())?;
            judge.look_again();
        }
    }

    fn wanted(&self) -> Result<Wanted<'a>, String> {
        let would_do = self.inventory.select(self.request, |_| 0).map_err(|refusal| refusal.to_string())?;
        let has = |gpus: &[Chosen<'_>], render: Render| gpus.iter().any(|chosen| chosen.gpu.render == render);
        let again = |render: Render, what: &str| {
            format!(
                "its config.json has the device node {} already, of an earlier try or of another tool, {what}: make \
                 the bundle anew",
                render.path()
            )
        };
        let Request::Count(count) = self.request else {
            return match self.in_bundle.iter().find(|render| !has(&would_do, **render)) {
                Some(render) => Err(again(*render, "and the container does not ask for it")),
                None => Ok(Wanted::Named(would_do)),
            };
        };
        let Some(first) = self.in_bundle.first() else { return Ok(Wanted::Count(*count)) };
        let listed = Request::Listed(self.in_bundle.iter().copied().map(Selector::Render).collect());
        let same = self.inventory.select(&listed, |_| 0).map_err(|refusal| refusal.to_string())?;
        if u32::try_from(same.len()) == Ok(*count) {
            return Ok(Wanted::Named(same));
        }
        Err(again(*first, &format!("so that {count} more or fewer would not be what it asks for")))
    }

    /// One decision.
    fn turn(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        wanted: &Wanted<'a>,
        number: Option<u64>,
        waited_s: Option<u32>,
    ) -> Result<Turn<'a>, String> {
        let queue = Queue::of(self.paths);
        queue.reap(lock, judge).map_err(|error| error.to_string())?;
        let waiting = queue.waiting(judge).map_err(|error| error.to_string())?;
        let earlier: Vec<&Waiting> =
            waiting.iter().filter(|waiting| number.is_none_or(|own| waiting.number < own)).collect();
        let now_ms = self.policy.idle_grace_s.and_then(|_| idle::now_ms(self.paths));
        let held = self.held(lock, judge, now_ms)?;
        if let Some(answer) = self.own(&held) {
            return answer;
        }
        let shared = self.given_while_shared(lock, judge, &held)?;
        let taken = self.taken(held, shared, &earlier);
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
        let leases = Leases::of(self.paths);
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

    /// Who has which GPU. The leases and records of the dead are removed, and idleness is marked.
    fn held(&self, lock: &Lock, judge: &Judge<'_>, now_ms: Option<u64>) -> Result<Vec<Held>, String> {
        let leases = Leases::of(self.paths);
        let mut held = Vec::new();
        for mut one in leases.all(judge).map_err(|error| error.to_string())? {
            match &mut one.holder {
                Holder::Dead(_) => {
                    leases.remove(lock, one.render).map_err(|error| error.to_string())?;
                    continue;
                }
                Holder::Lease { lease, by } => {
                    if let Some(now_ms) = now_ms {
                        let mark = idle::mark(lease, *by, now_ms);
                        if lease.idle_since_ms != mark {
                            lease.idle_since_ms = mark;
                            leases.write(lock, lease).map_err(|error| error.to_string())?;
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
    fn given_while_shared(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        held: &[Held],
    ) -> Result<Vec<(Render, Reason)>, String> {
        let has_lease = |record: &Record| {
            held.iter().any(|held| match &held.holder {
                Holder::Lease { lease, .. } => lease.id == record.id && lease.root == record.root,
                _ => false,
            })
        };
        let mut taken = Vec::new();
        for (path, text) in self.store.all(lock).map_err(|error| error.to_string())? {
            let Ok(record) = Record::parse(&text) else { continue };
            if self.is_own(&record.root, &record.id) || has_lease(&record) {
                continue;
            }
            if judge.is_of_this_boot(&record.creator) && is_in_use(&record, self.paths) {
                let Record { root, id, .. } = record;
                let reason = || Reason::Shared { root: root.clone(), id: id.clone() };
                taken.extend(record.gpus.iter().map(|gpu| (gpu.render, reason())));
            } else {
                // It was only in the way; a record that stays is looked at again next time.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(taken)
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

    fn is_own(&self, root: &str, id: &str) -> bool {
        id == self.key.id && Path::new(root) == self.key.root
    }

    /// Every GPU that cannot be had, and why.
    fn taken(
        &self,
        held: Vec<Held>,
        shared: Vec<(Render, Reason)>,
        earlier: &[&Waiting],
    ) -> Vec<(Render, Reason)> {
        let mut taken: Vec<(Render, Reason)> =
            held.into_iter().map(|held| (held.render, Reason::Holder(held.holder))).collect();
        taken.extend(shared);
        let kfd = Kfd::read(self.paths);
        for gpu in self.inventory.gpus() {
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
                Wants::Count(count) => match self.inventory.pick_free(*count, is_free) {
                    Some(picked) => picked.iter().map(|chosen| chosen.gpu.render).collect(),
                    None => self.inventory.gpus().map(|gpu| gpu.render).collect(),
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

    fn reclaim(&self, leases: &[Lease]) -> Result<(), String> {
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

    fn ticket(&self, wanted: &Wanted<'_>) -> Result<Ticket, String> {
        let wants = match wanted {
            Wanted::Named(gpus) => Wants::Named(gpus.iter().map(|chosen| chosen.gpu.render).collect()),
            Wanted::Count(count) => Wants::Count(*count),
        };
        Ok(Ticket {
            schema_version: ticket::SCHEMA_VERSION,
            root: self.root()?,
            id: self.key.id.to_owned(),
            wants,
            since: log::now(),
            creator: self.creator.clone(),
        })
    }

    fn root(&self) -> Result<String, String> {
        let root = self.key.root.to_str();
        root.map(str::to_owned)
            .ok_or_else(|| "what is leased cannot be recorded: runc's --root is not UTF-8".into())
    }

    /// Writes a lease for each GPU: the grant itself.
    ///
    /// # Errors
    /// One cannot be written, for this reason; then none of them counts.
    pub fn write(&self, lock: &Lock, chosen: &[Chosen<'_>]) -> Result<(), String> {
        let leases = Leases::of(self.paths);
        leases.ensure().map_err(|error| error.to_string())?;
        let root = self.root()?;
        for (at, one) in chosen.iter().enumerate() {
            let lease = Lease {
                schema_version: lease::SCHEMA_VERSION,
                gpu: RecordedGpu::from(one.gpu),
                root: root.clone(),
                id: self.key.id.to_owned(),
                kind: if matches!(self.request, Request::Count(_)) { Kind::Counted } else { Kind::Named },
                since: log::now(),
                creator: self.creator.clone(),
                cgroups_path: self.cgroups_path.clone(),
                idle_since_ms: None,
            };
            if lease.cgroup_ends().is_none() {
                return Err("its config.json: linux.cgroupsPath is the root cgroup, in which nobody can tell whether \
                            the container still lives: give it a cgroup of its own"
                    .to_owned());
            }
            if let Err(error) = leases.write(lock, &lease) {
                for written in chosen.iter().take(at) {
                    // What stays names this process, and dies with it.
                    let _ = leases.remove(lock, written.gpu.render);
                }
                return Err(error.to_string());
            }
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
    let mut leases: Vec<&Lease> = reasons
        .filter_map(|reason| match reason {
            Reason::Holder(Holder::Lease { lease, by: By::Init }) => Some(&**lease),
            _ => None,
        })
        .filter(|lease| idle::is_reclaimable(lease, grace_s, now_ms))
        .collect();
    if leases.len() < missing {
        return Vec::new();
    }
    leases.sort_by_key(|lease| lease.idle_since_ms);
    leases.truncate(missing);
    leases.into_iter().cloned().collect()
}
