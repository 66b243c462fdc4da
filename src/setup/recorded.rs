//! What the history is told.

use reconcile::history::Event;
use reconcile::{Digest, Note, Work};

use super::Setup;
use crate::config;
use crate::memory::{Followed, Memory};

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

    /// What is remembered of the configuration.
    pub(super) fn followed(&self) -> Option<Followed> {
        Followed::of(self.root, self.config)
    }

    /// Why this configuration is not the daemon's to bring about: the machine was last set up by one of another place,
    /// which may withhold what this one gives.
    pub(super) fn other_was_applied(&self, remembered: &Memory) -> Option<String> {
        let (last, now) = (remembered.config.as_ref(), self.followed());
        let place = |of: Option<&Followed>| of.and_then(|it| it.other.clone());
        let sum = |of: Option<&Followed>| of.map(|it| it.sha256.clone());
        if place(last) == place(now.as_ref()) || sum(last) == sum(now.as_ref()) {
            return None;
        }
        let own = self.root.shown(config::PATH);
        let by = place(last).unwrap_or(own);
        let here = self.config.path().display();
        Some(format!(
            "the last apply was by {}, and not by {here}: nothing is changed until they say the same, or until an apply \
             by {here}",
            by.display()
        ))
    }
}

/// Writes what was changed into the history. That this fails takes nothing back: it is told.
pub(super) fn record(work: &mut Work<'_>) -> Option<Note> {
    let error = work.record().err()?;
    let text = format!("the changes are made, and the history lacks them: {error}");
    Some(Note { about: "history".to_owned(), text, problem: true })
}
