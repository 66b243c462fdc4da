//! Packages that stay: what dpkg and apt keep of them beside what is there.

use std::collections::BTreeSet;

use super::Made;
use crate::apt::{self, Hands};
use crate::dpkg::{Database, Status};
use crate::plan::Change;
use crate::work::Work;
use crate::{Came, package};

impl Work<'_> {
    /// Of what came with a package and was to go again in a run that was killed: dpkg is told that it stays, and apt for
    /// whose sake it came. apt tells both of them otherwise before it removes anything.
    pub(super) fn keep(&mut self, hands: &Hands, change: &Change) -> Made {
        let came = self.receipt().came(&change.path).iter().map(|it| it.name.as_str());
        let names: BTreeSet<&str> = came.chain(package::named(&change.path)).collect();
        self.select(hands, names)?;
        self.mark(hands, change, &BTreeSet::new());
        Ok(())
    }

    /// The same of packages that could not be removed. `automatic`: those that had come for the sake of others.
    pub(super) fn stay(&self, hands: &Hands, names: &[&str], automatic: &BTreeSet<String>) -> Made {
        self.select(hands, names.iter().copied())?;
        let forgotten = apt::automatic(self.root()).unwrap_or_default();
        let is_open = |name: &&str| automatic.contains(*name) && !forgotten.contains(*name);
        hands.mark_automatic(&names.iter().copied().filter(is_open).collect::<Vec<_>>())
    }

    /// Tells dpkg that these stay, as far as they are there and it has been told otherwise.
    pub(super) fn select<'n>(&self, hands: &Hands, names: impl IntoIterator<Item = &'n str>) -> Made {
        let database = Database::read(self.root()).map_err(|error| error.to_string())?;
        let is_to_go = |name: &&str| {
            let there = database.there(name).ok().flatten();
            there.is_some_and(|it| it.status != Status::ConfigFiles && it.selection.is_to_go())
        };
        let names: Vec<&str> = names.into_iter().filter(is_to_go).collect();
        hands.select(&names)
    }

    /// What came for its sake, and what apt has not noted as such: a run that was killed may end before it does.
    /// `known`: what was there before, and what somebody may have marked otherwise since. What has been noted once
    /// is never marked again.
    pub(super) fn mark(&mut self, hands: &Hands, change: &Change, known: &BTreeSet<String>) {
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        let itself = package::named(&change.path);
        let is_open = |it: &&Came| !it.noted && !it.asked && itself != Some(it.name.as_str());
        let came = self.receipt().came(&change.path).iter().filter(is_open).map(|it| it.name.as_str());
        let others: Vec<&str> = came.filter(|it| !automatic.contains(*it) && !known.contains(*it)).collect();
        // Where it does not work, undo leaves them and says so.
        hands.mark_automatic(&others).ok();
        self.note_marks(change);
    }

    /// Keeps which of those that came apt has noted as such.
    pub(super) fn note_marks(&mut self, change: &Change) {
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        for it in self.receipt_mut().came_mut(&change.path) {
            it.noted |= automatic.contains(&it.name);
        }
    }
}
