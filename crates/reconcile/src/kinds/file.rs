//! A managed file or link.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use root::{Attributes, Kind, Meta, New, Root};

use super::case::{Case, Observed, Planned, Unchanged};
use crate::error::if_there;
use crate::model::{
    Change, Content, Entry, Found, LIMIT, Managed, Repairs, State, Target, Verb, diff, owner,
};
use crate::receipt::{Failure, Journal, Replacing};

/// Reads what is at a path; a link at its end is not followed.
pub(super) fn observe(root: &Root, path: &Path) -> Result<Found, root::Error> {
    // Before the path itself: nothing is compared with what a planted link leads to.
    root.check_way(path)?;
    let Some(meta) = if_there(root.lstat(path))? else { return Ok(Found::Else(State::Absent)) };
    let Meta { mode, uid, gid, .. } = meta;
    Ok(match meta.kind {
        Kind::Regular => match if_there(root.read(path, LIMIT))? {
            Some(bytes) => Found::File { bytes, mode, uid, gid },
            // The file was removed in between.
            None => Found::Else(State::Absent),
        },
        Kind::Link => Found::Else(State::Link { target: root.read_link(path)? }),
        Kind::Character { .. } => Found::Else(State::Node { mode, uid, gid }),
        other => Found::Else(State::Other { what: other.described().to_owned() }),
    })
}

pub(super) fn plan(case: &Case<'_>, content: &Content) -> Planned {
    let Case { action, found, held, .. } = *case;
    if is_at(case.seen.root, content, found) {
        return Err(Unchanged::InSync);
    }
    let from = found.state();
    let known = held.map_or(&[][..], |entry| entry.managed.states());
    let is_managed = known.contains(&from);
    let refused = match &from {
        State::Other { what } => Some(what.as_str()),
        State::Node { .. } => Some("a device node"),
        // Writing a file there would remove an unmanaged link, or write through it.
        State::Link { target } if !matches!(content, Content::Link { .. }) && !is_managed => {
            return Err(Unchanged::Blocked(format!(
                "it is a symbolic link to {}, which is not replaced: remove the link, or name another path in the \
                 configuration",
                target.display()
            )));
        }
        _ => None,
    };
    if let Some(what) = refused {
        return Err(
            format!("{what} is there, which rocworker does not replace: move it out of the way").into()
        );
    }
    let (before, repairs, verb) = match held {
        None if found.is_absent() => (from.clone(), Repairs::default(), Verb::Create),
        None => (from.clone(), Repairs::default(), Verb::Replace),
        Some(entry) if is_managed => (entry.before.clone(), entry.repairs, Verb::Replace),
        Some(entry) => (entry.before.clone(), case.repairs()?, Verb::Repair),
    };
    let (to, diff) = match content {
        Content::File { bytes, attributes } => {
            let to = State::of_file(bytes, *attributes);
            let lines = lines(&from, &to, (found.bytes(), bytes));
            (to, lines)
        }
        Content::Link { target } => (State::Link { target: target.clone() }, None),
        // The content is not known before it is fetched.
        Content::Fetched { url, .. } => (State::Other { what: format!("what {url} gives") }, None),
    };
    let target = Target::Put(content.clone());
    // A run may be killed between the receipt and the file: the file that is there then is managed, too.
    let states = [to.clone()].into_iter().chain(is_managed.then(|| from.clone())).collect();
    let entry = Entry::of(action, before, Managed::Owned { states }, repairs);
    let keep = (held.is_none() && matches!(found, Found::File { .. })).then(|| found.bytes().to_vec());
    // A program that has read equal bytes needs no effect.
    let is_same_text = from.digest().is_some() && from.digest() == to.digest();
    let mut change = Change { diff, keep, ..Change::forward(action, verb, (from, to), target, entry) };
    if is_same_text {
        change.effects.clear();
    }
    Ok(change)
}

