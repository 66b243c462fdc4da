//! Managed keys in a file of another program. The file is written as any other: see [`file::apply`].

use std::borrow::Cow;

use edit::{Edit, Reverted};
use root::Attributes;

use super::case::{Case, Observed, Planned, Unchanged};
use super::file;
use crate::model::{Change, Content, Entry, Found, Managed, Repairs, State, Target, Verb, edit_diff};

/// Mode of a file that was not there: engines' packages ship their files so.
const NEW: u32 = 0o644;

pub(super) fn plan(case: &Case<'_>, edit: &Edit) -> Planned {
    let Case { found, .. } = *case;
    let current = text(found)?;
    let held = case.held.and_then(|entry| match &entry.managed {
        Managed::Edited { edit, states } => Some((entry, edit, states)),
        _ => None,
    });
    // With nothing to do, the state before the apply is not read.
    if let Some((_, old, states)) = held
        && (old == edit && states.get(1).is_none_or(|older| *older != found.state()))
        && edit.apply(current).is_ok_and(|wanted| wanted == current)
    {
        return Err(Unchanged::InSync);
    }
    let before_text = held.map(|(entry, ..)| case.seen.store.text_before(&entry.before)).transpose();
    let before_text = before_text.map_err(|error| error.to_string())?.flatten();
    let before_text = before_text.as_deref();
    let fault = |fault| format!("{fault}; it is left as it is: correct it, then apply again");
    let from = found.state();
    let is_managed = held.is_some_and(|(_, _, states)| states.contains(&from));
    let is_newest = held.is_some_and(|(_, _, states)| states.first() == Some(&from));
    if let Some(name) = edit.unmanaged_entry(current, held.map(|(_, old, _)| old)).map_err(fault)? {
        return Err(Unchanged::Blocked(format!(
            "{name} is there already, rocworker did not write it, and it names no program: rocworker leaves it alone; \
             set another name in the configuration, or remove that one, then apply again"
        )));
    }
    // Keys that rocworker is to manage no longer go first.
    let mut given_up = Reverted::default();
    let base = match held {
        // A killed run has saved the new keys in the receipt and not yet written the file, which has the keys
        // before them.
        Some((_, old, _)) if is_managed && !(is_newest && old == edit) => {
            Cow::Borrowed(before_text.unwrap_or_default())
        }
        Some((_, old, _)) if old != edit => {
            given_up = old.given_up_for(edit).revert(current, before_text).map_err(fault)?;
            Cow::Owned(given_up.text.take().unwrap_or_default())
        }
        _ => Cow::Borrowed(current),
    };
    let wanted = edit.apply(&base).map_err(fault)?;
    if wanted == current {
        return Err(Unchanged::InSync);
    }
    let attributes = attributes(found);
    let (before, keep, repairs, verb) = match held {
        None => (from.clone(), Some(current.to_owned()), Repairs::default(), Verb::Edit),
        Some((entry, ..)) if is_managed => (entry.before.clone(), None, entry.repairs, Verb::Edit),
        Some((entry, old, _)) => {
            let (repairs, verb) =
                if old == edit { (case.repairs()?, Verb::Repair) } else { (entry.repairs, Verb::Edit) };
            // The file has changed since. Undo restores this file without the managed keys.
            match old.revert(current, before_text).map_err(fault)?.text.filter(|_| !found.is_absent()) {
                Some(text) => (State::of_file(text.as_bytes(), attributes), Some(text), repairs, verb),
                None => (State::Absent, None, repairs, verb),
            }
        }
    };
    let to = State::of_file(wanted.as_bytes(), attributes);
    // For a run that is killed between the receipt and the file: the file that is there then is managed too, with what
    // was before it, also where that has changed since.
    let was_managed = is_managed || held.is_some_and(|(_, old, _)| old != edit);
    let states = [to.clone()].into_iter().chain(was_managed.then(|| from.clone())).collect();
    let entry = Entry::of(case.action, before, Managed::Edited { edit: edit.clone(), states }, repairs);
    let diff = edit_diff(current.as_bytes(), wanted.as_bytes());
    let target = Target::Put(Content::File { bytes: wanted.into_bytes(), attributes });
    let mut change = Change::forward(case.action, verb, (from, to), target, entry);
    change.reason.extend(given_up.sentence().map(|sentence| format!("; {sentence}")));
    Ok(Change { diff, keep: keep.filter(|_| !found.is_absent()).map(String::into_bytes), ..change })
}

