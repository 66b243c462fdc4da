//! The receipt of a run that is at work: on disk before each change, and in memory until the next save after it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use root::Root;

use super::history::{Changed, Event};
use super::{Receipt, Replacing, Store, place};
use crate::apt::{PackageManager, Simulated, dpkg};
use crate::error::Error;
use crate::model::{Change, Effect, Entry, Resource, Settled, State, Verb};

#[derive(Debug)]
pub(crate) struct Journal<'a> {
    pub(crate) root: &'a Root,
    pub(crate) store: Store<'a>,
    pub(crate) receipt: Receipt,
    /// Whether the receipt in memory differs from the one on disk.
    pub(crate) unsaved: bool,
    /// Installs packages; `None`: this run may not.
    pub(crate) manager: Option<PackageManager>,
    /// What `apt-get install` is asked for all packages of this run.
    pub(crate) packages: Vec<String>,
    /// apt's answers for all that comes (`false`) and all that goes (`true`). `None`: apt would do other than that, or more.
    pub(crate) simulated: BTreeMap<bool, Option<Simulated>>,
    /// Effects that had to run before a change of this run, with their results.
    pub(crate) settled: Vec<Settled>,
    /// The changes that this run has made so far.
    pub(crate) made: Vec<Changed>,
    /// This run's event for the history, and how many earlier runs the history lacks.
    pub(crate) run: Option<(Event, usize)>,
}

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The receipt cannot be kept: no other change is made either.
    Receipt(Error),
    /// A sentence on one change that failed; the other changes are made.
    Change(String),
}

impl Failure {
    /// Adds `more` to the sentence of a failed change.
    pub(crate) fn with(self, more: Option<&str>) -> Self {
        match (self, more) {
            (Self::Change(text), Some(more)) => Self::Change(format!("{text}; {more}")),
            (failure, _) => failure,
        }
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        matches!(self, Self::Change(sentence) if sentence.contains(text))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Receipt(error)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Change(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Change(text.to_owned())
    }
}

impl From<dpkg::Error> for Failure {
    fn from(error: dpkg::Error) -> Self {
        Self::Change(error.to_string())
    }
}

impl From<root::Error> for Failure {
    fn from(error: root::Error) -> Self {
        Self::Change(error.to_string())
    }
}

impl<'a> Journal<'a> {
    pub(crate) fn new(root: &'a Root, store: Store<'a>, receipt: Receipt) -> Self {
        let (packages, settled, made) = (Vec::new(), Vec::new(), Vec::new());
        let (unsaved, manager, simulated, run) = (false, None, BTreeMap::new(), None);
        Self { root, store, receipt, unsaved, manager, packages, simulated, settled, made, run }
    }

    /// The package manager, where this run may use it. `what`: what a run beneath a Root other than `/`
    /// leaves out, for the message.
    pub(crate) fn manager(&self, what: &str) -> Result<PackageManager, String> {
        self.manager.clone().ok_or_else(|| format!("{what} on the running machine only"))
    }

    pub(crate) fn receipt_mut(&mut self) -> &mut Receipt {
        self.unsaved = true;
        &mut self.receipt
    }

    /// Writes the receipt to disk if it changed.
    pub(crate) fn save(&mut self) -> Result<(), Error> {
        if self.unsaved {
            self.store.save(&self.receipt)?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// Keeps what is about to be done.
    pub(crate) fn begin(&mut self, change: &Change, now: u64) -> Result<(), Error> {
        if let Some(entry) = &change.entry {
            // apt's lists of the repository that the source named until now go.
            let held = self.receipt.entry(&change.path).map(|held| held.effects.clone()).unwrap_or_default();
            let is_read = |effect: &Effect| matches!(effect, Effect::AptUpdate { .. });
            let held: Vec<Effect> = held.into_iter().filter(is_read).collect();
            self.receipt.add_pending(&held, self.root, now);
            let mount = place(&change.path).map(|place| self.root.mount_of(place));
            self.receipt.put(Entry { mount, ..(**entry).clone() });
        }
        self.receipt.add_pending(&change.effects, self.root, now);
        self.receipt.writing = Some(change.path.clone());
        self.receipt.replacing = Some(Replacing { from: change.from.clone(), to: change.to.clone() });
        self.note_run(Some(change));
        self.unsaved = true;
        self.save()
    }

    /// Notes in memory that it is done; the next save writes it.
    pub(crate) fn end(&mut self, change: &Change, now: u64) {
        // A unit that restarted between the plan and the write has not read this change: the effect begins
        // now.
        self.receipt.add_pending(&change.effects, self.root, clock().max(now));
        if change.entry.is_none() {
            self.drop_entry(&change.path);
        } else if let Some(entry) = self.receipt.entry_mut(&change.path) {
            entry.managed.forget_older();
        }
        self.unsaved = true;
    }

    pub(crate) fn drop_entry(&mut self, path: &Resource) {
        self.receipt_mut().entries.retain(|entry| entry.path != *path);
    }

    /// Keeps the receipt as it was before a change of which nothing was done. Folders on the way may be there.
    pub(crate) fn roll_back(&mut self, until_now: Receipt, change: &Change) {
        let folders = std::mem::take(&mut self.receipt.folders);
        self.receipt = Receipt { folders, writing: Some(change.path.clone()), ..until_now };
        self.unsaved = true;
    }

    /// Notes what this run has changed, and what it is about to; kept with the receipt's next write.
    pub(crate) fn note_run(&mut self, about_to: Option<&Change>) {
        let Some((event, before)) = &self.run else { return };
        let mut event = event.clone();
        event.changed = self.made.clone();
        event.changed.extend(about_to.map(|it| Changed { path: it.path.clone(), change: it.change }));
        self.receipt.unrecorded.truncate(*before);
        if !event.changed.is_empty() {
            self.receipt.unrecorded.push(event);
        }
    }
}

impl Receipt {
    /// Settles the entry of a path that a killed run was writing: the path's state shows whether the run had
    /// come to it.
    pub(crate) fn settle_on(&mut self, path: &Resource, state: &State) {
        let Some(entry) = self.entry_mut(path) else { return };
        let is_back = entry.before == *state;
        let is_newest = entry.managed.states().first().map(|newest| newest == state);
        if is_newest == Some(true) {
            entry.managed.forget_older();
        }
        // A change that it has not come to is none of that run's.
        let Some(event) = self.unrecorded.last_mut() else { return };
        let Some(last) = event.changed.last().filter(|last| last.path == *path) else { return };
        let is_made = match last.change {
            Verb::Remove | Verb::Restore => is_back,
            // For packages, modules and nodes, more than one path would have to be looked at: the change
            // counts as made.
            _ => is_newest.unwrap_or(true),
        };
        if !is_made {
            event.changed.pop();
        }
        self.unrecorded.retain(|event| !event.changed.is_empty());
    }
}

/// Seconds since 1970.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
