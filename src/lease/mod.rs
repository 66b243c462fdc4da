//! Who holds a GPU and who waits for one, as the wrapper judges it itself.

mod release;

use allocation::record::RecordedGpu;
use root::Root;
use runc_amd_wrapper::kfd::Kfd;
use runc_amd_wrapper::lease_file::{self, Holder, Leases};
use runc_amd_wrapper::liveness::{By, Judge};
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::queue::Queue;
use runc_amd_wrapper::{reap, store};
use serde::Serialize;

use crate::daemon::claim;

pub use release::{cancel, release};

/// A GPU that somebody has.
#[derive(Debug, Serialize)]
pub struct Held {
    /// The render node: a lease's name.
    pub render: String,
    pub held_by: HeldBy,
    /// None where the lease cannot be read, see `problem`, and where a process without a container uses the GPU.
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
    /// For how many seconds it has been idle as far as decisions saw.
    pub idle_s: Option<u64>,
    /// Why the lease cannot be read. Its GPU is not free.
    pub problem: Option<String>,
    /// The process that uses the GPU, as KFD names it, where neither a lease nor a record names a container.
    pub process: Option<String>,
}

/// What says that a GPU is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldBy {
    /// A lease, made under exclusive sharing.
    Lease,
    /// The record of what a container was given while GPUs were shared.
    Record,
    /// KFD: a process has memory or a queue on the GPU.
    Process,
}

impl Held {
    /// Whether an exclusive request cannot have the GPU: all but a lease whose container is gone.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.held_by != HeldBy::Lease || self.alive_by.is_some() || self.problem.is_some()
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

/// Why nothing is listed, released or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the folder, the lock or proc: a whole sentence.
    #[error("{0}")]
    Store(String),
    #[error(
        "no container named {0} holds a GPU, and no GPU of that name is held; `rocworker lease list` shows what is held"
    )]
    NotHeld(String),
    #[error(
        "the GPU {render} is in use by {who}, and by no lease or record that could be released: end that process"
    )]
    InUse { render: String, who: String },
    #[error("containers named {id} of {} runc roots hold GPUs ({}): name the GPU instead", roots.len(), roots.join(", "))]
    Ambiguous { id: String, roots: Vec<String> },
    #[error(
        "the GPU {render} is not released: {reason}; --force releases it all the same, and nothing then keeps another \
         container off that GPU"
    )]
    Alive { render: String, reason: String },
    #[error("no create of a container named {0} waits for GPUs; `rocworker lease list` shows those that do")]
    NotWaiting(String),
}

impl From<String> for Error {
    fn from(sentence: String) -> Self {
        Self::Store(sentence)
    }
}

fn paths(root: &Root) -> Paths {
    Paths {
        run: root.shown("/run/rocworker"),
        proc: root.shown("/proc"),
        sys: root.shown("/sys"),
        dev: root.shown("/dev"),
        owner: root.owner(),
        ..Paths::system()
    }
}

fn judge<'p>(root: &Root, paths: &'p Paths) -> Result<Judge<'p>, Error> {
    let judge = if root.is_host() { Judge::new(paths) } else { Judge::of_another_machine(paths) };
    Ok(judge?)
}

/// Names of the render nodes of GPUs that somebody has.
///
/// # Errors
/// As [`list`], in a sentence.
pub fn taken(root: &Root) -> Result<Vec<String>, String> {
    let (held, _) = list(root).map_err(|error| error.to_string())?;
    Ok(held.into_iter().filter(Held::is_taken).map(|held| held.render).collect())
}

/// Every GPU that is held, and who waits: what a create under exclusive sharing finds, in the same order.
///
/// # Errors
/// The folders cannot be read or are not root's alone, or nobody can tell which processes live.
pub fn list(root: &Root) -> Result<(Vec<Held>, Vec<Waiting>), Error> {
    claim::believe(root).map_err(|error| Error::Store(error.to_string()))?;
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let now_ms = runc_amd_wrapper::alive::since_boot_ms();
    let leases = Leases::of(&paths, None).all(&judge)?;
    let has_lease = |root: &str, id: &str| {
        leases.iter().any(
            |held| matches!(&held.holder, Holder::Lease { lease, .. } if lease.root == root && lease.id == id),
        )
    };
    let mut records = reap::look(&store::records(&paths, None), &judge, &paths)?;
    records.retain(|(record, _)| !has_lease(&record.root, &record.id));
    let mut held: Vec<Held> = leases.into_iter().map(|held| of_lease(held, now_ms)).collect();
    for (record, by) in records {
        held.extend(record.gpus.into_iter().map(|gpu| Held {
            gpu: Some(gpu.clone()),
            id: Some(record.id.clone()),
            runc_root: Some(record.root.clone()),
            alive_by: Some(by.name()),
            ..nothing_but(gpu.render.to_string(), HeldBy::Record)
        }));
    }
    for (render, who) in Kfd::read(&paths).users() {
        let render = render.to_string();
        if !held.iter().any(|held| held.render == render) {
            held.push(Held { process: Some(who), ..nothing_but(render, HeldBy::Process) });
        }
    }
    let waiting = Queue::of(&paths, None).waiting(&judge)?;
    let waiting = waiting.into_iter().map(|waiting| Waiting {
        id: waiting.ticket.id,
        runc_root: waiting.ticket.root,
        wants: waiting.ticket.wants.to_string(),
        since: waiting.ticket.since,
    });
    Ok((held, waiting.collect()))
}

fn nothing_but(render: String, held_by: HeldBy) -> Held {
    Held {
        render,
        held_by,
        gpu: None,
        id: None,
        runc_root: None,
        kind: None,
        since: None,
        alive_by: None,
        idle_s: None,
        problem: None,
        process: None,
    }
}

fn of_lease(held: lease_file::Held, now_ms: u64) -> Held {
    let rest = nothing_but(held.render.to_string(), HeldBy::Lease);
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
