//! Bringing a machine to what it should be, and back. The command line, hooks and the daemon call these functions.

mod active;
mod boot;
mod driver;
mod driver_part;
mod outcome;
mod own;
mod pipeline;
mod plan;
mod planned;
mod published;
mod scope;
mod select;
mod state;
mod tags;
mod target;
mod undo;
mod wait;

use reconcile::command::Programs;
use reconcile::{Action, DPKG_LOCK, PackageManager, Progress, Services};
use root::{Root, Written};

pub use active::{ConfigFile, Unreadable, applied_elsewhere, without_restarts};
pub(crate) use boot::named;
pub use outcome::{Differs, Outcome, Stopped, TagLoss, Why};
pub use own::{Own, caller, running};
pub use planned::{Planned, Saved};
pub use published::siblings_at_apply;
pub use scope::Rules;
pub use state::{Phase, State};
pub use wait::wait_and_start;

use crate::desired;
use crate::memory;
use config::Config;
use host::timestamp::Timestamp;
use scope::{APPLY, APPLY_EXPORTER, DAEMON, GENERATE, PARTITION, Request, UPGRADE};

/// A run on one machine, such as an apply, an undo or a look of the daemon.
#[derive(Debug)]
pub struct Run<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    /// `None` beneath another Root than `/`.
    pub programs: Option<&'a Programs>,
    pub own: Own,
    pub now: Timestamp,
    pub caller: String,
}

/// Why a run fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Desired(#[from] desired::Error),
    #[error(transparent)]
    Memory(#[from] memory::Error),
    #[error(transparent)]
    Reconcile(#[from] reconcile::Error),
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error("{0}")]
    Refused(String),
    /// The machine or the configuration has changed since a plan was saved.
    #[error("plan is stale, and nothing was applied: {}", .0.join("; "))]
    Stale(Vec<String>),
    #[error(
        "{cause}; until then {changes} {} made: rocworker history lists them, rocworker undo reverts them",
        if *changes == 1 { "change was" } else { "changes were" }
    )]
    Midway { changes: usize, cause: Box<Error> },
}

impl Error {
    /// Adds how many changes the run had made before it failed.
    fn after(self, changes: usize) -> Self {
        if changes == 0 { self } else { Self::Midway { changes, cause: Box::new(self) } }
    }
}

impl Run<'_> {
    /// Brings the machine to what the configuration says. `saved`: only if that is what this plan says.
    pub fn apply(
        &self,
        saved: Option<&Saved>,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Outcome, Error> {
        self.execute(&APPLY, Request::Configuration { saved }, on_progress)
    }

    /// Applies the exporter's unit alone: all else stays as it is, managed or not.
    pub fn apply_exporter(&self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome, Error> {
        self.execute(&APPLY_EXPORTER, Request::Configuration { saved: None }, on_progress)
    }

    /// Applies the configuration after dpkg has put another version of this program in place. Packages wait for the
    /// next apply, because dpkg still holds its lock.
    pub fn upgrade(&self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome, Error> {
        self.execute(&UPGRADE, Request::Configuration { saved: None }, on_progress)
    }

    /// Applies what the daemon may change. `is_current`: asked under the lock, whether it is still to be done.
    pub fn reconcile(
        &self,
        rules: &Rules<'_>,
        is_current: &dyn Fn() -> bool,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Outcome, Error> {
        self.execute(&DAEMON, Request::Reconcile { rules, is_current }, on_progress)
    }

    /// Writes one file that `cdi generate` asks for by itself: it is managed from then on.
    pub fn generate(&self, action: &Action) -> Result<Written, Error> {
        let outcome = self.execute(&GENERATE, Request::Only(std::slice::from_ref(action)), &mut |_| {})?;
        if let Some(finding) = outcome.blocked.into_iter().chain(outcome.failed).next() {
            let path = finding.path.shown(self.root);
            return Err(Error::Refused(format!("{path} is not written: {}", finding.text)));
        }
        Ok(if outcome.changes.is_empty() { Written::Unchanged } else { Written::Changed })
    }

    /// Writes modes of cards, one after the other, and keeps in the receipt what each card had.
    pub fn set_values(&self, actions: &[Action]) -> Result<Outcome, Error> {
        self.execute(&PARTITION, Request::Only(actions), &mut |_| {})
    }

    /// What installs packages; `None` where no program may run.
    fn package_manager(&self) -> Option<PackageManager> {
        let proxy = self.config.packages.proxy.as_deref();
        self.programs.map(|programs| PackageManager::new(programs, DPKG_LOCK, proxy))
    }

    fn services(&self) -> Services<'_> {
        Services {
            programs: self.programs,
            restarts: self.config.restart,
            drain: reconcile::DRAIN,
            waiter: self.own.waiter.as_deref(),
            proxy: self.config.packages.proxy.as_deref(),
        }
    }
}
