//! What dpkg's maintainer scripts ask before the program goes, and after another version of it has come.
//!
//! dpkg holds its lock meanwhile, so that packages can neither come nor go: what rocworker has installed by apt stays as
//! it is, with the repositories that it came from.

use std::path::Path;
use std::time::Duration;

use reconcile::{Desired, Finding, Progress, Receipt, Resource, Store, UndoConstraints, naming};

use super::apply::Run;
use super::undo::Leaves;
use super::{Applied, Error, Setup, Undone, is_set_up};
use crate::daemon::LOCK;
use crate::daemon::ask::{Serving, serving};
use crate::memory::{self, Memory};
use crate::own_program;
use crate::program::PACKAGED;
use crate::worker::concern::Concern;
use crate::worker::undo_constraints::running;

/// A daemon that is told to end does so within a second.
const STOPS_WITHIN: Duration = Duration::from_secs(2);

/// What is stored on a machine from one version to the next: a file, and the newest schema_version of it that this version
/// reads.
#[must_use]
pub fn formats() -> Vec<(&'static str, u32)> {
    reconcile::FORMATS.into_iter().chain([memory::FORMAT]).collect()
}

impl Setup<'_> {
    /// What keeps the program from going, before anything of it is taken back. `forever`: the package is purged, so that
    /// nothing would remember what was changed.
    ///
    /// # Errors
    /// When the receipt cannot be read: nobody knows then what names the program.
    pub fn keeps_the_program(&self, forever: bool) -> Result<Vec<Finding>, Error> {
        let receipt = Store::new(self.root).receipt()?;
        let stay = stays(&receipt);
        let mut findings = Vec::new();
        if let Some(first) = stay.first().filter(|_| forever) {
            let text = format!(
                "{} by apt, of which dpkg can take nothing back while it is at work itself: run rocworker undo",
                if stay.len() == 1 {
                    "it came".to_owned()
                } else {
                    format!("it and {} more came", stay.len() - 1)
                }
            );
            findings.push(Finding { path: first.clone(), text });
        }
        let by = running().into_iter().filter_map(|running| running.by(self.root, Path::new(PACKAGED)));
        findings.extend(by.map(|what| Finding {
            path: PACKAGED.into(),
            text: format!("{what} runs by it, and could not be stopped without it: stop it"),
        }));
        findings.extend(self.serving()?);
        Ok(findings)
    }

    /// A daemon that runs still. The package has stopped the one of systemd, as far as the machine's policy lets it; one
    /// that goes on would act by a program that is no more, and be in the way of the next.
    fn serving(&self) -> Result<Option<Finding>, Error> {
        let (who, kill) = match serving(self.root, STOPS_WITHIN)? {
            None => return Ok(None),
            Some(Serving::Process(pid)) => (format!("as process {pid}"), format!("kill {pid}")),
            Some(Serving::Unknown) => {
                let lock = self.root.shown(LOCK).display().to_string();
                (format!("as the process that has {lock}"), format!("fuser --kill -TERM {lock}"))
            }
        };
        let text = format!(
            "rocworker serve runs still, {who}, and would outlive its program: systemctl stop rocworker.service, or {kill}"
        );
        Ok(Some(Finding { path: own_program::PACKAGED.into(), text }))
    }

    /// Takes back all that is ours, but for what came by apt. Where that is whole, nothing of ours names the program any
    /// more.
    ///
    /// # Errors
    /// When the receipt cannot be read or kept.
    pub fn leave(&self, told: &mut dyn FnMut(Progress<'_>)) -> Result<Undone, Error> {
        let (mut undone, undo_constraints) = match Store::new(self.root).receipt()?.is_empty() {
            true => (Undone::default(), self.undo_constraints()),
            false => {
                let leaves = Leaves { stays: Some(Concern::Packages), is_dpkgs: true };
                self.take_back("remove", leaves, false, told)?
            }
        };
        if !undone.falls_short() {
            undone.left.extend(self.naming(&undo_constraints));
        }
        Ok(undone)
    }

    /// Brings the machine to what this version makes of its configuration, where an earlier one was applied and none of it
    /// was taken back. What has to come by apt is left to the next apply.
    ///
    /// # Errors
    /// As [`Setup::apply`].
    pub fn renew(&self, told: &mut dyn FnMut(Progress<'_>)) -> Result<Applied, Error> {
        if !is_set_up(&Store::new(self.root).receipt()?, &Memory::read(self.root)?) {
            return Ok(Applied { schema_version: 1, ..Applied::default() });
        }
        self.apply_locked(Run::Upgrade, told)
    }

    /// The files of engines that name the wrapper's program, whoever wrote that, or that nobody can read, and a dockerd
    /// that runs by it.
    pub(super) fn naming(&self, undo_constraints: &UndoConstraints) -> Vec<Finding> {
        let mut found = naming(self.root, &undo_constraints.namers, Path::new(PACKAGED));
        found.extend(undo_constraints.unread.iter().map(|unread| Finding {
            path: unread.path.clone(),
            text: format!("it may name {PACKAGED}: {}", unread.text),
        }));
        let named = undo_constraints.named.iter().filter(|named| named.value == PACKAGED);
        found.extend(named.map(|it| Finding { path: PACKAGED.into(), text: it.why.clone() }));
        found
    }
}

/// What stays where no package can come or go.
#[must_use]
pub fn stays(receipt: &Receipt) -> Vec<Resource> {
    let of_packages = receipt.entries.iter().filter(|entry| entry.concern == Concern::Packages.as_ref());
    of_packages.map(|entry| entry.path.clone()).collect()
}

pub(super) fn without_packages(mut wanted: Desired) -> Desired {
    wanted.actions.retain(|action| action.concern != Concern::Packages.as_ref());
    wanted.leave(Concern::Packages);
    wanted
}
