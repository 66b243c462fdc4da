//! The kernel driver around an apply: what decides about it before, and afterwards whether it is the one that runs.

use reconcile::command::Programs;
use reconcile::{Effect, Note, Outcome, Package, Plan, Resource, Settled, Transaction};

use super::Setup;
use crate::config;
use crate::doctor::{Status, tools};
use crate::driver::{Attempt, Driver, Offered, PACKAGE, Release, Verdict, look, questions};
use crate::facts::Facts;
use crate::host::Around;
use crate::memory::Memory;
use crate::worker::driver::{ABOUT, Ground};
use crate::worker::selection::is_off;

/// Nothing has failed: whoever applies from a hook is not to be stopped by it.
fn reboot(wanted: &Release) -> Effect {
    let reason = format!(
        "the driver {wanted} is built, and another build of amdgpu is loaded; see what rocworker doctor says then"
    );
    Effect::Reboot { reason }
}

/// What an apply that has brought packages finds of the driver.
#[derive(Debug, Default)]
pub(super) struct Verified {
    pub(super) note: Option<Note>,
    pub(super) owes: Option<Effect>,
    /// Whether the driver that was built is the one that runs.
    pub(super) runs: bool,
}

impl From<Note> for Verified {
    fn from(note: Note) -> Self {
        Self { note: Some(note), ..Self::default() }
    }
}

/// Whether apt has read what a repository offers.
pub(super) fn is_read(settled: &Settled) -> bool {
    matches!(settled.effect, Effect::AptUpdate { .. }) && settled.outcome == Outcome::Done
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
    let text = format!("the driver runs, and {tool} does not agree: {}", check.evidence);
    Some(Note { about: ABOUT.to_owned(), text, problem: true })
}

impl Setup<'_> {
    /// What decides about the driver; `None` where the configuration keeps the one that is there, or there is no GPU
    /// that needs one. apt is asked only of packages that are missing.
    pub(super) fn ground(&self, facts: &Facts) -> Option<Ground> {
        let config::Driver::AmdgpuDkms(wanted) = &self.config.driver else { return None };
        if is_off(self.config) || facts.amd().next().is_none() {
            return None;
        }
        let driver = Driver::read(self.root);
        let is_container = matches!(facts.virtualization, Some(Around::Container(_)));
        let questions = if is_container { Vec::new() } else { questions(wanted, &driver) };
        let offered = match self.programs {
            Some(programs) if !questions.is_empty() => Offered::ask(programs, &questions).map(Some),
            _ => Ok(None),
        };
        Some(Ground { driver, offered })
    }

    /// Whether the driver's packages may come or go by this plan.
    pub(super) fn may_bring_driver(&self, plan: &Plan) -> bool {
        matches!(self.config.driver, config::Driver::AmdgpuDkms(_))
            && plan.changes.iter().any(|change| change.path.is_package())
    }

    /// Whether the driver has to be looked at though no package comes: what an earlier run has brought was not found in
    /// order, or the machine was restarted for it since.
    pub(super) fn has_to_verify(&self, memory: &Memory) -> bool {
        let boot = self.root.read_text("/proc/sys/kernel/random/boot_id", 64);
        let is_restarted = |attempt: &Attempt| boot.is_ok_and(|boot| boot.trim() != attempt.boot_id);
        self.programs.is_some()
            && matches!(self.config.driver, config::Driver::AmdgpuDkms(_))
            && (memory.unverified || memory.driver.as_ref().is_some_and(is_restarted))
    }

    /// Forgets a restart of the machine that was to bring a driver which has gone.
    pub(super) fn forgive_gone(work: &mut Transaction<'_>) -> Result<(), reconcile::Error> {
        if work.receipt().entry(&Package::present(PACKAGE).resource()).is_some() {
            return Ok(());
        }
        work.forgive(|effect| matches!(effect, Effect::Reboot { .. }))
    }

    /// What is remembered of a driver that is wanted no more.
    pub(super) fn forget_driver(&self, memory: &mut Memory) {
        if self.config.driver == config::Driver::Keep {
            (memory.driver, memory.unverified) = (None, false);
        }
    }

    /// What is to be said of the driver once packages have come, and remembered: a reboot is asked for once.
    /// `changed`: what this apply has changed.
    pub(super) fn verified<'a>(
        &self,
        facts: &Facts,
        memory: &mut Memory,
        mut changed: impl Iterator<Item = &'a Resource>,
    ) -> Verified {
        let config::Driver::AmdgpuDkms(wanted) = &self.config.driver else { return Verified::default() };
        let is_due = changed.any(Resource::is_package) || self.has_to_verify(memory);
        let Some(programs) = self.programs.filter(|_| is_due) else {
            return Verified::default();
        };
        let driver = Driver::read(self.root);
        if driver.packages.as_ref().is_ok_and(|there| !there.contains_key(PACKAGE)) {
            // Why it has not come is said by whatever kept it.
            (memory.driver, memory.unverified) = (None, false);
            return Verified::default();
        }
        memory.unverified = true;
        if let Some(release) = driver.release().filter(|release| release != wanted) {
            let text = format!(
                "the driver {release} is there, and {wanted} is wanted: see which of apt's sources has it (apt-cache \
                 madison {PACKAGE}), and apply again"
            );
            return Note { about: ABOUT.to_owned(), text, problem: true }.into();
        }
        let looked = look(self.root, programs, &driver, &facts.machine.amdgpu, memory.driver.as_ref());
        let (text, problem) = match looked {
            Ok(Verdict::Loaded) => {
                (memory.driver, memory.unverified) = (None, false);
                return Verified { note: dissent(programs, facts), owes: None, runs: true };
            }
            Ok(Verdict::Loadable) => {
                (memory.driver, memory.unverified) = (None, false);
                (
                    format!(
                        "the driver {wanted} is built: modprobe amdgpu loads it now, and every boot does"
                    ),
                    false,
                )
            }
            Ok(Verdict::Reboot(attempt)) => {
                (memory.driver, memory.unverified) = (Some(attempt), false);
                return Verified { owes: Some(reboot(wanted)), ..Verified::default() };
            }
            Ok(Verdict::Wrong(stop)) => {
                (format!("the driver {wanted} is not the one that runs: {stop}"), true)
            }
            Err(why) => (format!("whether the driver {wanted} runs cannot be told: {why}"), true),
        };
        Note { about: ABOUT.to_owned(), text, problem }.into()
    }
}
