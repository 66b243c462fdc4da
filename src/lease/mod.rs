//! The wrapper's leases, as it judges them itself.

use allocation::record::RecordedGpu;
use root::Root;
use runc_amd_wrapper::lease_file::{Holder, Leases};
use runc_amd_wrapper::liveness::Judge;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::queue::Queue;
use runc_amd_wrapper::run_error;
use runc_amd_wrapper::store::Store;
use serde::Serialize;

/// A GPU that somebody has.
#[derive(Debug, Serialize)]
pub struct Held {
    /// The render node: a lease's name.
    pub render: String,
    /// None where the lease cannot be read; see `problem`.
    pub gpu: Option<RecordedGpu>,
    pub id: Option<String>,
    pub runc_root: Option<String>,
    /// `named` or `counted`.
    pub kind: Option<allocation::lease::Kind>,
    /// The wall clock at the grant.
    pub since: Option<String>,
    /// What says that the container lives: `creator`, `init` or `cgroup`; None: nothing does, and the next
    /// decision frees the GPU.
    pub alive_by: Option<&'static str>,
    /// For how many seconds it has been idle as far as decisions saw.
    pub idle_s: Option<u64>,
    /// Why the lease cannot be read. Its GPU is not free.
    pub problem: Option<String>,
}

/// A create that waits.
#[derive(Debug, Serialize)]
pub struct Waiting {
    pub id: String,
    pub runc_root: String,
    pub wants: String,
    pub since: String,
}

/// Why a lease is not released.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the folder, the lock or proc: a whole sentence.
    #[error("{0}")]
    Store(String),
    #[error("no container and no GPU named {0} has a lease; `rocworker lease list` shows those that have")]
    NoLease(String),
    #[error("containers named {id} of {} runc roots have leases ({}): name the GPU instead", roots.len(), roots.join(", "))]
    Ambiguous { id: String, roots: Vec<String> },
    #[error(
        "the lease of {render} is not released: {reason}; --force releases it all the same, and nothing then keeps \
         another container off that GPU"
    )]
    Alive { render: String, reason: String },
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
    judge.map_err(Error::Store)
}

/// Every lease, and who waits.
///
/// # Errors
/// The folders cannot be read or are not root's alone, or nobody can tell which processes live.
pub fn list(root: &Root) -> Result<(Vec<Held>, Vec<Waiting>), Error> {
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let now_ms = runc_amd_wrapper::idle::now_ms(&paths);
    let leases = Leases::of(&paths).all(&judge).map_err(|error| Error::Store(error.to_string()))?;
    let held = leases.into_iter().map(|held| shown(held, now_ms)).collect();
    let waiting = Queue::of(&paths).waiting(&judge).map_err(|error| Error::Store(error.to_string()))?;
    let waiting = waiting.into_iter().map(|waiting| Waiting {
        id: waiting.ticket.id,
        runc_root: waiting.ticket.root,
        wants: waiting.ticket.wants.to_string(),
        since: waiting.ticket.since,
    });
    Ok((held, waiting.collect()))
}

fn shown(held: runc_amd_wrapper::lease_file::Held, now_ms: Option<u64>) -> Held {
    let (lease, alive_by) = match held.holder {
        Holder::Lease { lease, by } => (lease, Some(by.name())),
        Holder::Dead(lease) => (lease, None),
        Holder::Unknown(reason) => {
            return Held {
                render: held.render.to_string(),
                gpu: None,
                id: None,
                runc_root: None,
                kind: None,
                since: None,
                alive_by: None,
                idle_s: None,
                problem: Some(reason),
            };
        }
    };
    let idle = |since: u64| now_ms.map(|now| now.saturating_sub(since) / 1000);
    Held {
        render: held.render.to_string(),
        gpu: Some(lease.gpu),
        id: Some(lease.id),
        runc_root: Some(lease.root),
        kind: Some(lease.kind),
        since: Some(lease.since),
        alive_by,
        idle_s: lease.idle_since_ms.and_then(idle),
        problem: None,
    }
}

/// Removes the leases of a container by its id, or that of one GPU by its render node, and gives the names
/// of the GPUs. One that is alive, or that cannot be read, only with `force`; the container is not ended.
///
/// # Errors
/// There is none of that name, or one of them must stay: then all of them do.
pub fn release(root: &Root, name: &str, force: bool) -> Result<Vec<String>, Error> {
    let paths = paths(root);
    let stored = |error: run_error::Error| Error::Store(error.to_string());
    let judge = judge(root, &paths)?;
    let leases = Leases::of(&paths);
    // Making the folders would be a change where there is nothing to release.
    if leases.all(&judge).map_err(stored)?.is_empty() {
        return Err(Error::NoLease(name.to_owned()));
    }
    let lock = Store::of(&paths).lock().map_err(stored)?;
    let render = allocation::Render::parse(name);
    let mut named = leases.all(&judge).map_err(stored)?;
    named.retain(|held| match &held.holder {
        Holder::Lease { lease, .. } | Holder::Dead(lease) if render.is_none() => lease.id == name,
        _ => render == Some(held.render),
    });
    let mut roots: Vec<String> = Vec::new();
    for held in &named {
        let (reason, lease) = match &held.holder {
            Holder::Dead(lease) => (None, Some(lease)),
            Holder::Unknown(reason) => (Some(format!("its file {reason}")), None),
            Holder::Lease { lease, by } => {
                (Some(format!("the container {} lives, by its {}", lease.id, by.name())), Some(lease))
            }
        };
        roots.extend(lease.map(|lease| lease.root.clone()));
        if let Some(reason) = reason.filter(|_| !force) {
            return Err(Error::Alive { render: held.render.to_string(), reason });
        }
    }
    roots.sort_unstable();
    roots.dedup();
    if named.is_empty() {
        return Err(Error::NoLease(name.to_owned()));
    }
    if roots.len() > 1 {
        return Err(Error::Ambiguous { id: name.to_owned(), roots });
    }
    for held in &named {
        leases.remove(&lock, held.render).map_err(stored)?;
    }
    Ok(named.into_iter().map(|held| held.render.to_string()).collect())
}
