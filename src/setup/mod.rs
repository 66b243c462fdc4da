//! Bringing a machine to what it should be, and back. The command line, hooks and the daemon call these functions.

mod apply;
mod boot;
mod caller;
pub mod deb;
mod driver;
mod emptied;
mod follows;
mod keep;
mod last_apply;
mod lost_runtimes;
mod own;
mod planned;
mod recorded;
mod settle;
mod single;
mod standing;
mod status;
mod undo;

use std::path::{Path, PathBuf};

use reconcile::command::Programs;
use reconcile::{DPKG_LOCK, Note, PackageManager, Receipt, Services};
use root::Root;

pub use apply::{Applied, Moved};
pub use boot::Booted;
pub(crate) use boot::named;
pub use caller::caller;
pub use emptied::emptied;
pub use keep::{Differs, Keeping, Kept, Stopped, Why};
pub use own::{Own, running};
pub use planned::{Planned, Saved};
pub use settle::settle;
pub use single::Refused;
pub use status::{ChosenNow, Status};
pub use undo::Undone;

use crate::config::{self, Config};
use crate::engines::Versions;
use crate::facts::Facts;
use crate::memory::{self, Memory};
use crate::moment::Moment;
use crate::premises::Premises;
use crate::render::judge;
use crate::worker::concourse::{out_of_date, written_by};
use crate::worker::selection::choose;
use crate::worker::{daemon, desired};

/// One run on one machine.
#[derive(Debug)]
pub struct Setup<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    /// `None` beneath another Root than `/`.
    pub programs: Option<&'a Programs>,
    /// Where the wrapper's program is of the build that runs.
    pub beside: Option<&'a Path>,
    /// Where the program is that runs.
    pub running: Option<PathBuf>,
    pub now: Moment,
    /// Who called, for the history.
    pub caller: String,
    /// What waits for a unit that takes long to end: [`Services::waiter`].
    pub waiter: Option<Vec<String>>,
}

/// Why a machine cannot be set up, or taken back.
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
    #[error(transparent)]
    Moved(#[from] Moved),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("cannot wait for {unit}: {reason}")]
    Unit { unit: String, reason: String },
    #[error(
        "{cause}; until then {changes} {} made: rocworker history lists them, rocworker undo takes them back",
        if *changes == 1 { "change was" } else { "changes were" }
    )]
    Midway { changes: usize, cause: Box<Error> },
}

impl Error {
    /// The same, of a run that had made so many changes by then.
    fn after(self, changes: usize) -> Self {
        if changes == 0 { self } else { Self::Midway { changes, cause: Box::new(self) } }
    }
}

impl From<config::Error> for Error {
    fn from(error: config::Error) -> Self {
        Self::Desired(error.into())
    }
}

/// Whether this machine is set up: an apply has run here, and no undo since. Every command, hook and the daemon ask
/// this, and a machine that is not set up is changed by an apply alone. What an undo had to leave, a driver among it,
/// does not count.
pub(crate) fn is_set_up(receipt: &Receipt, memory: &Memory) -> bool {
    // The spec has no concern, and is alone where `cdi generate` wrote it.
    receipt.entries.iter().any(|entry| !entry.concern.is_empty()) && !memory.undone
}

impl Setup<'_> {
    /// What the plan stands on, as the machine is now.
    fn premises(&self, memory: &Memory, receipt: &Receipt) -> Premises {
        let premises = self.without_apt(memory, receipt);
        Premises { driver: self.ground(&premises.facts), ..premises }
    }

    /// The same, and apt is not asked: what there is of the driver stays as it is.
    fn without_apt(&self, memory: &Memory, receipt: &Receipt) -> Premises {
        let facts = Facts::read(self.root).remembering(memory.chosen.clone());
        let versions = Versions::new(self.root, self.programs, memory.versions.clone()).at(self.now);
        let running = self.running.as_deref();
        Premises::read(self.root, self.config, facts, self.beside, running, receipt, versions)
    }

    /// What will be remembered of these premises.
    fn memory(&self, memory: &Memory, premises: &Premises) -> Result<Memory, config::Error> {
        let mut memory = memory.clone();
        memory.chosen = choose(self.config, &premises.facts)?;
        memory.versions.clone_from(&premises.versions);
        memory.overrides = judge(&memory.overrides, &premises.templates.sums()).memory;
        memory.concourse = written_by(&premises.concourse, memory.concourse);
        self.forget_driver(&mut memory);
        memory.undone = false;
        memory.config = self.followed();
        memory.rocworker = Some(env!("CARGO_PKG_VERSION").to_owned());
        Ok(memory)
    }

    /// What is to be said of the operator's templates, and of what another release of Concourse wrote.
    fn stale(&self, remembered: &Memory, premises: &Premises) -> Vec<Note> {
        let stale = judge(&remembered.overrides, &premises.templates.sums());
        let note = |name: &String| Note {
            about: "templates".to_owned(),
            text: format!(
                "{} was made beside an older template than this version carries, and may lack what is new: compare it \
                 with the new one, and edit it",
                premises.templates.place(name)
            ),
            problem: false,
        };
        let out_of_date = out_of_date(&premises.concourse, remembered.concourse);
        let of_concourse = |text| Note { about: "concourse".to_owned(), text, problem: false };
        let is_kept = daemon::is_wanted(self.config, &premises.facts);
        let other = self.followed().and_then(|followed| followed.other).filter(|_| is_kept);
        let of_daemon = |other: PathBuf| Note {
            about: daemon::ABOUT.to_owned(),
            text: format!(
                "{} does not follow {}: it changes nothing until {} says the same",
                daemon::UNIT,
                other.display(),
                self.root.shown(config::PATH).display()
            ),
            problem: false,
        };
        let notes = stale.names.iter().map(note).chain(out_of_date.map(of_concourse));
        notes.chain(other.map(of_daemon)).collect()
    }

    /// Who installs packages, where somebody may.
    fn hands(&self) -> Option<PackageManager> {
        let hands = self.programs.map(|programs| PackageManager::of(programs, DPKG_LOCK))?;
        Some(hands.through(self.config.packages.proxy.as_deref()))
    }

    fn services(&self) -> Services<'_> {
        Services {
            programs: self.programs,
            restarts: self.config.restart.into(),
            drain: reconcile::DRAIN,
            waiter: self.waiter.as_deref(),
            proxy: self.config.packages.proxy.as_deref(),
        }
    }
}
