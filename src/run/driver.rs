//! The kernel driver around an apply: what decides about it before, and afterwards whether it is the one that runs.

use check::Status;
use config::{Build, Config, Managed, Rocm};
use host::facts::Facts;
use packages::desired::driver::ABOUT;
use packages::driver::{Attempt, Driver, Ground, PACKAGE, Verdict, asked_for, look};
use packages::smi;
use reconcile::command::Programs;
use reconcile::{Effect, Note, Package, Plan, Transaction};

use super::driver_part::is_reboot;
use super::pipeline::Execution;
use super::target::Target;
use super::{Error, Run, State};
use crate::memory::Memory;

fn note(text: String, problem: bool) -> Note {
    Note { about: ABOUT.to_owned(), text, problem }
}

/// What AMD's own tools have against it, where they are installed.
fn dissent(programs: &Programs, facts: &Facts, config: &Config) -> Option<Note> {
    let check = smi::check(Some(programs), facts, config)
        .into_iter()
        .find(|check| check.status == Status::Warning)?;
    let tool = check.subject.unwrap_or_default();
    Some(note(format!("the driver runs, and {tool} does not agree: {}", check.evidence), true))
}

impl Run<'_> {
    /// What decides about the driver; `None` where the configuration keeps the one that is there, or there is no GPU
    /// that needs one. apt is asked only of packages that are missing.
    pub(super) fn driver_ground(&self, facts: &Facts) -> Option<Ground> {
        let build = self.config.driver.on().filter(|_| facts.has_amd())?;
        Some(Ground::read(self.root, self.programs, Some(build), facts.inventory.virtualization.as_ref()))
    }

    /// Whether the driver's packages may come or go by this plan.
    pub(super) fn may_bring_driver(&self, plan: &Plan) -> bool {
        self.config.driver.is_on() && plan.changes.iter().any(|change| change.path.is_package())
    }

    /// Whether the driver has to be looked at though no package comes: what an earlier run has brought was not found in
    /// order, or the machine was restarted for it since.
    pub(super) fn has_to_verify(&self, state: &State) -> bool {
        let boot = self.root.read_text("/proc/sys/kernel/random/boot_id", 64);
        let is_restarted = |attempt: &Attempt| boot.is_ok_and(|boot| boot.trim() != attempt.boot_id);
        self.programs.is_some()
            && self.config.driver.is_on()
            && (state.memory.unverified || asked_for(&state.receipt).is_some_and(is_restarted))
    }

    /// An earlier version remembered beside the receipt for which driver it asked for a restart.
    pub(super) fn adopt_reboot(
        &self,
        memory: &Memory,
        transaction: &mut Transaction<'_>,
    ) -> Result<(), reconcile::Error> {
        let Some(attempt) = &memory.reboot else { return Ok(()) };
        let reason = transaction.pending().into_iter().find_map(|effect| match effect {
            Effect::Reboot { reason, .. } => Some(reason),
            _ => None,
        });
        let reason =
            reason.unwrap_or_else(|| "another build of amdgpu was loaded than dkms had built".to_owned());
        transaction.adopt_reboot(reason, attempt.clone(), self.now.seconds())
    }
}

