//! The kinds of action. Each observes, plans, applies and reverts in a file of its own; who is asked is decided here.

mod archive;
mod case;
mod edit;
mod file;
mod module;
mod node;
mod package;
mod value;

use std::collections::BTreeSet;

use root::Root;

pub use archive::{Source as ArchiveSource, unpack as unpack_archive};
pub(crate) use case::{Case, Observed, Planned, Unchanged};

use crate::apt::{Step, dpkg};
use crate::model::{Action, Change, Entry, Found, Kind, Managed, Resource, State, Target};
use crate::receipt::{Failure, Journal, Receipt};

/// Reads what is there of a resource. A link at the end of a path is not followed.
pub(crate) fn observe(seen: &Observed<'_>, resource: &Resource) -> Result<Found, dpkg::Error> {
    Ok(match resource {
        Resource::Path(path) => file::observe(seen.root, path)?,
        Resource::Package(name) => Found::Else(package::observe(seen.database()?, name)),
        Resource::Module(name) => Found::Else(module::observe(seen.root, name)),
    })
}

/// Whether a package is installed or a module loaded.
pub(crate) fn is_there(root: &Root, resource: &Resource) -> bool {
    let state = observe(&Observed::new(root), resource).map(|found| found.state());
    matches!(state, Ok(State::Loaded | State::Package { status: dpkg::Status::Installed, .. }))
}

/// The change that makes an action true.
pub(crate) fn plan(seen: &Observed<'_>, action: &Action, held: Option<&Entry>, now: u64) -> Planned {
    let found = observe(seen, &action.path).map_err(|error| error.to_string())?;
    if let Some(entry) = held.filter(|entry| entry.managed.kind() != action.kind.name()) {
        return Err(Unchanged::Blocked(format!(
            "rocworker manages it as {} by an earlier configuration, and would as {} now: rocworker undo, then \
             apply again",
            entry.managed.kind(),
            action.kind.name()
        )));
    }
    let case = Case { seen, action, found: &found, held, now };
    match &action.kind {
        Kind::Owned(content) => file::plan(&case, content),
        Kind::Edited(edit) => edit::plan(&case, edit),
        Kind::Node { mode, gid } => node::plan(&case, *mode, *gid),
        Kind::Package(package) => package::plan(&case, package),
        Kind::Unpacked(archive) => archive::plan(&case, archive),
        Kind::Module => module::plan(&case),
        Kind::Value(value) => value::plan(&case, value),
    }
}

/// The change that restores the state before an entry. `going`: packages that earlier entries already remove.
/// `force`: what has changed since the apply is reverted too.
pub(crate) fn revert(
    seen: &Observed<'_>,
    entry: &Entry,
    found: &Found,
    going: &BTreeSet<String>,
    force: bool,
) -> Planned {
    match &entry.managed {
        Managed::Owned { .. } => file::revert(seen, entry, found, force),
        Managed::Edited { edit, .. } => edit::revert(seen, entry, edit, found, force),
        Managed::Node { .. } => node::revert(entry, found),
        Managed::Package { .. } => package::revert(seen, entry, &found.state(), going, force),
        Managed::Unpacked { sha256, .. } => archive::revert(seen.root, entry, sha256, found, force),
        Managed::Module { boot, came, .. } => module::revert(seen.root, entry, boot.as_deref(), came, found),
        Managed::Value { .. } => value::revert(seen.root, entry, found),
    }
}

/// Makes a change: the receipt first, then the machine.
pub(crate) fn apply(
    journal: &mut Journal<'_>,
    change: &Change,
    now: u64,
    hear: &mut dyn FnMut(Step),
) -> Result<(), Failure> {
    match &change.target {
        Target::Put(_) | Target::Absent => file::apply(journal, change, now),
        Target::Node { mode, uid, gid } => node::apply(journal, change, (*mode, *uid, *gid), now),
        Target::Package(doing) => package::apply(journal, change, doing, now, hear),
        Target::Unpacked(archive) => archive::apply(journal, change, archive, now, hear),
        Target::UnpackedGone => archive::remove(journal, change, now),
        Target::Load => module::load(journal, change, now),
        Target::Unload(names) => module::unload(journal, change, names, now),
        Target::Value(value) => value::apply(journal, change, value, now),
    }
}

/// Puts right what a run has left that was killed at a resource, and takes note of how far it came.
pub(crate) fn recover(root: &Root, receipt: &mut Receipt, resource: &Resource) -> Result<(), root::Error> {
    let is_archive =
        receipt.entry(resource).is_some_and(|entry| matches!(entry.managed, Managed::Unpacked { .. }));
    match resource {
        Resource::Path(path) if is_archive && root.is_host() => archive::sweep_of(root, path),
        Resource::Path(path) => {
            receipt.displaced.extend(file::recover(root, path, receipt.replacing.as_ref())?);
        }
        Resource::Package(_) if root.is_host() => package::sweep(root),
        Resource::Package(_) | Resource::Module(_) => {}
    }
    if let Some(path) = resource.path().filter(|path| is_archive && root.exists(path))
        && let Some(entry) = receipt.entry_mut(&path.into())
    {
        entry.managed.forget_older();
    }
    if let Ok(found) = observe(&Observed::new(root), resource) {
        receipt.settle_on(resource, &found.state());
    }
    Ok(())
}

/// Removes what is kept of archives that no entry names any more.
pub(crate) fn sweep(root: &Root, receipt: &Receipt) {
    archive::sweep_manifests(root, receipt);
}
