//! The sentence that says why GPUs cannot be had: who has them, since when, and who waits.

use allocation::request::{GPU_WAIT, Request};
use allocation::selection::{Chosen, Gpu};

use crate::lease_file::Holder;
use crate::queue::Waiting;

/// The most GPUs and waiters that one sentence names.
const MOST: usize = 16;

/// Why a GPU is not free.
#[derive(Debug)]
pub(crate) enum Reason {
    Holder(Holder),
    /// A container that was given it when GPUs were shared, which it then may still be.
    Shared {
        root: String,
        id: String,
    },
    /// Somebody without a lease, as KFD names them.
    Stranger(String),
    /// One that came earlier gets it.
    Reserved,
}

pub(crate) struct Shortage<'a> {
    pub(crate) request: &'a Request,
    pub(crate) count: bool,
    /// The GPUs that would do.
    pub(crate) would_do: &'a [Chosen<'a>],
    /// Those of them that are not free.
    pub(crate) taken: &'a [(&'a Gpu, &'a Reason, String)],
    pub(crate) waiting: &'a [&'a Waiting],
    pub(crate) wait_limit_s: u32,
    pub(crate) waited_s: Option<u32>,
}

impl Shortage<'_> {
    pub(crate) fn sentence(&self) -> String {
        let free = self.would_do.len().saturating_sub(self.taken.len());
        let mut said = format!("the container asks for {}", self.request.describe());
        said += &match (self.count, self.would_do.len()) {
            (true, all) => format!(", and {free} of {all} are free: "),
            (false, 1) => ", which is not free: ".to_owned(),
            (false, all) => format!(", of which {free} of {all} are free: "),
        };
        let shown = self.taken.iter().take(MOST).map(|(gpu, reason, path)| why(gpu, reason, path));
        said += &shown.collect::<Vec<_>>().join("; ");
        if self.taken.len() > MOST {
            said += &format!("; and {} more", self.taken.len() - MOST);
        }
        for waiting in self.waiting.iter().take(MOST) {
            let ticket = &waiting.ticket;
            said +=
                &format!("; the container {} waits for {} since {}", ticket.id, ticket.wants, ticket.since);
        }
        if self.waiting.len() > MOST {
            said += &format!("; and {} more wait", self.waiting.len() - MOST);
        }
        match (self.waited_s, self.wait_limit_s) {
            (Some(seconds), _) => said += &format!("; it has waited for {seconds} s"),
            (None, 0) => {}
            (None, limit) => said += &format!("; {GPU_WAIT}=N lets it wait, for up to {limit} s"),
        }
        said
    }
}

fn why(gpu: &Gpu, reason: &Reason, path: &str) -> String {
    match reason {
        Reason::Holder(Holder::Lease { lease, .. } | Holder::Dead(lease)) => format!(
            "the GPU {gpu} is held by the container {} of runc root {} since {}",
            lease.id, lease.root, lease.since
        ),
        Reason::Holder(Holder::Unknown(reason)) => format!(
            "nobody can say who holds the GPU {gpu}, since the lease {path} {reason}: `rocworker lease release \
             --force {}` when nothing uses it",
            gpu.render
        ),
        Reason::Shared { root, id } => format!(
            "the GPU {gpu} was given to the container {id} of runc root {root} while GPUs were shared"
        ),
        Reason::Stranger(who) => format!("the GPU {gpu} is in use by {who}, which has no lease"),
        Reason::Reserved => format!("the GPU {gpu} goes to a container that has waited longer"),
    }
}