impl Execution<'_> {
    /// A run that is killed from here on leaves the driver to be looked at by the next one.
    pub(super) fn mark_unverified(&mut self) -> Result<(), root::Error> {
        self.target.memory.unverified = true;
        self.target.memory.write(self.run.root).map(drop)
    }

    /// Drops the restart of the machine that would load a driver, once somebody has removed that driver's package.
    pub(super) fn forget_reboot(&mut self) -> Result<(), reconcile::Error> {
        if self.transaction.receipt().entry(&Package::present(PACKAGE).resource()).is_some() {
            return Ok(());
        }
        self.transaction.drop_pending(is_reboot)
    }

    /// Once packages have come: whether the driver among them is the one that runs, which is noted and remembered. A
    /// restart of the machine is asked for once.
    pub(super) fn verify_driver(&mut self) -> Result<(), Error> {
        if self.target.observed.is_none() {
            return Ok(());
        }
        let (receipt, memory) = (self.transaction.receipt().clone(), self.target.memory.clone());
        let state = State::of(self.run.root, receipt, memory);
        let has_changed = self.outcome.changes.iter().any(|change| change.path.is_package());
        let is_due = has_changed || self.run.has_to_verify(&state);
        match &self.run.config.driver {
            Managed::On(build) if is_due => {
                let note = self.verify_build(build, asked_for(&state.receipt))?;
                self.outcome.notes.extend(note);
            }
            Managed::On(_) => {}
            Managed::Off(_) => self.forget_reboot()?,
        }
        if let Managed::On(Rocm::Installer { usecases, .. }) = &self.run.config.rocm
            && is_due
            && usecases.iter().any(|usecase| usecase == "rocm")
        {
            let note = self.verify_by_rocm_smi();
            self.outcome.notes.extend(note);
        }
        self.target.memory.write(self.run.root)?;
        Ok(())
    }

    /// What rocm-smi says of a driver that amdgpu-install has brought, once that is the one that runs.
    fn verify_by_rocm_smi(&self) -> Option<Note> {
        let Run { programs: Some(programs), config, .. } = self.run else { return None };
        let facts = &self.target.observed.as_ref()?.facts;
        let is_open = self.transaction.receipt().still_pending(self.run.root).any(|it| is_reboot(&it.effect))
            || self.outcome.notes.iter().any(|it| it.problem && it.about == ABOUT);
        if is_open || facts.inventory.amdgpu.loaded != Ok(true) {
            return None;
        }
        let checks = smi::check(Some(programs), facts, config);
        let check = checks.into_iter().find(|check| check.subject.as_deref() == Some("rocm-smi"))?;
        Some(note(format!("rocm-smi: {}", check.evidence), check.status != Status::Ok))
    }

    fn verify_build(&mut self, build: &Build, asked_for: Option<&Attempt>) -> Result<Option<Note>, Error> {
        let Run { root, programs: Some(programs), .. } = self.run else { return Ok(None) };
        let Target { observed: Some(observed), memory, .. } = &mut self.target else { return Ok(None) };
        let (facts, transaction) = (&observed.facts, &mut self.transaction);
        let driver = Driver::read(root);
        if driver.packages.as_ref().is_ok_and(|there| !there.contains_key(PACKAGE)) {
            // A finding of its own says what kept the package from coming.
            memory.unverified = false;
            transaction.drop_pending(is_reboot)?;
            return Ok(None);
        }
        memory.unverified = true;
        if let Build::Release(wanted) = build
            && let Some(release) = driver.release().filter(|release| release != wanted)
        {
            let text = format!(
                "the driver {release} is there, and {wanted} is wanted: see which of apt's sources has it (apt-cache \
                 madison {PACKAGE}), and apply again"
            );
            return Ok(Some(note(text, true)));
        }
        let it = match build {
            Build::Release(wanted) => format!("the driver {wanted}"),
            Build::Installer => "amdgpu-install's driver".to_owned(),
        };
        let verdict = look(root, programs, &driver, &facts.inventory.amdgpu, asked_for);
        memory.unverified = !matches!(verdict, Ok(Verdict::Loaded | Verdict::Loadable | Verdict::Reboot(_)));
        Ok(match verdict {
            Ok(Verdict::Loaded) => {
                if transaction.receipt().still_pending(root).any(|pending| is_reboot(&pending.effect)) {
                    transaction.drop_pending(is_reboot)?;
                }
                match build {
                    Build::Release(_) => dissent(programs, facts, self.run.config),
                    Build::Installer => None,
                }
            }
            Ok(Verdict::Loadable) => {
                Some(note(format!("{it} is built: modprobe amdgpu loads it now, and every boot does"), false))
            }
            Ok(Verdict::Reboot(attempt)) => {
                // Nothing has failed, so that no hook stops here.
                let reason = format!(
                    "{it} is built, and another build of amdgpu is loaded; see what rocworker doctor says \
                     then"
                );
                let effect = Effect::Reboot { reason, module: Some(attempt) };
                transaction.add_pending(effect.clone(), self.run.now.seconds())?;
                // A restart brings this release, and no longer the one before.
                transaction.drop_pending(|it| is_reboot(it) && *it != effect)?;
                None
            }
            Ok(Verdict::Wrong(stop)) => Some(note(format!("{it} is not the one that runs: {stop}"), true)),
            Err(why) => Some(note(format!("cannot tell whether {it} runs: {why}"), true)),
        })
    }
}
