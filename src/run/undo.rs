//! What an undo respects beside its plan.

use std::collections::BTreeSet;
use std::path::Path;

use config::Component;
use engines::program::PACKAGED;
use engines::undo_constraints::{named_by_dockerd, undo_constraints};
use engines::{ALL, Docker, Engine};
use reconcile::{
    Desired, Effect, Finding, Note, Plan, Progress, Receipt, Restarts, Services, Store, Transaction,
    UndoConstraints, naming,
};

use super::outcome::Outcome;
use super::scope::{Components, REMOVE, Request, Scope, UNDO, UNDO_EXPORTER};
use super::{Error, Run};
use crate::memory::Memory;

impl Run<'_> {
    /// Reverts everything that is managed, the last first. It is an apply of nothing: the configuration does not
    /// decide. `keeps`: what is there of this component stays managed. `force`: also what has been edited since.
    pub fn undo(
        &self,
        keeps: Option<Component>,
        force: bool,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Outcome, Error> {
        let is_empty = Store::new(self.root).receipt()?.is_empty();
        if is_empty && Memory::read(self.root).is_ok_and(|memory| memory == Memory::default()) {
            return Ok(Outcome::of(&UNDO));
        }
        self.execute(&UNDO, Request::Nothing { keeps, force }, on_progress)
    }

    /// Reverts the exporter's unit alone. One that was killed may have left a restart of that unit, and no entry.
    pub fn undo_exporter(
        &self,
        force: bool,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Outcome, Error> {
        let receipt = Store::new(self.root).receipt()?;
        let is_exporters = |entry: &reconcile::Entry| entry.component == Component::Exporter.as_ref();
        let has_ended = Memory::read(self.root).is_ok_and(|memory| !memory.undone);
        if !receipt.entries.iter().any(is_exporters) && !receipt.is_unfinished() && has_ended {
            return Ok(Outcome::of(&UNDO_EXPORTER));
        }
        self.execute(&UNDO_EXPORTER, Request::Nothing { keeps: None, force }, on_progress)
    }

    /// Reverts everything but packages before dpkg removes the program. Where all of it is reverted, nothing managed
    /// names the program any more.
    pub fn remove(&self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome, Error> {
        if Store::new(self.root).receipt()?.is_empty() {
            let left = self.naming(&self.undo_constraints());
            return Ok(Outcome { left, ..Outcome::of(&REMOVE) });
        }
        let request = Request::Nothing { keeps: Some(Component::Packages), force: false };
        let mut outcome = self.execute(&REMOVE, request, on_progress)?;
        // A file may have come to name the program meanwhile. A dockerd that hangs is not asked twice.
        if !outcome.falls_short() {
            outcome.left.extend(self.naming(&undo_constraints(self.root, self.config, &self.docker())));
        }
        Ok(outcome)
    }

    /// What would stop this half-way, as far as that shows before the first change. An undo leaves an edited file and a
    /// unit that may not be restarted; they stop a removal.
    pub(super) fn hindrances(
        &self,
        scope: &Scope,
        plan: &Plan,
        transaction: &Transaction<'_>,
        desired: &Desired,
    ) -> Vec<Finding> {
        let mut found = plan.hindered.clone();
        if !scope.packages {
            let services =
                Services { restarts: self.restarts_of_undo(transaction.receipt()), ..self.services() };
            let mut effects: Vec<&Effect> = plan.changes.iter().flat_map(|change| &change.effects).collect();
            effects.sort();
            effects.dedup();
            let waiting = effects.into_iter().filter_map(|effect| services.would_wait(self.root, effect));
            found.extend(waiting.map(|text| Finding { path: config::PATH.into(), text }));
            let is_mended = |file: &Finding| {
                plan.changes.iter().any(|it| it.path == file.path && !it.leaves_named(Path::new(PACKAGED)))
            };
            found.extend(self.naming(&desired.undo_constraints).into_iter().filter(|file| !is_mended(file)));
        }
        found
    }

    /// Notes that an undo has begun, before its first change: if it is killed half-way, the daemon must not set
    /// everything up again.
    pub(super) fn begin_undo(&self, scope: &Scope, memory: &mut Memory) {
        // An undo of one component leaves the others set up.
        if scope.components != Components::All && memory.only.is_none() {
            return;
        }
        memory.undone = true;
        if let Err(error) = memory.write(self.root) {
            tracing::warn!("a running daemon may set up again what this undo reverts: {error}");
        }
    }

    /// Forgets what was remembered of the last apply; but the next one looks after a driver that stays.
    pub(super) fn end_undo(&self, scope: &Scope, memory: &mut Memory, receipt: &Receipt) -> Option<Note> {
        let was = std::mem::take(memory);
        *memory = match receipt.entries.is_empty() {
            true => Memory::default(),
            false if scope.components != Components::All && !was.undone => was,
            false => {
                let Memory { unverified, mounts, .. } = was;
                Memory { undone: true, unverified, mounts, ..Memory::default() }
            }
        };
        let error = memory.write(self.root).err()?;
        let text = format!("what was remembered stays: {error}");
        Some(Note { about: "memory".to_owned(), text, problem: true })
    }

    /// The configuration's rule; where it says nothing at all, for it may be another file than the one that was
    /// applied (`--config`), the rule of the last apply.
    pub(super) fn restarts_of_undo(&self, receipt: &Receipt) -> Restarts {
        receipt.restart.filter(|_| self.config.says_nothing()).unwrap_or_else(|| self.services().restarts)
    }

    /// The files of engines that name the wrapper's program, whoever wrote that, or that cannot be read, and a dockerd
    /// that runs by it.
    fn naming(&self, undo_constraints: &UndoConstraints) -> Vec<Finding> {
        let mut found = naming(self.root, &undo_constraints.namers, Path::new(PACKAGED));
        found.extend(undo_constraints.unread.iter().map(|unread| Finding {
            path: unread.path.clone(),
            text: format!("it may name {PACKAGED}: {}", unread.text),
        }));
        let named = undo_constraints.named.iter().filter(|named| named.value == PACKAGED);
        found.extend(named.map(|it| Finding { path: PACKAGED.into(), text: it.why.clone() }));
        found
    }

    fn docker(&self) -> Docker {
        Docker::find(self.root, &self.config.docker.config)
    }

    /// What the engines' present configuration means for an undo. Of their programs, docker alone is asked.
    pub(super) fn undo_constraints(&self) -> UndoConstraints {
        let docker = self.docker();
        let mut found = undo_constraints(self.root, self.config, &docker);
        found.named.extend(named_by_dockerd(self.root, self.config, &docker));
        found
    }

    /// The containers that do not start again after this plan: each keeps the runtime that it was made with.
    pub(super) fn lost_runtimes(&self, desired: &Desired, plan: &Plan, receipt: &Receipt) -> Vec<Note> {
        /// Names of containers that are listed; of more there is the number.
        const SHOWN: usize = 20;
        let of_engine = |engine: &Engine| {
            let name = engine.name;
            let actions = desired.actions.iter().filter(|action| action.component == name);
            let stay: Vec<&str> =
                actions.flat_map(|action| &action.uses).map(|it| it.value.as_str()).collect();
            let changed = plan.changes.iter().filter_map(|change| receipt.entry(&change.path));
            let uses = changed.filter(|entry| entry.component == name).flat_map(|entry| &entry.uses);
            let lost: BTreeSet<String> =
                uses.map(|it| it.value.clone()).filter(|it| !stay.contains(&it.as_str())).collect();
            let lost = Vec::from_iter(lost);
            let containers = (engine.made_with)(self.root, self.config, &lost);
            let shown = containers.get(..SHOWN).unwrap_or(&containers).join(", ");
            let more = containers.len().saturating_sub(SHOWN);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let text = format!(
                "{name} made these containers with runtime {}, and cannot start them again without it: {shown}{more}; \
                 make them anew with another runtime",
                lost.join(", ")
            );
            (!containers.is_empty()).then(|| Note { about: name.to_owned(), text, problem: false })
        };
        ALL.iter().filter_map(of_engine).collect()
    }
}
