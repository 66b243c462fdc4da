use std::collections::BTreeMap;
use std::path::PathBuf;

use reconcile::{
    Change, Desired, Effect, Executed, Finding, Note, Plan, Progress, Settled, Stage, Store, Transaction,
};
use serde::Serialize;

use super::deb::without_packages;
use super::driver::{is_read, of_driver};
use super::planned::{Saved, told_of};
use super::recorded::record;
use super::{Error, Planned, Setup, is_set_up};
use crate::config;
use crate::engines::Known;
use crate::memory::Memory;
use crate::premises::Premises;
use crate::worker::desired::desired;

/// What an apply did. `apply --output json`, documented in docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Applied {
    pub schema_version: u32,
    pub changes: Vec<Change>,
    /// Changes that could not be made.
    pub failed: Vec<Finding>,
    pub effects: Vec<Settled>,
    pub contested: Vec<Finding>,
    pub blocked: Vec<Finding>,
    pub left: Vec<Finding>,
    pub notes: Vec<Note>,
}

/// The machine is not the one that a plan was made for.
#[derive(Debug, thiserror::Error)]
#[error(
    "the machine has moved since the plan was made, and nothing is changed: {}; make the plan again",
    other.join("; ")
)]
pub struct Moved {
    /// What is not as the plan has it, in sentences.
    pub other: Vec<String>,
}

/// Who has the machine brought to what it should be.
#[derive(Debug)]
pub(super) enum Run<'a> {
    /// A person or a hook. `versions`: what programs have told a moment ago. One that does not answer must not be waited
    /// for twice.
    Apply { saved: Option<&'a Saved>, versions: BTreeMap<PathBuf, Known> },
    /// dpkg, which has put another version of this program in place and is at work still: nothing can come by apt.
    Upgrade,
}

