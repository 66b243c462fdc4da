//! What happens before engines start: they are told of this start's GPUs. What an apply would do beside that is left to it.

use std::path::Path;
use std::time::{Duration, Instant};

use amdgpu::Gpu;
use reconcile::{
    Change, Effect, Executed, Finding, Outcome, Plan, Progress, Receipt, Resource, Restarts, Services,
    Settled, Stage, Store, Transaction, Verb,
};
use serde::Serialize;

use super::follows::Part;
use super::recorded::record;
use super::standing::Standing;
use super::{Error, Setup, is_set_up};
use crate::awaited::{Awaited, awaited};
use crate::engines::concourse::{DROP_IN, ENV_FILE};
use crate::facts::Facts;
use crate::memory::Memory;
use crate::worker::desired::desired;

/// Between two looks at a machine whose driver is coming up. sysfs tells nobody of its changes, and KFD's topology has no
/// uevents, so that it has to be looked at; a look takes some milliseconds.
const PAUSE: Duration = Duration::from_millis(100);

/// What was done before engines start. `boot --output json`, documented in docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Booted {
    pub schema_version: u32,
    /// Whether an apply has set this machine up, and no undo has taken it back since: else nothing is done.
    pub set_up: bool,
    pub changes: Vec<Change>,
    /// Changes that could not be made.
    pub failed: Vec<Finding>,
    pub effects: Vec<Settled>,
    /// GPUs that had not come when the time was over: engines start without them.
    pub missing: Vec<Awaited>,
    /// What else differs from what should be: apply's to change.
    pub differs: Vec<Resource>,
}

impl Booted {
    /// Whether something that should be is not.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        !self.failed.is_empty()
            || !self.missing.is_empty()
            || self.effects.iter().any(|effect| effect.outcome == Outcome::Failed)
    }
}

/// What a start goes by.
#[derive(Debug, Clone, Copy)]
enum By<'a> {
    /// The configuration, and what engines were told before it where it cannot be followed.
    Configuration(&'a Standing),
    /// That alone.
    Standing(&'a Standing),
}

impl By<'_> {
    /// Whether it is known what should be.
    fn is_known(self) -> bool {
        matches!(self, Self::Configuration(_))
    }
}

