//! What happens before engines start: boot publishes the GPUs that are there.

use std::time::{Duration, Instant};

use host::facts::Facts;
use inventory::Gpu;
use reconcile::Progress;

use super::outcome::{Differs, Outcome, Why};
use super::published::PublishedState;
use super::scope::{BOOT, Request};
use super::{Error, Run, State};
use crate::pending_gpus::{PendingGpu, pending_gpus};

/// Between two looks at a machine whose driver is coming up. sysfs reports no changes and KFD's topology has no
/// uevents, so that this polls; a look takes some milliseconds.
const PAUSE: Duration = Duration::from_millis(100);

impl Run<'_> {
    /// Waits for GPUs that are still coming up, as long as the configuration says; gives nodes their group and mode,
    /// and brings the CDI spec, the wrapper's policy and the worker's tags to what the machine is now. It restarts and
    /// installs nothing, and edits no engine's file. Where the machine is not set up it only takes out of a spec that
    /// was left what is true no more. `is_known`: whether there is a configuration.
    ///
    /// # Errors
    /// The desired state is unknown: what was published and is still true stays. Or the receipt cannot be read or
    /// written.
    pub fn boot(&self, is_known: bool, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome, Error> {
        let state = self.known(is_known)?;
        // Read before the first change: a GPU that is not there yet may still come.
        let published = &PublishedState::read(self.root, &state.receipt);
        if !state.is_applied() {
            // An undo that was killed may have left a spec.
            return self.execute(&BOOT, Request::Boot { published, is_known: false }, on_progress);
        }
        let request = Request::Boot { published, is_known };
        let mut missing = self.missing(published, is_known)?;
        let mut first = Outcome::of(&BOOT);
        if !missing.is_empty() {
            // What is true no more goes first: engines must not read it where boot is killed while it waits.
            first = self.execute(&BOOT, request, on_progress)?;
            missing = self.wait(published, is_known, missing, on_progress)?;
        }
        let mut outcome = self.execute(&BOOT, request, on_progress)?;
        if let Some(problem) = outcome.problem.take() {
            return Err(problem.into());
        }
        first.effects.retain(|it| outcome.effects.iter().all(|later| later.effect != it.effect));
        outcome.changes.splice(0..0, first.changes);
        outcome.failed.splice(0..0, first.failed);
        outcome.effects.splice(0..0, first.effects);
        outcome.missing = missing;
        if is_known {
            let request = Request::Configuration { saved: None };
            if let Ok(target) = self.target(&BOOT, &request, State::read(self.root)?)? {
                let rest = self.plan_for(&target, &request, &target.state.receipt, None);
                let differs = rest.changes.into_iter().map(|it| Differs { path: it.path, why: Why::Apply });
                outcome.differs.extend(differs);
            }
        }
        Ok(outcome)
    }

    /// Waits for GPUs that are still coming up, as long as the configuration says, and changes nothing.
    ///
    /// # Errors
    /// What is managed cannot be read.
    pub fn wait_for_gpus(&self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), Error> {
        let published = PublishedState::read(self.root, &self.known(true)?.receipt);
        let missing = self.missing(&published, true)?;
        self.wait(&published, true, missing, on_progress).map(drop)
    }

    /// The GPUs that are still missing in the end.
    fn wait(
        &self,
        published: &PublishedState,
        is_known: bool,
        mut missing: Vec<PendingGpu>,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<PendingGpu>, Error> {
        if missing.is_empty() {
            return Ok(missing);
        }
        let wait_s = self.config.boot.wait_s;
        on_progress(Progress::Waits(format!("waiting up to {wait_s} s for {}", named(&missing))));
        let until = Instant::now() + Duration::from_secs(u64::from(wait_s));
        while !missing.is_empty() && Instant::now() < until {
            std::thread::sleep(PAUSE);
            missing = self.missing(published, is_known)?;
        }
        Ok(missing)
    }

    /// Reads the state. `is_known`: there is a configuration; only then an unreadable memory is an error.
    fn known(&self, is_known: bool) -> Result<State, Error> {
        if is_known { State::read(self.root) } else { State::of_receipt(self.root) }
    }

    fn missing(&self, published: &PublishedState, is_known: bool) -> Result<Vec<PendingGpu>, Error> {
        let mut facts = Facts::read(self.root).remembering(self.known(is_known)?.memory.pinned);
        if !is_known && published.is_true(&facts) {
            // No unusable GPU was published. udev may still have to set the nodes of usable ones.
            facts.inventory.gpus.retain(Gpu::usable);
        }
        Ok(pending_gpus(self.root, self.config, &facts))
    }
}

/// Names the first missing GPU and its problems: a card's partitions are mostly missing for one reason.
pub(crate) fn named(missing: &[PendingGpu]) -> String {
    let Some(first) = missing.first() else { return String::new() };
    let why = format!("{}: {}", first.gpu, first.problems.join("; "));
    match missing.len() {
        1 => why,
        count => format!("{count} GPUs, of which {why}"),
    }
}
