//! The machine as one plan sees it.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use root::Root;

use crate::apt;
use crate::dpkg::{self, Database};
use crate::package;
use crate::state::{Found, State, Unseen};

/// A Root, and what dpkg and apt know beneath it: a database of megabytes, which is read when it is first asked for and
/// then never again, however many packages a plan is about.
pub(crate) struct Observed<'a> {
    pub(crate) root: &'a Root,
    database: OnceCell<Database>,
    automatic: OnceCell<BTreeSet<String>>,
}

impl<'a> Observed<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, database: OnceCell::new(), automatic: OnceCell::new() }
    }

    /// As [`Found::look`].
    pub(crate) fn look(&self, path: &Path) -> Result<Found, Unseen> {
        match package::named(path) {
            Some(name) => Ok(Found::Else(State::of_package(self.database()?, name)?)),
            None => Found::look(self.root, path),
        }
    }

    pub(crate) fn database(&self) -> Result<&Database, dpkg::Error> {
        once(&self.database, || Database::read(self.root))
    }

    /// As [`apt::automatic`].
    pub(crate) fn automatic(&self) -> Result<&BTreeSet<String>, root::Error> {
        once(&self.automatic, || apt::automatic(self.root))
    }
}

/// What could not be read is tried again.
fn once<T, E>(cell: &OnceCell<T>, read: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let read = read()?;
    Ok(cell.get_or_init(|| read))
}
