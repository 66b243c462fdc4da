//! What came with a package, as the receipt keeps it.

use std::path::Path;

use crate::Came;
use crate::dpkg::{Database, Status};
use crate::receipt::{Ours, Receipt};

pub(super) fn came(before: &Database, name: &str, version: &str) -> Came {
    let had = before.there(name).ok().flatten();
    let had_configuration = had.is_some_and(|it| it.status == Status::ConfigFiles);
    Came { name: name.to_owned(), version: version.to_owned(), had_configuration, asked: false, noted: false }
}

pub(super) fn came_with(before: &Database, after: &Database, name: &str) -> Came {
    let version = after.there(name).ok().flatten().map(|it| it.version).unwrap_or_default();
    came(before, name, &version)
}

impl Receipt {
    /// What came with a package, as far as it is ours.
    pub(super) fn came(&self, path: &Path) -> &[Came] {
        match self.entry(path).map(|entry| &entry.ours) {
            Some(Ours::Package { came, .. }) => came,
            _ => &[],
        }
    }

    pub(super) fn came_mut(&mut self, path: &Path) -> &mut [Came] {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        match entry.map(|entry| &mut entry.ours) {
            Some(Ours::Package { came, .. }) => came,
            _ => &mut [],
        }
    }

    /// What was to come and is not there, though apt has come to its end, is not ours if it comes one day.
    pub(super) fn forget_missing(&mut self, path: &Path, after: &Database) {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        if let Some(Ours::Package { came, .. }) = entry.map(|entry| &mut entry.ours) {
            came.retain(|it| after.there(&it.name).ok().is_none_or(|there| there.is_some()));
        }
    }

    /// Adds to what came with a package; one that is known is in this version now.
    pub(super) fn add_came(&mut self, path: &Path, new: Vec<Came>) {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        let Some(Ours::Package { came, .. }) = entry.map(|entry| &mut entry.ours) else { return };
        for it in new {
            match came.iter_mut().find(|known| known.name == it.name) {
                Some(known) => known.version = it.version,
                None => came.push(it),
            }
        }
    }
}
