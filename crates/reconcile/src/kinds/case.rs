//! The input from which a kind plans, and its answer.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use root::Root;

use crate::apt;
use crate::apt::dpkg::{self, Database};
use crate::model::{Action, Change, Entry, Found, Repairs};
use crate::receipt::Store;

/// A Root, and what dpkg and apt know beneath it: asked once, however many packages a plan is about.
pub(crate) struct Observed<'a> {
    pub(crate) root: &'a Root,
    pub(crate) store: Store<'a>,
    database: OnceCell<Arc<Database>>,
    automatic: OnceCell<BTreeSet<String>>,
}

/// An action, and what was found at its path.
pub(crate) struct Case<'a> {
    pub(crate) seen: &'a Observed<'a>,
    pub(crate) action: &'a Action,
    pub(crate) found: &'a Found,
    pub(crate) held: Option<&'a Entry>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

/// The necessary change, or why nothing changes.
pub(crate) type Planned = Result<Change, Unchanged>;

#[derive(Debug)]
pub(crate) enum Unchanged {
    InSync,
    /// The action cannot be applied as the machine is.
    Blocked(String),
    /// Another program keeps writing the path.
    Contested(String),
    /// The path stays as it is, because it has changed since the apply.
    Left(String),
    /// Nothing that rocworker put at the path is left.
    Gone,
    /// What rocworker put at the path is gone or cannot be reverted, for this reason: rocworker stops
    /// managing the path.
    GoneBut(String),
}

impl From<String> for Unchanged {
    fn from(text: String) -> Self {
        Self::Blocked(text)
    }
}

impl<'a> Observed<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, store: Store::new(root), database: OnceCell::new(), automatic: OnceCell::new() }
    }

    pub(crate) fn database(&self) -> Result<&Database, dpkg::Error> {
        once(&self.database, || Database::read(self.root)).map(|known| &**known)
    }

    /// The packages of [`apt::automatic`].
    pub(crate) fn automatic(&self) -> Result<&BTreeSet<String>, dpkg::Error> {
        once(&self.automatic, || apt::automatic(self.root, self.database()?))
    }
}

/// Reads a value once; a failed read is tried again.
fn once<T, E>(cell: &OnceCell<T>, read: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let read = read()?;
    Ok(cell.get_or_init(|| read))
}

impl Case<'_> {
    /// The repairs of it with this one. Another program reverted what rocworker applied, unless a run was killed before
    /// it had applied it. A program that keeps reverting it is a conflict.
    pub(crate) fn repairs(&self) -> Result<Repairs, Unchanged> {
        let Some(entry) = self.held else { return Ok(Repairs::default()) };
        if entry.managed.is_begun() {
            return Ok(entry.repairs);
        }
        entry.repairs.one_more(self.now).ok_or_else(|| {
            let who = self.action.rival.as_deref().unwrap_or("something else");
            Unchanged::Contested(format!(
                "{who} keeps writing it: repaired {} times, and now it is {} again; it is repaired no more: make {who} \
                 stop, then rocworker undo and apply; or leave the path to it in the configuration",
                entry.repairs.count,
                self.found.state()
            ))
        })
    }
}
