//! Packages that stay: what dpkg and apt keep of them beside what is there.

use std::collections::BTreeSet;

use super::install::{Job, came};
use crate::apt;
use crate::apt::dpkg::{Database, Status};
use crate::model::{Came, Ours};

impl Job<'_, '_> {
    /// Keeps what came since `before`. What was to come and is not there, though apt has come to its end, is not ours if
    /// it comes one day.
    pub(super) fn note_came(&mut self, before: &Database, after: &Database) {
        let version = |name: &str| after.there(name).ok().flatten().map(|it| it.version).unwrap_or_default();
        let new =
            after.names().difference(&before.names()).map(|it| came(before, it, &version(it))).collect();
        let Some(ours) = self.ours_mut() else { return };
        ours.add_came(new);
        if let Ours::Package { came, .. } = ours {
            came.retain(|it| after.there(&it.name).ok().is_none_or(|there| there.is_some()));
        }
    }

    /// Of what came with a package and was to go again in a run that was killed: dpkg is told that it stays, and apt for
    /// whose sake it came. apt tells both of them otherwise before it removes anything.
    pub(super) fn keep(&mut self) -> Result<(), String> {
        let came = self.came().iter().map(|it| it.name.as_str());
        let names: BTreeSet<&str> = came.chain([self.name]).collect();
        self.select(names)?;
        self.mark(&BTreeSet::new());
        Ok(())
    }

    /// The same of packages that could not be removed. `automatic`: those that had come for the sake of others.
    pub(super) fn stay(&self, names: &[&str], automatic: &BTreeSet<String>) -> Result<(), String> {
        self.select(names.iter().copied())?;
        let forgotten = self.automatic();
        let is_open = |name: &&str| automatic.contains(*name) && !forgotten.contains(*name);
        self.manager.mark("auto", &names.iter().copied().filter(is_open).collect::<Vec<_>>())
    }

    /// Tells dpkg that these stay, as far as they are there and it has been told otherwise.
    fn select<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), String> {
        let database = Database::read(self.journal.root).map_err(|error| error.to_string())?;
        let is_to_go = |name: &&str| {
            let there = database.there(name).ok().flatten();
            there.is_some_and(|it| it.status != Status::ConfigFiles && it.selection.is_to_go())
        };
        let names: Vec<&str> = names.into_iter().filter(is_to_go).collect();
        self.manager.mark("install", &names)
    }

    /// What came for its sake, and what apt has not noted as such: a run that was killed may end before it does.
    /// `known`: what was there before, and what somebody may have marked otherwise since. What has been noted once
    /// is never marked again.
    pub(super) fn mark(&mut self, known: &BTreeSet<String>) {
        let automatic = self.automatic();
        let is_open = |it: &&Came| !it.noted && !it.asked && it.name != self.name;
        let came = self.came().iter().filter(is_open).map(|it| it.name.as_str());
        let others: Vec<&str> = came.filter(|it| !automatic.contains(*it) && !known.contains(*it)).collect();
        // Where it does not work, undo leaves them and says so.
        self.manager.mark("auto", &others).ok();
        self.note_marks();
    }

    /// Keeps which of those that came apt has noted as such.
    pub(super) fn note_marks(&mut self) {
        let automatic = self.automatic();
        if let Some(Ours::Package { came, .. }) = self.ours_mut() {
            came.iter_mut().for_each(|it| it.noted |= automatic.contains(&it.name));
        }
    }

    /// What the program of an installer asked for by name stands in apt's notes as if somebody had installed it by hand,
    /// and is ours all the same.
    pub(super) fn note_asked(&mut self) {
        let automatic = self.automatic();
        let Some(Ours::Package { came, .. }) = self.ours_mut() else { return };
        for it in came.iter_mut().filter(|it| !it.noted) {
            it.asked = !automatic.contains(&it.name);
            it.noted = true;
        }
    }

    pub(super) fn automatic(&self) -> BTreeSet<String> {
        apt::automatic(self.journal.root).unwrap_or_default()
    }
}
