//! The kernel driver around an apply: what decides about it before, and afterwards whether it is the one that runs.

use reconcile::command::Programs;
use reconcile::{Effect, Note, Outcome as EffectOutcome, Package, Plan, Resource, Settled, Transaction};

use super::outcome::Outcome;
use super::target::Target;
use super::{Error, Run, State};
use crate::desired::driver::ABOUT;
use crate::doctor::{Status, tools};
use crate::driver::{Attempt, Driver, Ground, PACKAGE, Release, Verdict, asked_for, look};
use crate::facts::Facts;
use crate::memory::Memory;
use crate::selection::is_off;

/// Nothing has failed: whoever applies from a hook is not to be stopped by it.
fn reboot(wanted: &Release, attempt: Attempt) -> Effect {
    let reason = format!(
        "the driver {wanted} is built, and another build of amdgpu is loaded; see what rocworker doctor says then"
    );
    Effect::Reboot { reason, module: Some(attempt) }
}

enum Verified {
    /// It runs, whatever AMD's own tools have against it.
    Runs(Option<Note>),
    /// It runs once the machine was restarted.
    Waits(Effect),
    /// Something to say, and whether that is a problem.
    Noted(String, bool),
    /// It is not there.
    Gone,
    /// Nobody looked.
    Unknown,
}

pub(super) fn is_reboot(effect: &Effect) -> bool {
    matches!(effect, Effect::Reboot { .. })
}

fn note(text: String, problem: bool) -> Note {
    Note { about: ABOUT.to_owned(), text, problem }
}

/// Whether apt has read what a repository offers.
pub(super) fn is_read(settled: &Settled) -> bool {
    matches!(settled.effect, Effect::AptUpdate { .. }) && settled.outcome == EffectOutcome::Done
}

/// What of a plan is the driver itself: which of its releases are to be had is known only once apt has read AMD's
/// repository, which may be in the midst of an apply. `None`: nothing.
pub(super) fn of_driver(mut plan: Plan) -> Option<Plan> {
    let names = [Resource::Package(PACKAGE.to_owned()), Resource::Module("amdgpu".to_owned())];
    plan.changes.retain(|change| names.contains(&change.path));
    for told in [&mut plan.blocked, &mut plan.contested] {
        told.retain(|finding| names.contains(&finding.path));
    }
    // All else has been told.
    plan.left.clear();
    plan.skipped.clear();
    plan.linked.clear();
    let findings = plan.blocked.iter().chain(&plan.contested).map(|finding| &finding.path);
    let mut all = plan.changes.iter().map(|change| &change.path).chain(findings);
    all.any(|it| names.first() == Some(it)).then_some(plan)
}

/// What AMD's own tools have against it, where they are installed.
fn dissent(programs: &Programs, facts: &Facts) -> Option<Note> {
    let check =
        tools::check(Some(programs), facts).into_iter().find(|check| check.status == Status::Warning)?;
    let tool = check.subject.unwrap_or_default();
    Some(note(format!("the driver runs, and {tool} does not agree: {}", check.evidence), true))
}