impl Setup<'_> {
    /// Waits for GPUs that are still coming up, as long as the configuration says; gives nodes their group and mode, and
    /// brings the CDI spec, the wrapper's policy and the worker's tags to what the machine is now. It restarts nothing,
    /// installs nothing, and edits no engine's file. Where no apply has set the machine up, or an undo has taken it back
    /// since, it does nothing but take out what is true no more of a spec that was left. `told` hears of what is waited for,
    /// and of each change before it is made.
    ///
    /// # Errors
    /// When it cannot be said what should be: of what engines were told at the last start that stays which is still true.
    /// When the receipt cannot be read or kept.
    pub fn boot(&self, told: &mut dyn FnMut(Progress<'_>)) -> Result<Booted, Error> {
        self.boot_by(true, told)
    }

    /// The same where the configuration cannot be read: what should be is not known.
    ///
    /// # Errors
    /// When the receipt cannot be read or kept.
    pub fn boot_without_configuration(&self, told: &mut dyn FnMut(Progress<'_>)) -> Result<Booted, Error> {
        self.boot_by(false, told)
    }

    fn boot_by(&self, is_known: bool, told: &mut dyn FnMut(Progress<'_>)) -> Result<Booted, Error> {
        let mut booted = Booted { schema_version: 1, ..Booted::default() };
        let receipt = Store::new(self.root).receipt()?;
        booted.set_up = is_set_up(&receipt, &self.remembered(is_known)?);
        // As it stands before the first change: what is not there yet may come.
        let standing = Standing::read(self.root, &receipt);
        if !booted.set_up {
            // An undo that was killed may have left a spec: it is not kept up, and what has gone is not offered by it.
            self.refresh(By::Standing(&standing), &mut booted, told)?;
            return Ok(booted);
        }
        let by = if is_known { By::Configuration(&standing) } else { By::Standing(&standing) };
        let wait_s = self.config.boot.wait_s;
        booted.missing = self.awaited(by)?;
        if !booted.missing.is_empty() {
            // What is true no more is gone first: whoever ends this while it waits must not leave it to engines. That
            // the configuration means what is not there yet is no error before the end.
            match self.refresh(by, &mut booted, told) {
                Ok(()) | Err(Error::Desired(_)) => {}
                Err(error) => return Err(error),
            }
            told(Progress::Waits(format!("waiting up to {wait_s} s for {}", named(&booted.missing))));
            let until = Instant::now() + Duration::from_secs(u64::from(wait_s));
            while !booted.missing.is_empty() && Instant::now() < until {
                std::thread::sleep(PAUSE);
                booted.missing = self.awaited(by)?;
            }
        }
        self.refresh(by, &mut booted, told)?;
        if !is_known {
            return Ok(booted);
        }
        let memory = Memory::read(self.root)?;
        let receipt = Store::new(self.root).receipt()?;
        let planned = self.planned(&memory, &self.without_apt(&memory, &receipt), &receipt)?;
        booted.differs = planned.plan.changes.into_iter().map(|change| change.path).collect();
        Ok(booted)
    }

    /// What is remembered. Where what should be is not known, it is not needed for what is true, and may be why.
    fn remembered(&self, is_known: bool) -> Result<Memory, Error> {
        let memory = Memory::read(self.root);
        Ok(if is_known { memory? } else { memory.unwrap_or_default() })
    }

    fn awaited(&self, by: By<'_>) -> Result<Vec<Awaited>, Error> {
        let mut facts = Facts::read(self.root).remembering(self.remembered(by.is_known())?.chosen);
        if let By::Standing(standing) = by
            && standing.is_true(&facts)
        {
            // Nobody was told of the others; of these udev may still have nodes to go over.
            facts.machine.gpus.retain(Gpu::usable);
        }
        Ok(awaited(self.root, self.config, &facts))
    }

    fn refresh(
        &self,
        by: By<'_>,
        booted: &mut Booted,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        let now = self.now.seconds();
        for stage in [Stage::Shape, Stage::Expose] {
            // The CDI spec tells engines of the modes that nodes have after the first stage.
            let receipt = Store::new(self.root).receipt()?;
            let premises = self.without_apt(&self.remembered(by.is_known())?, &receipt);
            let (standing, wanted) = match by {
                By::Configuration(standing) => (standing, Some(desired(self.config, &premises))),
                By::Standing(standing) => (standing, None),
            };
            if let Some(Ok(wanted)) = wanted {
                let plan = |receipt: &Receipt| {
                    let plan = Plan::make(self.root, &wanted, receipt, Some(stage), false, now)?;
                    Ok(self.of_boot(plan))
                };
                self.bring(&plan, booted, told)?;
                continue;
            }
            let still_true = standing.still_true(&premises.facts);
            let plan = |receipt: &Receipt| {
                Plan::make(self.root, &still_true, &standing.narrowed(receipt), None, false, now)
            };
            self.bring(&plan, booted, told)?;
            return wanted.map_or(Ok(()), |wanted| wanted.map(drop).map_err(Error::from));
        }
        Ok(())
    }

    /// Carries out a plan, made of the receipt. Where that is nothing, nothing is written, not even a lock's file.
    fn bring(
        &self,
        planned: &dyn Fn(&Receipt) -> Result<Plan, reconcile::Error>,
        booted: &mut Booted,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        if planned(&Store::new(self.root).receipt()?)?.changes.is_empty() {
            return Ok(());
        }
        let mut work = Transaction::begin(self.root, told)?.recorded(self.event("boot"));
        let plan = planned(work.receipt())?;
        let owed = work.owed();
        // What is fetched or installed is none of a start's business, so that nothing is settled before the end.
        let Executed { done, failed, effects: _ } = work.execute(&plan, self.now.seconds(), told)?;
        // What starts after this has read what was changed. A debt of an earlier run stays: settling it may start a unit,
        // which would wait for this one.
        let arose = |effect: &Effect| {
            !owed.contains(effect) && plan.changes.iter().any(|change| change.effects.contains(effect))
        };
        let services = Services { restarts: Restarts::Never, ..self.services() };
        for settled in work.run_effects(self.root, &services, arose, told)? {
            booted.effects.retain(|it| it.effect != settled.effect);
            booted.effects.push(settled);
        }
        let changes: Vec<_> =
            plan.changes.iter().filter(|change| done.contains(&change.path)).cloned().collect();
        if let Some(note) = record(&mut work) {
            tracing::warn!("{}", note.text);
        }
        booted.failed.extend(failed);
        booted.changes.extend(changes);
        Ok(())
    }

    /// What of a plan is read by what starts next.
    fn of_boot(&self, mut plan: Plan) -> Plan {
        // Tags without the drop-in that names their file would stand there for nobody.
        let is_named = plan.changes.iter().all(|change| change.path != Path::new(DROP_IN));
        plan.changes.retain(|change| {
            let goes = matches!(change.change, Verb::Remove | Verb::Restore);
            let is_tags = change.path == Path::new(ENV_FILE);
            self.follows(Part::Start, change) && (goes || !is_tags || is_named)
        });
        plan
    }
}

/// Of partitions there may be many: why the first is not there is mostly why none is.
pub(crate) fn named(missing: &[Awaited]) -> String {
    let Some(first) = missing.first() else { return String::new() };
    let why = format!("{}: {}", first.gpu, first.problems.join("; "));
    match missing.len() {
        1 => why,
        count => format!("{count} GPUs, of which {why}"),
    }
}
