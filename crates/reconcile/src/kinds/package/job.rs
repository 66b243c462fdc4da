//! A change of packages at work: what the receipt, dpkg and apt keep of it.

use std::collections::BTreeSet;

use crate::apt::dpkg::{Database, Status};
use crate::apt::{self, PackageManager, Step};
use crate::error::Error;
use crate::model::{Came, Change, Managed, State};
use crate::receipt::Journal;

/// A change of packages at work.
pub(super) struct Job<'j, 'r> {
    pub(super) journal: &'j mut Journal<'r>,
    pub(super) manager: PackageManager,
    pub(super) change: &'j Change,
    /// The name of the changed package.
    pub(super) name: &'j str,
    pub(super) now: u64,
    pub(super) hear: &'j mut dyn FnMut(Step),
}

impl Job<'_, '_> {
    /// Keeps what is about to be done.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        match (&self.change.entry, self.managed_mut()) {
            (Some(entry), _) => self.journal.receipt_mut().put((**entry).clone()),
            (None, Some(Managed::Package { begun, .. })) => *begun = true,
            (None, _) => {}
        }
        self.journal.begin(self.change, self.now)
    }

    /// Whether a run has begun with the package and has not come to its end.
    pub(super) fn is_begun(&self) -> bool {
        self.journal.receipt.entry(&self.change.path).is_some_and(|entry| entry.managed.is_begun())
    }

    /// The packages that have come with this one so far.
    pub(super) fn came(&self) -> &[Came] {
        self.journal.receipt.entry(&self.change.path).map_or(&[], |entry| entry.managed.came())
    }

    pub(super) fn managed_mut(&mut self) -> Option<&mut Managed> {
        self.journal.receipt_mut().entry_mut(&self.change.path).map(|entry| &mut entry.managed)
    }

    pub(super) fn came_mut(&mut self) -> Option<&mut Vec<Came>> {
        if let Managed::Package { came, .. } = self.managed_mut()? { Some(came) } else { None }
    }

    /// Names that apt may replace by other versions: rocworker installed them.
    pub(super) fn managed(&self) -> BTreeSet<String> {
        let came = self.journal.receipt.entries.iter().flat_map(|entry| entry.managed.came());
        let mut managed: BTreeSet<String> = came.map(|it| it.name.clone()).collect();
        // A package that is there in part is installed again.
        if matches!(self.change.from, State::Package { status, .. } if status != Status::Installed) {
            managed.insert(self.name.to_owned());
        }
        managed
    }

    /// Keeps what came since `before`. What was to come and is not there, though apt has come to its end, is not
    /// managed if it comes one day.
    pub(super) fn note_came(&mut self, before: &Database, after: &Database) {
        let version = |name: &str| after.there(name).map(|it| it.version.clone()).unwrap_or_default();
        let (known, there) = (before.names(), after.names());
        let new = there.difference(&known).map(|it| came(before, it, &version(it))).collect();
        if let Some(managed) = self.managed_mut() {
            managed.add_came(new);
        }
        if let Some(came) = self.came_mut() {
            came.retain(|it| after.there(&it.name).is_some());
        }
    }

    /// Keeps the packages that came with this one and that a killed run was to remove: marks them for dpkg as
    /// staying, and for apt as automatic. apt changes both marks before it removes anything.
    pub(super) fn keep(&mut self) -> Result<(), String> {
        let came = self.came().iter().map(|it| it.name.as_str());
        let names: BTreeSet<&str> = came.chain([self.name]).collect();
        self.select(&names.into_iter().collect::<Vec<_>>())?;
        self.mark(&BTreeSet::new());
        Ok(())
    }

    /// Marks packages that could not be removed for dpkg as staying. `automatic`: packages that apt had noted as
    /// installed for the sake of others, which it notes so again.
    pub(super) fn stay(&self, names: &[&str], automatic: &BTreeSet<String>) -> Result<(), String> {
        self.select(names)?;
        let forgotten = self.automatic();
        let is_open = |name: &&str| automatic.contains(*name) && !forgotten.contains(*name);
        self.manager.mark("auto", &names.iter().copied().filter(is_open).collect::<Vec<_>>())
    }

    /// Marks these for dpkg as staying, as far as they are there and are marked as going.
    fn select(&self, names: &[&str]) -> Result<(), String> {
        let database = Database::read(self.journal.root).map_err(|error| error.to_string())?;
        let is_to_go = |name: &&str| {
            database.there(name).is_some_and(|it| it.status != Status::ConfigFiles && it.is_to_go)
        };
        let names: Vec<&str> = names.iter().copied().filter(is_to_go).collect();
        self.manager.mark("install", &names)
    }

    /// Marks the packages that came for this one's sake as automatic where apt has not: a killed run may have
    /// ended before that. `known`: packages that were there before, or that a person may have marked since. A
    /// package that was noted once is never marked again.
    pub(super) fn mark(&mut self, known: &BTreeSet<String>) {
        let automatic = self.automatic();
        let is_open = |it: &&Came| !it.noted && !it.asked && it.name != self.name;
        let came = self.came().iter().filter(is_open).map(|it| it.name.as_str());
        let others: Vec<&str> = came.filter(|it| !automatic.contains(*it) && !known.contains(*it)).collect();
        // If apt cannot mark the packages, undo leaves them and says so.
        self.manager.mark("auto", &others).ok();
        self.note_marks();
    }

    /// Keeps which of those that came apt has noted as such.
    pub(super) fn note_marks(&mut self) {
        let automatic = self.automatic();
        let came = self.came_mut().into_iter().flatten();
        came.for_each(|it| it.noted |= automatic.contains(&it.name));
    }

    /// Notes the packages for which an installer's program asked by name: apt marks them as if a person had
    /// installed them. rocworker still manages them.
    pub(super) fn note_asked(&mut self) {
        let automatic = self.automatic();
        for it in self.came_mut().into_iter().flatten().filter(|it| !it.noted) {
            (it.asked, it.noted) = (!automatic.contains(&it.name), true);
        }
    }

    pub(super) fn automatic(&self) -> BTreeSet<String> {
        let root = self.journal.root;
        Database::read(root).and_then(|database| apt::automatic(root, &database)).unwrap_or_default()
    }
}

pub(super) fn came(before: &Database, name: &str, version: &str) -> Came {
    let had_configuration = before.there(name).is_some_and(|it| it.status == Status::ConfigFiles);
    Came { name: name.to_owned(), version: version.to_owned(), had_configuration, asked: false, noted: false }
}