/// Whether the path holds the content. Where no owner is wanted, the file's owner must be one whom the
/// machine believes: another user could write the file.
fn is_at(root: &Root, content: &Content, found: &Found) -> bool {
    let is_file = |wanted: &Attributes, mode: u32, uid: u32, gid: u32| {
        let is_owner = wanted.owner.map_or_else(|| root.is_trusted_owner(uid), |owner| owner == (uid, gid));
        wanted.mode == mode && is_owner
    };
    match (content, found) {
        (Content::File { bytes, attributes }, Found::File { bytes: there, mode, uid, gid }) => {
            is_file(attributes, *mode, *uid, *gid) && bytes == there
        }
        (Content::Fetched { check, attributes, .. }, Found::File { bytes, mode, uid, gid }) => {
            is_file(attributes, *mode, *uid, *gid) && check.holds(bytes).is_ok()
        }
        (Content::Link { target }, Found::Else(State::Link { target: there })) => target == there,
        _ => false,
    }
}

pub(super) fn apply(journal: &mut Journal<'_>, change: &Change, now: u64) -> Result<(), Failure> {
    let change = &fetched(journal, change)?;
    write(journal, change, now, |root, path| {
        let new = match &change.target {
            Target::Put(Content::File { bytes, attributes }) => {
                New::File { bytes, how: Attributes { owner: Some(owner(*attributes)), ..*attributes } }
            }
            Target::Put(Content::Link { target }) => New::Link(target),
            _ => New::Nothing,
        };
        // A file that came to the path since the plan is not replaced.
        root.replace(path, new, &|path| is_state(root, path, &change.from))
    })
}

/// The change, with the bytes of a file that is fetched.
fn fetched(journal: &Journal<'_>, change: &Change) -> Result<Change, Failure> {
    let mut change = change.clone();
    let Target::Put(Content::Fetched { url, check, attributes }) = &change.target else { return Ok(change) };
    let manager = journal.manager("files are fetched")?;
    let (bytes, attributes) = (manager.fetch(url, check, path_of(&change)?)?, *attributes);
    change.to = State::of_file(&bytes, attributes);
    change.target = Target::Put(Content::File { bytes, attributes });
    // Replaces the state that was not known at the plan.
    if let Some(Managed::Owned { states }) = change.entry.as_mut().map(|entry| &mut entry.managed)
        && let Some(newest) = states.first_mut()
    {
        newest.clone_from(&change.to);
    }
    Ok(change)
}

/// Writes one path, if it still holds what the plan saw there: into the receipt first, then there.
pub(super) fn write<E: Display>(
    journal: &mut Journal<'_>,
    change: &Change,
    now: u64,
    write: impl FnOnce(&Root, &Path) -> Result<(), E>,
) -> Result<(), Failure> {
    let (root, path) = (journal.root, path_of(change)?);
    let state = observe(root, path)?.state();
    if state != change.from {
        return Err(format!("it has changed since it was looked at, and is {state} now: run it again").into());
    }
    if let Some(bytes) = &change.keep {
        journal.store.keep(bytes)?;
    }
    let until_now = journal.receipt.clone();
    if change.target != Target::Absent {
        journal.receipt_mut().add_folders(root.missing_folders(path));
    }
    journal.begin(change, now)?;
    if let Err(error) = write(root, path) {
        // A file or folder comes whole: anything else that is there is another program's. A node takes two calls.
        let is_whole = !matches!(change.target, Target::Node { .. });
        let is_nothing_done = |state| state == change.from || (is_whole && state != change.to);
        if observe(root, path).is_ok_and(|found| is_nothing_done(found.state())) {
            // Nothing at the path is managed, and no effect is necessary.
            journal.roll_back(until_now, change);
        }
        return Err(error.to_string().into());
    }
    journal.end(change, now);
    Ok(())
}

fn is_state(root: &Root, path: &Path, state: &State) -> bool {
    observe(root, path).is_ok_and(|found| found.state() == *state)
}