impl Setup<'_> {
    /// Brings the machine to what it should be. `saved`: only if that is what this plan says. `told` hears of each
    /// change before it is made, and of what takes long.
    ///
    /// # Errors
    /// When it cannot be said what should be, when the machine has moved, or when the receipt cannot be kept; what
    /// could not be changed otherwise is in the answer.
    pub fn apply(&self, saved: Option<&Saved>, told: &mut dyn FnMut(Progress<'_>)) -> Result<Applied, Error> {
        // Without the lock at first: where there is nothing to do, nothing is written, not even a lock's file.
        let remembered = Memory::read(self.root)?;
        let receipt = Store::new(self.root).receipt()?;
        let premises = self.premises(&remembered, &receipt);
        let memory = self.memory(&remembered, &premises)?;
        let planned = self.planned(&remembered, &premises, &receipt)?;
        if let Some(saved) = saved {
            saved.expect(&planned)?;
        }
        let Planned { plan, notes, .. } = planned;
        let knows_restarts = receipt.is_empty() || receipt.restart == Some(self.services().restarts);
        let is_known = memory == remembered && knows_restarts && !self.has_to_verify(&remembered);
        if plan.is_empty() && !receipt.is_unfinished() && is_known {
            return Ok(Applied {
                schema_version: 1,
                contested: plan.contested,
                blocked: plan.blocked,
                left: plan.left,
                notes,
                ..Applied::default()
            });
        }
        self.apply_locked(Run::Apply { saved, versions: premises.versions }, told)
    }

    pub(super) fn apply_locked(
        &self,
        run: Run<'_>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Applied, Error> {
        let (is_upgrade, command, hands, saved, versions) = match run {
            Run::Apply { saved, versions } => (false, "apply", self.hands(), saved, Some(versions)),
            Run::Upgrade => (true, "upgrade", None, None, None),
        };
        let work = Transaction::begin(self.root, told)?.by(hands);
        let mut remembered = Memory::read(self.root)?;
        // Whoever was waited for may have taken it back.
        if is_upgrade && !is_set_up(work.receipt(), &remembered) {
            return Ok(Applied { schema_version: 1, ..Applied::default() });
        }
        let mut work = work.recorded(self.event(command));
        remembered.versions = versions.unwrap_or(remembered.versions);
        let premises = match is_upgrade {
            true => self.without_apt(&remembered, work.receipt()),
            false => self.premises(&remembered, work.receipt()),
        };
        let mut memory = self.memory(&remembered, &premises)?;
        let wanted = desired(self.config, &premises)?;
        let wanted = if is_upgrade { without_packages(wanted) } else { wanted };
        if let Some(saved) = saved {
            let plan = work.plan(&wanted, None, false, self.now.seconds())?;
            saved.expect(&self.announced(plan, work.receipt()))?;
        }
        memory.write(self.root)?;
        work.restart_by(self.services().restarts);
        // A plan that somebody has looked at is held to: what it does not name takes another apply.
        let follows = saved.is_none() && !is_upgrade;
        let ran = self.stages(&mut work, &remembered, &mut memory, (premises, wanted), follows, told);
        let note = record(&mut work);
        let mut applied = ran.map_err(|error| error.after(work.made().len()))?;
        applied.notes.extend(note);
        Ok(applied)
    }

    fn stages(
        &self,
        work: &mut Transaction<'_>,
        remembered: &Memory,
        memory: &mut Memory,
        (premises, wanted): (Premises, Desired),
        follows: bool,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Applied, Error> {
        let mut applied = Applied { schema_version: 1, ..Applied::default() };
        let mut written = memory.clone();
        let plan = work.plan(&wanted, Some(Stage::Shape), false, self.now.seconds())?;
        let follows = follows && of_driver(plan.clone()).is_none();
        if self.may_bring_driver(&plan) {
            // Whoever is killed from here on leaves the driver to be looked at by the next run.
            memory.unverified = true;
            memory.write(self.root)?;
            written.clone_from(memory);
        }
        self.execute(work, plan, &mut applied, told)?;
        // Nodes get their groups now: the CDI spec tells engines of their modes. What a repository offers, and nothing
        // has been installed of, is read now too.
        let first = |effect: &Effect| matches!(effect, Effect::Udev { .. } | Effect::AptUpdate { .. });
        applied.effects.extend(work.run_effects(self.root, &self.services(), first, told)?);

        // What the first stage did may have changed what is true.
        let is_as_before = applied.changes.is_empty() && applied.effects.is_empty();
        let premises = if is_as_before { premises } else { self.premises(memory, work.receipt()) };
        let wanted = if is_as_before { wanted } else { desired(self.config, &premises)? };
        let following = match follows && applied.effects.iter().any(is_read) {
            true => of_driver(work.plan(&wanted, Some(Stage::Shape), false, self.now.seconds())?),
            false => None,
        };
        let (premises, wanted) = match following {
            Some(plan) => {
                memory.unverified = true;
                memory.write(self.root)?;
                written.clone_from(memory);
                self.execute(work, plan, &mut applied, told)?;
                let premises = self.premises(memory, work.receipt());
                let wanted = desired(self.config, &premises)?;
                (premises, wanted)
            }
            None => (premises, wanted),
        };
        let changed = applied.changes.iter().map(|change| &change.path);
        let verified = self.verified(&premises.facts, memory, changed);
        applied.notes.extend(verified.note);
        let is_restart = |effect: &Effect| matches!(effect, Effect::Reboot { .. });
        if verified.runs && work.receipt().owed(self.root).any(|pending| is_restart(&pending.effect)) {
            work.forgive(is_restart)?;
        }
        if self.config.driver == config::Driver::Keep {
            Self::forgive_gone(work)?;
        }
        if let Some(effect) = verified.owes {
            work.owe(effect.clone(), self.now.seconds())?;
            // A restart brings this release, and no longer the one before.
            work.forgive(|it| is_restart(it) && *it != effect)?;
        }
        if *memory != written {
            memory.write(self.root)?;
        }
        let plan = work.plan(&wanted, Some(Stage::Expose), false, self.now.seconds())?;
        applied.notes.extend(self.of_lost_runtimes(&wanted, &plan, work.receipt()));
        self.execute(work, plan, &mut applied, told)?;
        applied.effects.extend(work.run_effects(
            self.root,
            &self.services(),
            |effect| !first(effect),
            told,
        )?);
        applied.notes.extend(wanted.notes);
        applied.notes.extend(self.stale(remembered, &premises));
        Ok(applied)
    }

    fn execute(
        &self,
        work: &mut Transaction<'_>,
        plan: Plan,
        applied: &mut Applied,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        let Executed { done, failed, effects } = work.execute(&plan, self.now.seconds(), told)?;
        applied.failed.extend(failed);
        applied.notes.extend(told_of(&plan));
        applied.effects.extend(effects);
        applied.contested.extend(plan.contested);
        applied.blocked.extend(plan.blocked);
        applied.left.extend(plan.left);
        applied.changes.extend(plan.changes.into_iter().filter(|change| done.contains(&change.path)));
        Ok(())
    }
}

impl Applied {
    /// Whether something that should be is not.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        !self.failed.is_empty()
            || !self.blocked.is_empty()
            || self.notes.iter().any(|note| note.problem)
            || self.effects.iter().any(|effect| effect.outcome == reconcile::Outcome::Failed)
    }
}
