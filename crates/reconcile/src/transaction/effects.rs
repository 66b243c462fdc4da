//! Runs the effects of changes: once, after all of them, and only those that are pending.

use root::Root;

use super::Transaction;
use crate::effects::{Came, Services};
use crate::error::Error;
use crate::model::{Effect, Outcome, Progress, Settled};

impl Transaction<'_> {
    /// Runs the effects that are pending and that `only` names, as far as `services` may. What is not done stays pending
    /// and `status` shows it. `on_progress` is called before each effect runs, and before each wait.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn run_effects(
        &mut self,
        root: &Root,
        services: &Services<'_>,
        only: impl Fn(&Effect) -> bool,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Settled>, Error> {
        let mut settled: Vec<Settled> = Vec::new();
        // An effect that this run tried in vain is not tried again at its end.
        let tried = self.journal.settled.iter().filter(|it| it.outcome == Outcome::Failed);
        let failed: Vec<Effect> = tried.map(|it| it.effect.clone()).collect();
        let is_due = |effect: &Effect| only(effect) && !failed.contains(effect);
        for pending in self.journal.receipt.pending.clone().into_iter().filter(|it| is_due(&it.effect)) {
            // Beneath another root than / each effect is skipped: a log that named it would read as if it were done here.
            if services.programs.is_some() {
                on_progress(Progress::Settles(&pending.effect));
            }
            let mut came = match stale_units(&settled, &pending.effect) {
                Some(text) => Ok(Came::Ended(Outcome::Pending, text)),
                None => services.run(root, &pending),
            };
            // Kept before the signal and after it: whoever ends this while it waits must not leave a unit that has
            // ended and that no run starts.
            while let Ok(Came::Drain(draining)) = came {
                if let Some(it) = self.journal.receipt_mut().pending_mut(&pending.effect) {
                    it.draining = Some(draining.clone());
                }
                self.journal.save()?;
                if let Some(text) = services.waits(&pending.effect, &draining) {
                    on_progress(Progress::Waits(text));
                }
                came = services.drain(&pending.effect, draining);
            }
            let (outcome, text) = match came {
                Ok(Came::Ended(outcome, text)) => (outcome, text),
                Ok(Came::Drain(_)) => continue,
                Err(text) => (Outcome::Failed, text),
            };
            let receipt = self.journal.receipt_mut();
            if matches!(outcome, Outcome::Done | Outcome::Skipped) {
                receipt.pending.retain(|it| it.effect != pending.effect);
            }
            if let Some(it) = receipt.pending_mut(&pending.effect) {
                // A unit that got no signal and is stopped was stopped by a person.
                it.draining = it.draining.take().filter(|draining| draining.sent);
            }
            settled.push(Settled { effect: pending.effect, outcome, text });
            self.journal.save()?;
        }
        Ok(settled)
    }
}

/// Why a unit is not touched now: systemd has not read what it would begin anew with.
fn stale_units(settled: &[Settled], effect: &Effect) -> Option<String> {
    let failed = settled.iter().any(|it| it.effect == Effect::SystemdReload && it.outcome == Outcome::Failed);
    match effect {
        Effect::Start { unit }
        | Effect::Reload { unit }
        | Effect::Restart { unit, .. }
        | Effect::NextStart { unit, .. }
            if failed =>
        {
            Some(format!("{unit} is left as it is until systemd has read its units again"))
        }
        _ => None,
    }
}
