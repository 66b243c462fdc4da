//! What the history is told of a run: kept in the receipt while the run is at work, so that one that is killed is told of
//! by the next.

use std::path::Path;

use crate::history::{self, Changed, Event};
use crate::plan::{Change, Verb};
use crate::receipt::Receipt;
use crate::{Error, State, Work};

/// The run that is at work.
#[derive(Debug)]
pub(crate) struct Run {
    /// What is known of it before it begins.
    event: Event,
    /// How many runs before it the history lacks.
    before: usize,
}

impl Work<'_> {
    /// The same as a run of which the history is told: `event` says who runs what, its `changed` is not looked at.
    #[must_use]
    pub fn recorded(mut self, event: Event) -> Self {
        for killed in &mut self.receipt_kept().unrecorded {
            killed.killed = true;
        }
        let before = self.receipt().unrecorded.len();
        *self.run_mut() = Some(Run { event, before });
        self
    }

    /// Notes what this run has changed, and what it is about to; kept with the receipt's next write.
    pub(crate) fn note_run(&mut self, about_to: Option<&Change>) {
        let Some(Run { event, before }) = self.run_mut() else { return };
        let (mut event, before) = (event.clone(), *before);
        event.changed = self.made().to_vec();
        event.changed.extend(about_to.map(|it| Changed { path: it.path.clone(), change: it.change }));
        let unrecorded = &mut self.receipt_kept().unrecorded;
        unrecorded.truncate(before);
        if !event.changed.is_empty() {
            unrecorded.push(event);
        }
    }

    /// Writes into the history what this run has changed, and what earlier ones have that were killed.
    ///
    /// # Errors
    /// When the history or the receipt cannot be written; the next run tries it again.
    pub fn record(&mut self) -> Result<(), Error> {
        // What this run began and could not do is none of its changes.
        self.note_run(None);
        if self.receipt().unrecorded.is_empty() {
            return Ok(());
        }
        history::add(self.root(), &self.receipt().unrecorded)?;
        self.receipt_mut().unrecorded.clear();
        self.save()
    }
}

/// Of a path that a killed run was writing: a change that it has not come to is none.
pub(crate) fn settle_on(receipt: &mut Receipt, path: &Path, state: &State) {
    let Some(entry) = receipt.entry(path) else { return };
    let is_back = entry.before == *state;
    let is_ours = entry.ours.states().first().map(|ours| ours == state);
    let Some(event) = receipt.unrecorded.last_mut() else { return };
    let Some(last) = event.changed.last().filter(|last| last.path == path) else { return };
    let is_made = match last.change {
        Verb::Remove | Verb::Restore => is_back,
        // Of packages, modules and nodes only a look at more than one path would tell: the run was at it.
        _ => is_ours.unwrap_or(true),
    };
    if !is_made {
        event.changed.pop();
    }
    receipt.unrecorded.retain(|event| !event.changed.is_empty());
}