impl Run<'_> {
    /// What decides about the driver; `None` where the configuration keeps the one that is there, or there is no GPU
    /// that needs one. apt is asked only of packages that are missing.
    pub(super) fn driver_ground(&self, facts: &Facts) -> Option<Ground> {
        let wanted = self.config.driver.as_ref()?;
        if is_off(self.config) || facts.amd().next().is_none() {
            return None;
        }
        Some(Ground::read(self.root, self.programs, Some(wanted), facts.virtualization.as_ref()))
    }

    /// Whether the driver's packages may come or go by this plan.
    pub(super) fn may_bring_driver(&self, plan: &Plan) -> bool {
        self.config.driver.is_some() && plan.changes.iter().any(|change| change.path.is_package())
    }

    /// Whether the driver has to be looked at though no package comes: what an earlier run has brought was not found in
    /// order, or the machine was restarted for it since.
    pub(super) fn has_to_verify(&self, state: &State) -> bool {
        let boot = self.root.read_text("/proc/sys/kernel/random/boot_id", 64);
        let is_restarted = |attempt: &Attempt| boot.is_ok_and(|boot| boot.trim() != attempt.boot_id);
        self.programs.is_some()
            && self.config.driver.is_some()
            && (state.memory.unverified || asked_for(&state.receipt).is_some_and(is_restarted))
    }

    /// An earlier version remembered beside the receipt for which driver it asked for a restart.
    pub(super) fn adopt_reboot(
        &self,
        memory: &Memory,
        work: &mut Transaction<'_>,
    ) -> Result<(), reconcile::Error> {
        let Some(attempt) = &memory.reboot else { return Ok(()) };
        let reason = work.owed().into_iter().find_map(|effect| match effect {
            Effect::Reboot { reason, .. } => Some(reason),
            _ => None,
        });
        let reason =
            reason.unwrap_or_else(|| "another build of amdgpu was loaded than dkms had built".to_owned());
        work.adopt_reboot(reason, attempt.clone(), self.now.seconds())
    }

    /// Whoever is killed from here on leaves the driver to be looked at by the next run.
    pub(super) fn mark_unverified(&self, memory: &mut Memory) -> Result<(), root::Error> {
        memory.unverified = true;
        memory.write(self.root).map(drop)
    }

    /// Forgets a restart of the machine that was to bring a driver which has gone.
    pub(super) fn forget_reboot(work: &mut Transaction<'_>) -> Result<(), reconcile::Error> {
        if work.receipt().entry(&Package::present(PACKAGE).resource()).is_some() {
            return Ok(());
        }
        work.forgive(is_reboot)
    }

    /// Once packages have come: whether the driver among them is the one that runs, which is noted and remembered. A
    /// restart of the machine is asked for once.
    pub(super) fn verify_driver(
        &self,
        target: &mut Target,
        work: &mut Transaction<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let Some(observed) = &target.observed else { return Ok(()) };
        let changed = outcome.changes.iter().any(|change| change.path.is_package());
        let state = State { receipt: work.receipt().clone(), memory: target.memory.clone() };
        match self.verdict(&observed.facts, &state, &mut target.memory, changed) {
            Verified::Runs(note) => {
                outcome.notes.extend(note);
                if work.receipt().owed(self.root).any(|pending| is_reboot(&pending.effect)) {
                    work.forgive(is_reboot)?;
                }
            }
            Verified::Waits(effect) => {
                work.owe(effect.clone(), self.now.seconds())?;
                // A restart brings this release, and no longer the one before.
                work.forgive(|it| is_reboot(it) && *it != effect)?;
            }
            Verified::Noted(text, problem) => outcome.notes.push(note(text, problem)),
            Verified::Gone => work.forgive(is_reboot)?,
            Verified::Unknown => {}
        }
        if self.config.driver.is_none() {
            Self::forget_reboot(work)?;
        }
        target.memory.write(self.root)?;
        Ok(())
    }

    fn verdict(&self, facts: &Facts, state: &State, memory: &mut Memory, changed: bool) -> Verified {
        let Some(wanted) = &self.config.driver else { return Verified::Unknown };
        let is_due = changed || self.has_to_verify(state);
        let Some(programs) = self.programs.filter(|_| is_due) else { return Verified::Unknown };
        let driver = Driver::read(self.root);
        if driver.packages.as_ref().is_ok_and(|there| !there.contains_key(PACKAGE)) {
            // Why it has not come is said by whatever kept it.
            memory.unverified = false;
            return Verified::Gone;
        }
        memory.unverified = true;
        if let Some(release) = driver.release().filter(|release| release != wanted) {
            let text = format!(
                "the driver {release} is there, and {wanted} is wanted: see which of apt's sources has it (apt-cache \
                 madison {PACKAGE}), and apply again"
            );
            return Verified::Noted(text, true);
        }
        let looked = look(self.root, programs, &driver, &facts.machine.amdgpu, asked_for(&state.receipt));
        match looked {
            Ok(Verdict::Loaded) => {
                memory.unverified = false;
                Verified::Runs(dissent(programs, facts))
            }
            Ok(Verdict::Loadable) => {
                memory.unverified = false;
                let text = format!(
                    "the driver {wanted} is built: modprobe amdgpu loads it now, and every boot does"
                );
                Verified::Noted(text, false)
            }
            Ok(Verdict::Reboot(attempt)) => {
                memory.unverified = false;
                Verified::Waits(reboot(wanted, attempt))
            }
            Ok(Verdict::Wrong(stop)) => {
                Verified::Noted(format!("the driver {wanted} is not the one that runs: {stop}"), true)
            }
            Err(why) => {
                Verified::Noted(format!("whether the driver {wanted} runs cannot be told: {why}"), true)
            }
        }
    }
}