fn path_of(change: &Change) -> Result<&Path, Failure> {
    change.path.path().ok_or_else(|| format!("{} is no path", change.path).into())
}

pub(super) fn revert(seen: &Observed<'_>, entry: &Entry, found: &Found, force: bool) -> Planned {
    let from = found.state();
    if from == entry.before {
        return Err(Unchanged::Gone);
    }
    if force || found.is_absent() || entry.managed.states().contains(&from) {
        return restore(seen, entry, found, force);
    }
    Err(Unchanged::Left(
        "somebody has changed it since: it stays as it is; rocworker undo --force reverts it all the same"
            .to_owned(),
    ))
}

/// Back to the bytes that were there before.
pub(super) fn restore(seen: &Observed<'_>, entry: &Entry, found: &Found, force: bool) -> Planned {
    let from = found.state();
    if let State::Other { what } = &from {
        return Err(Unchanged::Left(format!("{what} is there now: move it out of the way")));
    }
    let (verb, target, lines) = match &entry.before {
        State::Absent => (Verb::Remove, Target::Absent, lines(&from, &State::Absent, (found.bytes(), b""))),
        State::File { sha256, mode, uid, gid } => {
            let bytes = seen.store.kept(sha256).map_err(|error| lost(error.to_string(), force))?;
            let lines = lines(&from, &entry.before, (found.bytes(), &bytes));
            let attributes = Attributes { mode: *mode, owner: Some((*uid, *gid)) };
            (Verb::Restore, Target::Put(Content::File { bytes, attributes }), lines)
        }
        State::Link { target } => {
            (Verb::Restore, Target::Put(Content::Link { target: target.clone() }), None)
        }
        // Rocworker replaces none of these with a file, so none of them was at the path before.
        State::Node { .. }
        | State::Loaded
        | State::Package { .. }
        | State::Value { .. }
        | State::Other { .. } => {
            return Err(Unchanged::Gone);
        }
    };
    Ok(Change { diff: lines, ..Change::back(entry, verb, (from, entry.before.clone()), target) })
}

/// The lines that change, where everybody may read the file: a worker's containerd.toml may hold a password, and so may
/// the copy of it.
fn lines(from: &State, to: &State, (old, new): (&[u8], &[u8])) -> Option<String> {
    let is_open = |state: &State| !matches!(state, State::File { mode, .. } if mode & 0o004 == 0);
    if is_open(from) && is_open(to) { diff(old, new) } else { None }
}

/// The state before the apply cannot be restored: the path stays as it is, and `force` makes rocworker stop
/// managing it.
pub(super) fn lost(error: String, force: bool) -> Unchanged {
    if force { Unchanged::GoneBut(error) } else { Unchanged::Left(error) }
}

/// Ends a replacement in which a run was killed. The new file and the old one are exchanged, compared, and exchanged back
/// where the old one had changed; a run that is killed between the two leaves that edit under a temporary name.
/// It is put back, and what else was left goes. Where the file was changed again since, the edit stays beside it: the
/// answer names what stays.
///
/// # Errors
/// When an edit can be neither put back nor kept: it stays under its temporary name.
pub(super) fn recover(
    root: &Root,
    path: &Path,
    replacing: Option<&Replacing>,
) -> Result<Vec<PathBuf>, root::Error> {
    if let Some(Replacing { from, to }) = replacing {
        let is_known = |left: &Path| is_state(root, left, from) || is_state(root, left, to);
        let is_edit = |left: &PathBuf| !is_known(left) && !root.is_half_written(left);
        for left in root.left_beside(path).into_iter().filter(is_edit) {
            if is_state(root, path, to) {
                root.put_back(&left, path)?;
            } else {
                root.keep_beside(&left)?;
            }
        }
    }
    root.sweep_all(path);
    Ok(root.kept_beside(path))
}
