use std::collections::BTreeMap;
use std::path::Path;

use reconcile::{
    Change, Desired, Effect, Executed, Finding, Note, Outcome, Plan, Progress, Receipt, Restarts, Services,
    Settled, Transaction, UndoConstraints,
};
use serde::Serialize;

use super::recorded::record;
use super::{Error, Setup};
use crate::config;
use crate::engines::{Containerd, Docker, InForce, Versions};
use crate::memory::Memory;
use crate::program::PACKAGED;
use crate::worker::concern::Concern;
use crate::worker::undo_constraints::undo_constraints;

/// What an undo did. `undo --output json`, documented in docs/json.md.
#[derive(Debug, Serialize)]
pub struct Undone {
    pub schema_version: u32,
    pub changes: Vec<Change>,
    pub failed: Vec<Finding>,
    pub effects: Vec<Settled>,
    /// What stays, and why.
    pub left: Vec<Finding>,
    pub notes: Vec<Note>,
}

/// What a way back leaves alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaves {
    /// What is there of this concern stays, and stays ours.
    pub(super) stays: Option<Concern>,
    /// Whether dpkg is at work: by apt nothing can come or go, and what it is still owed waits.
    pub(super) is_dpkgs: bool,
}

impl Setup<'_> {
    /// Takes everything back that is ours, the last first. It is an apply of nothing: the configuration is not
    /// asked. `force`: also what somebody has changed since.
    ///
    /// # Errors
    /// When the receipt cannot be read or kept.
    pub fn undo(&self, force: bool, told: &mut dyn FnMut(Progress<'_>)) -> Result<Undone, Error> {
        self.undo_but(None, force, told)
    }

    /// The same, and what is there of one concern stays, and stays ours.
    ///
    /// # Errors
    /// As [`Setup::undo`].
    pub fn undo_but(
        &self,
        stays: Option<Concern>,
        force: bool,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Undone, Error> {
        let nothing_is_ours = reconcile::Store::new(self.root).receipt()?.is_empty();
        if nothing_is_ours && Memory::read(self.root).is_ok_and(|memory| memory == Memory::default()) {
            return Ok(Undone::default());
        }
        let (undone, _) = self.take_back("undo", Leaves { stays, is_dpkgs: false }, force, told)?;
        Ok(undone)
    }

    /// The same, whatever is there, and what it had to heed. `command`: for the history.
    pub(super) fn take_back(
        &self,
        command: &str,
        leaves: Leaves,
        force: bool,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(Undone, UndoConstraints), Error> {
        let mut undone = Undone::default();
        let hands = if leaves.is_dpkgs { None } else { self.hands() };
        let mut work = Transaction::begin(self.root, told)?.by(hands).recorded(self.event(command));
        let (wanted, plan) = self.plan_back(&work, leaves, force)?;
        let hindered =
            if force { Vec::new() } else { self.hindrances(&plan, &work, leaves, &wanted.undo_constraints) };
        if !hindered.is_empty() || (leaves.is_dpkgs && !plan.left.is_empty()) {
            return Ok((Undone { failed: hindered, left: plan.left, ..undone }, wanted.undo_constraints));
        }
        // Before the first change: whoever ends this half-way must not have the daemon set all of it up again.
        let mut memory = Memory::read(self.root).unwrap_or_default();
        memory.undone = true;
        if let Err(error) = memory.write(self.root) {
            tracing::warn!("a daemon that runs may set up again what is taken back: {error}");
        }
        undone.notes.extend(self.of_lost_runtimes(&wanted, &plan, work.receipt()));
        let ran = self.take_back_by(&mut work, plan, leaves, &mut undone, told);
        let is_left = !work.receipt().entries.is_empty();
        let note = record(&mut work);
        ran.map_err(|error| error.after(work.made().len()))?;
        undone.notes.extend(note);
        let was = std::mem::take(&mut memory);
        if is_left {
            // A driver that stays is looked after by the next apply.
            (memory.undone, memory.driver, memory.unverified) = (true, was.driver, was.unverified);
        }
        if let Err(error) = memory.write(self.root) {
            let text = format!("what was remembered stays: {error}");
            undone.notes.push(Note { about: "memory".to_owned(), text, problem: true });
        }
        Ok((undone, wanted.undo_constraints))
    }

    fn plan_back(
        &self,
        work: &Transaction<'_>,
        leaves: Leaves,
        force: bool,
    ) -> Result<(Desired, Plan), Error> {
        let mut wanted = Desired { undo_constraints: self.undo_constraints(), ..Desired::default() };
        wanted.undecided.extend(leaves.stays.map(|concern| concern.as_ref().to_owned()));
        let plan = work.plan(&wanted, None, force, self.now.seconds())?;
        Ok((wanted, plan))
    }

    /// What would stop this half-way, as far as that shows before the first change. An undo leaves what somebody has
    /// changed and a unit that may not be restarted; a removal is stopped by them.
    fn hindrances(
        &self,
        plan: &Plan,
        work: &Transaction<'_>,
        leaves: Leaves,
        undo_constraints: &UndoConstraints,
    ) -> Vec<Finding> {
        let mut found = plan.hindered.clone();
        if leaves.is_dpkgs {
            let services = Services { restarts: self.restarts_of_undo(work.receipt()), ..self.services() };
            let mut effects: Vec<&Effect> = plan.changes.iter().flat_map(|change| &change.effects).collect();
            effects.sort();
            effects.dedup();
            let waiting = effects.into_iter().filter_map(|effect| services.would_wait(self.root, effect));
            found.extend(waiting.map(|text| Finding { path: config::PATH.into(), text }));
            let is_mended = |file: &Finding| {
                plan.changes.iter().any(|it| it.path == file.path && !it.leaves_named(Path::new(PACKAGED)))
            };
            found.extend(self.naming(undo_constraints).into_iter().filter(|file| !is_mended(file)));
        }
        found
    }

    fn take_back_by(
        &self,
        work: &mut Transaction<'_>,
        plan: Plan,
        leaves: Leaves,
        undone: &mut Undone,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        let services = Services { restarts: self.restarts_of_undo(work.receipt()), ..self.services() };
        let of_apt = |effect: &Effect| matches!(effect, Effect::AptUpdate { .. } | Effect::Reboot { .. });
        let Executed { done, failed, effects } = work.execute(&plan, self.now.seconds(), told)?;
        undone.failed = failed;
        undone.effects = effects;
        undone.left = plan.left;
        undone.changes = plan.changes.into_iter().filter(|change| done.contains(&change.path)).collect();
        Self::forgive_gone(work)?;
        undone.effects.extend(work.run_effects(
            self.root,
            &services,
            |effect| !(leaves.is_dpkgs && of_apt(effect)),
            told,
        )?);
        Ok(())
    }

    /// The configuration's rule; where it says nothing at all, for it may be another file than the one that was
    /// applied (`--config`), the rule of the last apply.
    fn restarts_of_undo(&self, receipt: &Receipt) -> Restarts {
        let says_nothing = self.config.text().trim().is_empty();
        receipt.restart.filter(|_| says_nothing).unwrap_or_else(|| self.services().restarts)
    }

    /// How the engines are configured now. None of their programs is run.
    pub(super) fn undo_constraints(&self) -> UndoConstraints {
        let docker = self.docker();
        undo_constraints(self.config, &self.in_force(&docker).asking(self.root, &docker), &docker)
    }

    /// docker as it is configured now. Its program is not run.
    pub(super) fn docker(&self) -> Docker {
        let mut versions = Versions::new(self.root, None, BTreeMap::new());
        Docker::read(self.root, &self.config.docker.config, &mut versions)
    }

    /// What of the engines' configuration counts now.
    pub(super) fn in_force(&self, docker: &Docker) -> InForce {
        InForce::read(self.root, Containerd::unasked(self.root, self.config).as_ref(), docker)
    }
}

impl Default for Undone {
    fn default() -> Self {
        Self {
            schema_version: 1,
            changes: Vec::new(),
            failed: Vec::new(),
            effects: Vec::new(),
            left: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Undone {
    /// Whether something of ours stays, or is still to be done: a unit that was told to end must be started again by
    /// another undo.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        let is_open = |outcome| matches!(outcome, Outcome::Pending | Outcome::Failed);
        !self.failed.is_empty()
            || !self.left.is_empty()
            || self.notes.iter().any(|note| note.problem)
            || self.effects.iter().any(|effect| is_open(effect.outcome))
    }
}
