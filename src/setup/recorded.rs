//! What the history is told.

use reconcile::history::Event;
use reconcile::{Digest, Note, Transaction};

use super::Setup;

impl Setup<'_> {
    /// What the history is told of a run.
    pub(super) fn event(&self, command: &str) -> Event {
        Event {
            at: self.now.seconds(),
            command: command.to_owned(),
            caller: self.caller.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_sha256: self.config_sha256(),
            changed: Vec::new(),
            killed: false,
        }
    }

    fn config_sha256(&self) -> String {
        Digest::of(self.config.text().as_bytes()).as_str().to_owned()
    }
}

/// Writes what was changed into the history. That this fails takes nothing back: it is told.
pub(super) fn record(work: &mut Transaction<'_>) -> Option<Note> {
    let error = work.record().err()?;
    let text = format!("the changes are made, and the history lacks them: {error}");
    Some(Note { about: "history".to_owned(), text, problem: true })
}