/// The text that is edited; a file that is not there counts as an empty one.
fn text(found: &Found) -> Result<&str, String> {
    match found {
        Found::File { bytes, .. } => std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.iter().take(error.valid_up_to());
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8 text; it is left as it is: correct it, then apply again")
        }),
        Found::Else(State::Absent) => Ok(""),
        Found::Else(State::Link { target }) => Err(format!(
            "it is a symbolic link to {}, and only a plain file is edited: name the file itself in the configuration",
            target.display()
        )),
        Found::Else(other) => Err(format!("{other} is there, not a file: move it out of the way")),
    }
}

/// The attributes of the present file; a new file's where there is none.
fn attributes(found: &Found) -> Attributes {
    match found {
        Found::File { mode, uid, gid, .. } => Attributes { mode: *mode, owner: Some((*uid, *gid)) },
        Found::Else(_) => Attributes { mode: NEW, owner: None },
    }
}

pub(super) fn revert(seen: &Observed<'_>, entry: &Entry, edit: &Edit, found: &Found, force: bool) -> Planned {
    let from = found.state();
    if from == entry.before {
        return Err(Unchanged::Gone);
    }
    if entry.managed.states().contains(&from) {
        let mut change = file::restore(seen, entry, found, force)?;
        // The text before the apply may lack what its owner has added to a managed key since.
        let before = seen.store.text_before(&entry.before).unwrap_or_default();
        let reverted = text(found).ok().and_then(|text| edit.revert(text, before.as_deref()).ok());
        say(&mut change, reverted.as_ref());
        return Ok(change);
    }
    if found.is_absent() {
        return Err(Unchanged::Gone);
    }
    let before =
        seen.store.text_before(&entry.before).map_err(|error| file::lost(error.to_string(), force))?;
    take_out(entry, edit, found, before.as_deref(), force)
}

/// Removes the managed keys from a file that has changed since; everything else stays.
fn take_out(entry: &Entry, edit: &Edit, found: &Found, before: Option<&str>, force: bool) -> Planned {
    let from = found.state();
    if let State::Link { target } = &from {
        let target = target.display();
        let text = format!("it is a symbolic link to {target} by now, and rocworker's keys may be there");
        return Err(if force {
            Unchanged::GoneBut(text)
        } else {
            Unchanged::Left(format!("{text}: put the file back in its place, then undo again"))
        });
    }
    let current = text(found).map_err(Unchanged::Left)?;
    let mut reverted = edit.revert(current, before).map_err(|fault| {
        Unchanged::Left(format!("{fault}; rocworker's keys stay in it: correct it, then undo again"))
    })?;
    let mut change = match reverted.text.take() {
        Some(text) if text == current && reverted.left.is_empty() => return Err(Unchanged::Gone),
        Some(text) if text == current => {
            let keys = reverted.left.join(", ");
            return Err(Unchanged::GoneBut(format!(
                "{keys}: changed since the apply; rocworker no longer manages it"
            )));
        }
        Some(text) => {
            let (attributes, diff) = (attributes(found), edit_diff(current.as_bytes(), text.as_bytes()));
            let to = State::of_file(text.as_bytes(), attributes);
            let target = Target::Put(Content::File { bytes: text.into_bytes(), attributes });
            Change { diff, ..Change::back(entry, Verb::Edit, (from, to), target) }
        }
        None => Change::back(entry, Verb::Remove, (from, State::Absent), Target::Absent),
    };
    say(&mut change, Some(&reverted));
    Ok(change)
}

/// Adds to the reason which managed keys stay, and which unmanaged ones go with the others.
fn say(change: &mut Change, reverted: Option<&Reverted>) {
    change.reason.extend(reverted.and_then(Reverted::sentence).map(|sentence| format!("; {sentence}")));
}
