//! The last changes that rocworker made, as `rocworker history` has them.

use inventory::published::Change;
use reconcile::history::{self, Changed, Event};
use root::{Identity, Root};

use super::short;

/// At most this many runs are published.
const MOST: usize = 20;

/// At most this many paths of a run are named.
const MOST_NAMED: usize = 3;

/// The history has up to a thousand runs: it is read again when it is another file.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The changes that were read last, and the identity of the history file that had them.
    last: Option<(Identity, Vec<Change>)>,
}

impl Changes {
    /// The newest first; `None` where the history cannot be read, which the next change reports.
    pub(super) fn read(&mut self, root: &Root) -> Option<Vec<Change>> {
        let identity = root.identity(history::PATH).ok();
        if let Some((_, last)) = self.last.as_ref().filter(|(of, _)| Some(of) == identity.as_ref()) {
            return Some(last.clone());
        }
        let events = history::read(root).ok()?;
        let last: Vec<Change> = events.iter().rev().take(MOST).map(change).collect();
        self.last = identity.map(|identity| (identity, last.clone()));
        Some(last)
    }
}

/// A run of the history as it is published: without its caller and configuration, which only the machine's users may
/// see.
fn change(event: &Event) -> Change {
    let named: Vec<String> = event.changed.iter().take(MOST_NAMED).map(in_words).collect();
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

fn in_words(changed: &Changed) -> String {
    let (_, done) = changed.change.words(&changed.path);
    format!("{done} {}", short(&changed.path))
}

#[cfg(test)]
mod tests {
    use reconcile::{Resource, Verb};

    use super::*;

    fn path(number: usize) -> Resource {
        Resource::from(format!("/etc/{number}"))
    }

    fn event(changed: &[(Verb, Resource)]) -> Event {
        let changed = changed.iter().map(|(change, path)| Changed { path: path.clone(), change: *change });
        Event {
            at: 1,
            command: "apply".to_owned(),
            caller: "alice by sudo".to_owned(),
            version: "1".to_owned(),
            config_sha256: String::new(),
            changed: changed.collect(),
            killed: false,
        }
    }

    #[test]
    fn a_change_is_called_by_what_it_does_to_what() {
        let package = || Resource::Package("amdgpu-dkms".to_owned());
        let module = || Resource::Module("amdgpu".to_owned());
        for (verb, of, expected) in [
            (Verb::Create, path(0), "Created /etc/0."),
            (Verb::Replace, path(0), "Replaced /etc/0."),
            (Verb::Edit, path(0), "Edited /etc/0."),
            (Verb::Repair, path(0), "Repaired /etc/0."),
            (Verb::Permissions, path(0), "Set group and mode of /etc/0."),
            (Verb::Restore, path(0), "Restored /etc/0."),
            (Verb::Remove, path(0), "Removed /etc/0."),
            (Verb::Create, package(), "Installed package:amdgpu-dkms."),
            (Verb::Remove, package(), "Removed package:amdgpu-dkms."),
            (Verb::Create, module(), "Loaded module:amdgpu."),
            (Verb::Remove, module(), "Unloaded module:amdgpu."),
        ] {
            assert_eq!(change(&event(&[(verb, of)])).text, expected);
        }
    }

    #[test]
    fn three_changes_are_named_the_others_counted_and_nobody_who_made_them() {
        let created: Vec<(Verb, Resource)> = (0..5).map(|number| (Verb::Create, path(number))).collect();
        let three = "Created /etc/0, created /etc/1, created /etc/2";
        for (changed, killed, expected) in [
            (&created[..3], false, format!("{three}.")),
            (&created[..], false, format!("{three}, and 2 more.")),
            (&created[..4], true, format!("{three}, and 1 more. The run was killed.")),
        ] {
            let change = change(&Event { killed, ..event(changed) });
            assert_eq!(change, Change { at: 1, command: "apply".to_owned(), text: expected });
        }
    }
}
