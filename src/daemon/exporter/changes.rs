//! The last changes that rocworker made, as `rocworker history` has them.

use reconcile::Verb;
use reconcile::history::{self, Changed, Event};
use root::{Identity, Root};
use telemetry::published::Change;

use super::short;

/// So many runs are published.
const MOST: usize = 20;

/// So many paths of a run are named.
const MOST_NAMED: usize = 3;

/// The history has up to a thousand runs: it is read again when it is another file.
#[derive(Debug, Default)]
pub(super) struct Changes {
    read: Option<Identity>,
    last: Vec<Change>,
}

impl Changes {
    /// The newest first; none where the history cannot be read, which the next change reports.
    pub(super) fn read(&mut self, root: &Root) -> Vec<Change> {
        let identity = root.identity(history::PATH).ok();
        if identity.is_none() || identity != self.read {
            let events = history::read(root).unwrap_or_default();
            self.last = events.iter().rev().take(MOST).map(change).collect();
            self.read = identity;
        }
        self.last.clone()
    }
}

/// Neither who called nor by which configuration: that is for the machine's own users.
fn change(event: &Event) -> Change {
    let named: Vec<String> = event.changed.iter().take(MOST_NAMED).map(said).collect();
    let mut text = with_capital(&named.join(", "));
    match event.changed.len().saturating_sub(MOST_NAMED) {
        0 => {}
        more => text.push_str(&format!(", and {more} more")),
    }
    text.push('.');
    if event.killed {
        text.push_str(" The run was killed.");
    }
    Change { at: event.at, command: event.command.clone(), text }
}

fn with_capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn said(changed: &Changed) -> String {
    let done = match changed.change {
        Verb::Create => "created",
        Verb::Replace => "replaced",
        Verb::Edit => "edited",
        Verb::Repair => "repaired",
        Verb::Permissions => "set group and mode of",
        Verb::Restore => "restored",
        Verb::Remove => "removed",
    };
    format!("{done} {}", short(&changed.path))
}
