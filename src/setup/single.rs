use reconcile::{Action, Finding, Plan, Store, Transaction};
use root::Written;

use super::recorded::record;
use super::{Error, Setup};

/// One thing that was asked for by itself cannot be brought about.
#[derive(Debug, thiserror::Error)]
#[error("{path} is not written: {text}")]
pub struct Refused {
    pub path: String,
    pub text: String,
}

impl Setup<'_> {
    /// Brings one thing about that a command asks for by itself, and nothing else: it is ours from then on, so that
    /// apply keeps it and undo takes it back.
    ///
    /// # Errors
    /// When it cannot be brought about, or the receipt cannot be kept.
    pub fn bring_about(&self, command: &str, action: &Action) -> Result<Written, Error> {
        let now = self.now.seconds();
        let unlocked =
            Plan::of(self.root, [action], &Store::new(self.root).receipt()?.forgiving(&action.path), now)?;
        self.refuse(&unlocked)?;
        if unlocked.is_empty() {
            return Ok(Written::Unchanged);
        }
        let mut work = Transaction::begin(self.root, &mut |_| {})?.recorded(self.event(command));
        let plan = Plan::of(self.root, [action], &work.receipt().clone().forgiving(&action.path), now)?;
        self.refuse(&plan)?;
        let carried = work.execute(&plan, now, &mut |_| {})?;
        if let Some(failed) = carried.failed.first() {
            return Err(self.refused(failed).into());
        }
        if let Some(note) = record(&mut work) {
            tracing::warn!("{}", note.text);
        }
        Ok(if plan.changes.is_empty() { Written::Unchanged } else { Written::Changed })
    }

    fn refuse(&self, plan: &Plan) -> Result<(), Refused> {
        let finding = plan.blocked.first();
        finding.map_or(Ok(()), |finding| Err(self.refused(finding)))
    }

    fn refused(&self, finding: &Finding) -> Refused {
        Refused { path: finding.path.shown(self.root), text: finding.text.clone() }
    }
}
