//! What changes make necessary: once, after all of them, only what is owed.

use root::Root;
use serde::Serialize;

use crate::services::{Came, Services};
use crate::work::Work;
use crate::{Effect, Error, Progress};

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settled {
    #[serde(flatten)]
    pub effect: Effect,
    pub outcome: Outcome,
    /// In a sentence.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    /// There is nothing to do it to, or nothing that could.
    Skipped,
    /// It stays owed.
    Pending,
    Failed,
}

impl Work<'_> {
    /// Does what is owed and `only` says, as far as `services` may; what is not done stays owed and is told by status.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn settle(
        &mut self,
        root: &Root,
        services: &Services<'_>,
        only: impl Fn(&Effect) -> bool,
    ) -> Result<Vec<Settled>, Error> {
        self.settle_told(root, services, only, &mut |_| {})
    }

    /// The same; `told` hears of each effect before it is brought about, and of what is waited for.
    ///
    /// # Errors
    /// As [`Work::settle`].
    pub fn settle_told(
        &mut self,
        root: &Root,
        services: &Services<'_>,
        only: impl Fn(&Effect) -> bool,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Settled>, Error> {
        let mut settled: Vec<Settled> = Vec::new();
        let failed = self.failed();
        let is_due = |effect: &Effect| only(effect) && !failed.contains(effect);
        for pending in self.receipt().pending.clone().into_iter().filter(|it| is_due(&it.effect)) {
            tell(Progress::Settles(&pending.effect));
            let mut came = match stale_units(&settled, &pending.effect) {
                Some(text) => Came::Ended(Outcome::Pending, text),
                None => services.run(root, &pending),
            };
            // Kept before the signal and after it: whoever ends this while it waits must not leave a unit that has
            // ended for nobody to start.
            while let Came::Tell(told) = came {
                for it in self.receipt_mut().pending.iter_mut().filter(|it| it.effect == pending.effect) {
                    it.told = Some(told.clone());
                }
                self.save()?;
                if let Some(text) = services.waits(&pending.effect, &told) {
                    tell(Progress::Waits(text));
                }
                came = services.drain(&pending.effect, told);
            }
            let Came::Ended(outcome, text) = came else { continue };
            let receipt = self.receipt_mut();
            if matches!(outcome, Outcome::Done | Outcome::Skipped) {
                receipt.pending.retain(|it| it.effect != pending.effect);
            }
            for it in receipt.pending.iter_mut().filter(|it| it.effect == pending.effect) {
                // It was not told: when it is stopped, that is somebody's decision.
                it.told = it.told.take().filter(|told| told.sent);
            }
            settled.push(Settled { effect: pending.effect, outcome, text });
            self.save()?;
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
