//! `sharing: exclusive`: every grant is a lease, and a GPU has one holder.
//!
//! # A decision
//! Under the lock: what the dead have left is cleared away, then all that is wanted is free, or nothing is
//! granted. A create drops the lock before it waits. A wrapper that is killed anywhere in this leaves files
//! that name a dead process, which the next decision clears away.
//!
//! # Waiting
//! docker cannot stop a container whose create waits. One that waits therefore ends when its ticket is removed
//! (`rocworker lease cancel`), and when the process that called it has ended.
//!
//! # The order of arrival
//! A ticket reserves what its owner would get now, and a count that cannot be met yet reserves all that is
//! free. A later container takes what is left, so that it does not wait for GPUs that no earlier one wants.

mod holders;
mod turn;

use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use allocation::Render;
use allocation::document::Document as _;
use allocation::gpu::Gpu;
use allocation::lease::{Kind, Lease};
use allocation::policy::Policy;
use allocation::record::{Creator, RecordedGpu};
use allocation::request::{Request, Selector};
use allocation::selection::Pool;
use allocation::ticket::{Ticket, Wants};
use allocation::withheld::Withheld;

use crate::health_file;
use crate::log::{self, Log};
use crate::paths::Paths;
use lease::idle;
use lease::lease_file::Leases;
use lease::liveness::Judge;
use lease::lock::Lock;
use lease::queue::Queue;
use lease::run_folder::RunFolder;
use lease::store::Key;
use turn::Turn;

/// How often a waiting create looks again.
const POLL: Duration = Duration::from_millis(50);
/// How often a create tries to kill idle containers: other creates may take what becomes free.
const RECLAIMS: u32 = 3;

/// A create that wants GPUs for itself.
#[derive(Debug)]
pub struct Exclusive<'a> {
    pub policy: &'a Policy,
    pub pool: &'a Pool,
    pub request: &'a Request,
    /// How many seconds the request would wait; the policy may allow fewer.
    pub wait_s: u32,
    pub key: Key<'a>,
    pub creator: &'a Creator,
    pub records: &'a RunFolder,
    pub paths: &'a Paths,
    pub log: Log<'a>,
    /// Render nodes that the bundle has already, of an earlier try mostly.
    pub in_bundle: &'a [Render],
    /// The cards that the daemon withheld when the pool was made.
    pub withheld: Withheld,
    /// `linux.cgroupsPath`.
    pub cgroups_path: Option<String>,
}

/// The GPUs that a request wants of those that exist.
enum Wanted<'a> {
    Named(Vec<&'a Gpu>),
    Count(u32),
}

impl<'a> Exclusive<'a> {
    /// Decides, and waits where the container and the policy want that. `lock` is let go meanwhile. The GPUs are this
    /// container's once [`Exclusive::write`] has written it down under the lock that is returned. None: nothing is to be
    /// done, since runc refuses the id, or this process has been here before.
    ///
    /// # Errors
    /// The sentence that says why it cannot have what it wants.
    pub fn acquire(&self, mut lock: Lock) -> Result<Option<(Lock, Vec<&'a Gpu>)>, String> {
        let wanted = self.wanted()?;
        let mut judge = Judge::new(&self.paths.lease)?;
        let wait_s = self.wait_s.min(self.policy.wait_limit_s);
        let deadline = Instant::now() + Duration::from_secs(u64::from(wait_s));
        let (mut number, mut reclaims) = (None, 0);
        let mut withheld = self.withheld.clone();
        let queue = Queue::of(&self.paths.lease, Some(&lock));
        let leave = |lock: &Lock, number: Option<u64>| match number {
            Some(number) => queue.remove(lock, number),
            None => Ok(()),
        };
        let caller = parent_id();
        loop {
            if let Some(number) = number {
                if !queue.has(number, self.creator) {
                    return Err(format!(
                        "the create of the container {} was cancelled while it waited for GPUs",
                        self.key.id
                    ));
                }
                if parent_id() != caller {
                    leave(&lock, Some(number))?;
                    return Err(format!("the process {caller}, for which it waited for GPUs, has ended"));
                }
            }
            let waited = number.map(|_| wait_s);
            match self.turn(&lock, &judge, &wanted, number, waited, &withheld)? {
                Turn::Nothing => return leave(&lock, number).map(|()| None),
                Turn::Granted(selected) => return leave(&lock, number).map(|()| Some((lock, selected))),
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
                        leave(&lock, number)?;
                        return Err(sentence);
                    }
                    if number.is_none() {
                        let ticket = self.ticket(&wanted)?;
                        number = Some(queue.draw(&lock, &ticket)?);
                    }
                    drop(lock);
                    std::thread::sleep(POLL.min(deadline - now));
                }
            }
            lock = Lock::take(&self.paths.lease, self.paths.lease.lock_patience)?;
            judge.look_again();
            withheld = self.withheld_now(&withheld);
        }
    }

    /// The cards that the daemon withholds now. That they are unknown is a warning only where it changes
    /// something.
    fn withheld_now(&self, last: &Withheld) -> Withheld {
        if !self.policy.quarantine {
            return Withheld::default();
        }
        let (withheld, unknown) = health_file::read(self.paths);
        unknown.iter().filter(|_| withheld != *last).for_each(|unknown| self.log.warn(unknown));
        withheld
    }

    /// The GPUs that the request wants; a bundle that an earlier create has edited gets the GPUs of that
    /// create again, or none.
    ///
    /// # Errors
    /// A sentence on why the request cannot be met, whoever holds which GPU.
    fn wanted(&self) -> Result<Wanted<'a>, String> {
        let would_do = self.pool.select(self.request, |_| 0)?;
        let has = |gpus: &[&Gpu], render: Render| gpus.iter().any(|gpu| gpu.render == render);
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
        let same = self.pool.select(&listed, |_| 0)?;
        if u32::try_from(same.len()) == Ok(*count) {
            return Ok(Wanted::Named(same));
        }
        Err(again(*first, &format!("so that {count} more or fewer would not be what it asks for")))
    }

    fn ticket(&self, wanted: &Wanted<'_>) -> Result<Ticket, String> {
        let wants = match wanted {
            Wanted::Named(gpus) => Wants::Named(gpus.iter().map(|gpu| gpu.render).collect()),
            Wanted::Count(count) => Wants::Count(*count),
        };
        Ok(Ticket {
            schema_version: Ticket::SCHEMA_VERSION,
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
    pub fn write(&self, lock: &Lock, selected: &[&Gpu]) -> Result<(), String> {
        let leases = Leases::of(&self.paths.lease, Some(lock));
        leases.ensure(lock)?;
        let root = self.root()?;
        for (at, one) in selected.iter().enumerate() {
            let lease = Lease {
                schema_version: Lease::SCHEMA_VERSION,
                gpu: RecordedGpu::from(*one),
                root: root.clone(),
                id: self.key.id.to_owned(),
                kind: if matches!(self.request, Request::Count(_)) { Kind::Counted } else { Kind::Named },
                since: log::now(),
                creator: self.creator.clone(),
                cgroups_path: self.cgroups_path.clone(),
                idle_since_ms: None,
            };
            if lease.cgroup_ends().is_none() {
                return Err(
                    "its config.json: linux.cgroupsPath is the root cgroup, which does not show whether \
                            the container still lives: give it a cgroup of its own"
                        .to_owned(),
                );
            }
            if let Err(error) = leases.write(lock, &lease) {
                for written in selected.iter().take(at) {
                    // What stays names this process, and dies with it.
                    let _ = leases.remove(lock, written.render);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}
