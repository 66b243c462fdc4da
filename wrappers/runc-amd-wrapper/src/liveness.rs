//! Whether the container that a lease is about can still use its GPU.
//!
//! Asked in this order, which matters: the create first, since it makes all that is asked for afterwards,
//! and ends only after it has made it; then the first process; then whatever else is in the cgroup. The
//! state folder says nothing: it appears after the create began and stays after the container has ended.
//!
//! What cannot be told counts as alive: a lease that is kept too long costs a GPU for a while, one that is
//! taken too early costs somebody's work.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use allocation::lease::Lease;
use allocation::record::Creator;

use crate::alive::{self, Process, State};
use crate::cgroup::{self, Everyone};
use crate::paths::Paths;

/// Which of the three says that a lease is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The process that made the container.
    Creator,
    /// The container's first process, as runc's state names it.
    Init,
    /// A process in the container's cgroup.
    Cgroup,
}

impl By {
    /// As `rocworker lease list` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creator => "creator",
            Self::Init => "init",
            Self::Cgroup => "cgroup",
        }
    }
}

/// Looks at the processes of this boot.
#[derive(Debug)]
pub struct Judge<'p> {
    paths: &'p Paths,
    boot_id: String,
    /// Read once a lease needs it; `None` where it cannot be read.
    everyone: OnceCell<Option<Everyone>>,
}

impl<'p> Judge<'p> {
    /// # Errors
    /// proc is not there: then every process would seem to be dead.
    pub fn new(paths: &'p Paths) -> Result<Self, String> {
        let unknown = |error: &dyn std::fmt::Display| {
            format!(
                "which containers live cannot be told: {} {error}; mount proc there",
                paths.proc.join("sys/kernel/random/boot_id").display()
            )
        };
        let boot_id = alive::boot_id(&paths.proc).map_err(|error| unknown(&error))?;
        if Process::now(&paths.proc, std::process::id()).is_none() {
            return Err(unknown(&"is there, but not this process"));
        }
        Ok(Self { paths, boot_id, everyone: OnceCell::new() })
    }

    pub fn creator_lives(&self, creator: &Creator) -> bool {
        creator.boot_id == self.boot_id
            && Process { pid: creator.pid, start_time: creator.start_time }.may_live(&self.paths.proc)
    }

    pub fn is_of_this_boot(&self, creator: &Creator) -> bool {
        creator.boot_id == self.boot_id
    }

    /// By what the lease is alive; `None`: nothing of its container is left.
    pub fn lease(&self, lease: &Lease) -> Option<By> {
        if lease.creator.boot_id != self.boot_id {
            return None;
        }
        if self.creator_lives(&lease.creator) {
            return Some(By::Creator);
        }
        let state = State::read(Path::new(&lease.root), &lease.id);
        if state.as_ref().is_some_and(|state| state.init().may_live(&self.paths.proc)) {
            return Some(By::Init);
        }
        let cgroups = state.map(|state| state.cgroups()).filter(|cgroups| !cgroups.is_empty());
        let held = match cgroups {
            Some(cgroups) => cgroup::processes(&cgroups).map_or(true, |pids| !pids.is_empty()),
            None => self.is_in_cgroup_of(lease),
        };
        held.then_some(By::Cgroup)
    }

    /// Where runc left no state, because its create was killed or its delete has run.
    fn is_in_cgroup_of(&self, lease: &Lease) -> bool {
        let Some(ends) = lease.cgroup_ends() else { return true };
        let everyone = self.everyone.get_or_init(|| Everyone::read(&self.paths.proc).ok());
        everyone.as_ref().is_none_or(|everyone| everyone.any_in(&ends, &self.paths.proc))
    }

    /// Forgets which processes there were.
    pub fn look_again(&mut self) {
        self.everyone.take();
    }
}

/// The processes of a container by runc's state; `None` where that, or the kernel, does not say.
pub fn processes(root: &str, id: &str) -> Option<(Process, std::collections::BTreeSet<u32>)> {
    let state = State::read(Path::new(root), id)?;
    let cgroups: Vec<PathBuf> = state.cgroups();
    if cgroups.is_empty() {
        return None;
    }
    Some((state.init(), cgroup::processes(&cgroups).ok()?))
}
