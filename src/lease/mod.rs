//! Who holds a GPU and who waits for one, as the wrapper judges it itself.

mod release;

use allocation::record::RecordedGpu;
use anyhow::Error;
use lease::kfd::{self, Kfd};
use lease::lease_file::{self, Holder, Leases};
use lease::liveness::{By, Judge};
use lease::paths::Paths;
use lease::queue::Queue;
use lease::{reap, store};
use root::Root;
use serde::Serialize;

use crate::run_folder;

pub use release::{cancel, release};

/// A GPU with a holder.
#[derive(Debug, Default, Serialize)]
pub struct Held {
    /// The render node: a lease's name.
    pub render: String,
    pub held_by: HeldBy,
    /// The GPU as the lease names it. None where the lease cannot be read, see `problem`, and where a process without a
    /// container uses the GPU.
    pub gpu: Option<RecordedGpu>,
    pub id: Option<String>,
    pub runc_root: Option<String>,
    /// `named` or `counted`; None without a lease.
    pub kind: Option<allocation::lease::Kind>,
    /// The wall clock at the grant; None without a lease.
    pub since: Option<String>,
    /// What says that the container lives: `creator`, `init` or `cgroup`. None for a lease: nothing does, and the next
    /// decision frees the GPU.
    pub alive_by: Option<&'static str>,
    /// Seconds for which decisions have found the GPU idle.
    pub idle_s: Option<u64>,
    /// Why the lease cannot be read. Its GPU is not free.
    pub problem: Option<String>,
    /// Whether the GPU is gone: its card is divided otherwise now. Should the partition come back while the container lives,
    /// the container has it again, and no other container gets it.
    pub gone: bool,
    /// The process that uses the GPU, as KFD names it, where neither a lease nor a record names a container.
    pub process: Option<String>,
}

/// What says that a GPU is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldBy {
    /// A lease, made under exclusive sharing.
    #[default]
    Lease,
    /// The record of what a container was given while GPUs were shared.
    Record,
    /// KFD: a process has memory or a queue on the GPU.
    Process,
}

impl Held {
    /// Whether an exclusive request cannot have the GPU: all but a lease whose container is gone. No holder
    /// takes a GPU that is gone.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        !self.gone && (self.held_by != HeldBy::Lease || self.alive_by.is_some() || self.problem.is_some())
    }
}

/// A create that waits.
#[derive(Debug, Serialize)]
pub struct Waiting {
    pub id: String,
    pub runc_root: String,
    pub wants: String,
    pub since: String,
}

fn paths(root: &Root) -> Paths {
    Paths {
        run: root.shown("/run/rocworker"),
        proc: root.shown("/proc"),
        sys: root.shown("/sys"),
        owner: root.owner(),
        ..Paths::system()
    }
}

fn judge<'p>(root: &Root, paths: &'p Paths) -> anyhow::Result<Judge<'p>> {
    let judge = if root.is_host() { Judge::new(paths) } else { Judge::of_another_machine(paths) };
    judge.map_err(Error::msg)
}

/// Names of the render nodes of GPUs that have a holder.
///
/// # Errors
/// A sentence that says why [`list`] fails.
pub fn taken(root: &Root) -> Result<Vec<String>, String> {
    let (held, _) = list(root).map_err(|error| error.to_string())?;
    Ok(held.into_iter().filter(Held::is_taken).map(|held| held.render).collect())
}

/// Every GPU that is held, and who waits: what a create under exclusive sharing finds, in the order in which it looks.
///
/// # Errors
/// The folders cannot be read or are not root's alone, or it is unknown which processes live.
pub fn list(root: &Root) -> anyhow::Result<(Vec<Held>, Vec<Waiting>)> {
    run_folder::check_owner(root)?;
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let now_ms = lease::alive::since_boot_ms();
    let leases = Leases::of(&paths, None).all(&judge).map_err(Error::msg)?;
    let has_lease = |root: &str, id: &str| {
        leases.iter().any(
            |held| matches!(&held.holder, Holder::Lease { lease, .. } if lease.root == root && lease.id == id),
        )
    };
    let mut records = reap::look(&store::records(&paths, None), &judge, &paths).map_err(Error::msg)?;
    records.retain(|(record, _)| !has_lease(&record.root, &record.id));
    let mut held: Vec<Held> = leases.into_iter().map(|held| of_lease(held, now_ms)).collect();
    for (record, by) in records {
        held.extend(record.gpus.into_iter().map(|gpu| Held {
            gpu: Some(gpu.clone()),
            id: Some(record.id.clone()),
            runc_root: Some(record.root.clone()),
            alive_by: Some(by.name()),
            render: gpu.render.to_string(),
            held_by: HeldBy::Record,
            ..Held::default()
        }));
    }
    for (render, who) in Kfd::read(&paths).users() {
        let render = render.to_string();
        if !held.iter().any(|held| held.render == render) {
            held.push(Held { render, held_by: HeldBy::Process, process: Some(who), ..Held::default() });
        }
    }
    if let (false, Some(there)) = (held.is_empty(), kfd::renders(&paths)) {
        let there: Vec<String> = there.iter().map(ToString::to_string).collect();
        held.iter_mut().for_each(|held| held.gone = !there.contains(&held.render));
    }
    let waiting = Queue::of(&paths, None).waiting(&judge).map_err(Error::msg)?;
    let waiting = waiting.into_iter().map(|waiting| Waiting {
        id: waiting.ticket.id,
        runc_root: waiting.ticket.root,
        wants: waiting.ticket.wants.to_string(),
        since: waiting.ticket.since,
    });
    Ok((held, waiting.collect()))
}

fn of_lease(held: lease_file::Held, now_ms: u64) -> Held {
    let rest = Held { render: held.render.to_string(), ..Held::default() };
    let (lease, alive_by) = match held.holder {
        Holder::Lease { lease, by } => (lease, by.map(By::name)),
        Holder::Unknown(reason) => return Held { problem: Some(reason), ..rest },
    };
    let idle = |since: u64| now_ms.saturating_sub(since) / 1000;
    Held {
        gpu: Some(lease.gpu),
        id: Some(lease.id),
        runc_root: Some(lease.root),
        kind: Some(lease.kind),
        since: Some(lease.since),
        alive_by,
        idle_s: lease.idle_since_ms.map(idle),
        ..rest
    }
}
