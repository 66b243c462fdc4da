//! Our keys in somebody else's file.

use std::borrow::Cow;

use root::Attributes;

use super::change::{Change, Target, Verb, diff};
use super::{Verdict, contested};
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::Found;
use crate::store::Store;
use crate::{Action, Edit, Error, State};
use edit::Reverted;

/// Mode of a file that was not there: engines' own packages ship theirs so.
const NEW: u32 = 0o644;

pub(super) fn plan(
    store: &Store<'_>,
    action: &Action,
    edit: &Edit,
    found: &Found,
    held: Option<&Entry>,
    now: u64,
) -> Result<Result<Verdict, String>, Error> {
    let current = match text(found) {
        Ok(text) => text,
        Err(problem) => return Ok(Err(problem)),
    };
    // Where nothing is to be done, what was before is not asked for.
    if let Some(Ours::Edited { edit: old, states }) = held.map(|entry| &entry.ours)
        && (old == edit && states.get(1).is_none_or(|older| *older != found.state()))
        && edit.apply(current).is_ok_and(|wanted| wanted == current)
    {
        return Ok(Ok(Verdict::Right));
    }
    let before_text = match held.map(|entry| store.text_before(&entry.before)).transpose() {
        Ok(text) => text.flatten(),
        Err(error) => return Ok(Err(error.to_string())),
    };
    Ok(plan_text(action, edit, found, current, held.map(|entry| (entry, before_text.as_deref())), now))
}

fn plan_text(
    action: &Action,
    edit: &Edit,
    found: &Found,
    current: &str,
    held: Option<(&Entry, Option<&str>)>,
    now: u64,
) -> Result<Verdict, String> {
    let fault = |fault| format!("{fault}; it is left as it is: correct it, then apply again");
    let old = held.and_then(|(entry, before)| match &entry.ours {
        Ours::Edited { edit, .. } => Some((entry, edit, before)),
        _ => None,
    });
    let from = found.state();
    let is_ours = old.is_some_and(|(entry, ..)| entry.ours.states().contains(&from));
    let is_newest = old.is_some_and(|(entry, ..)| entry.ours.states().first() == Some(&from));
    let held_edit = old.map(|(_, edit, _)| edit);
    if let Some(name) = edit.somebody_elses(current, held_edit).map_err(fault)? {
        return Err(format!(
            "{name} is there already, is not ours and names no program: it is left alone; name ours otherwise in the \
             configuration, or take that one away, then apply again"
        ));
    }
    // Keys that were ours and are to be so no longer go first.
    let mut given_up = Reverted::default();
    let base = match old {
        // Of a run that was killed before it wrote: the receipt tells the new keys, and the file has those before them.
        Some((_, old, before)) if is_ours && !(is_newest && old == edit) => {
            Cow::Borrowed(before.unwrap_or_default())
        }
        Some((_, old, before)) if old != edit => {
            given_up = old.given_up_for(edit).revert(current, before).map_err(fault)?;
            Cow::Owned(given_up.text.take().unwrap_or_default())
        }
        _ => Cow::Borrowed(current),
    };
    let wanted = edit.apply(&base).map_err(fault)?;
    if wanted == current {
        return Ok(Verdict::Right);
    }
    let (before, keep, repairs, verb) = match old {
        None => (from.clone(), Some(current.to_owned()), Repairs::default(), Verb::Edit),
        Some((entry, ..)) if is_ours => (entry.before.clone(), None, entry.repairs, Verb::Edit),
        Some((entry, old, before)) => {
            let (repairs, verb) = if old == edit {
                match entry.repairs.one_more(now) {
                    Some(repairs) => (repairs, Verb::Repair),
                    None => return Ok(contested(action, entry.repairs, found)),
                }
            } else {
                (entry.repairs, Verb::Edit)
            };
            // Somebody has changed the file since. What undo gives back is their file without our keys.
            match old.revert(current, before).map_err(fault)?.text.filter(|_| !found.is_absent()) {
                Some(text) => (attributed(found, &text), Some(text), repairs, verb),
                None => (State::Absent, None, repairs, verb),
            }
        }
    };
    let (mode, owner) = match found {
        Found::File { mode, uid, gid, .. } => (*mode, Some((*uid, *gid))),
        Found::Else(_) => (NEW, None),
    };
    let to = State::of_file(wanted.as_bytes(), Attributes { mode, owner });
    // For a run that is killed between the receipt and the file: what stands there then is ours too, and what was
    // before belongs to it, also where somebody has changed it since.
    let mut states = vec![to.clone()];
    states.extend((is_ours || old.is_some_and(|(_, old, _)| old != edit)).then(|| from.clone()));
    let entry = Entry {
        path: action.path.clone(),
        stage: action.stage,
        reason: action.reason.clone(),
        before,
        ours: Ours::Edited { edit: edit.clone(), states },
        effects: action.effects_back().to_vec(),
        concern: action.concern.clone(),
        uses: action.uses.clone(),
        rival: action.rival.clone(),
        repairs,
        mount: None,
    };
    let lines = diff(current.as_bytes(), wanted.as_bytes());
    let mut change = Change::forward(action, verb, from, to.clone(), entry);
    change.reason.extend(given_up.told().map(|told| format!("; {told}")));
    change.keep = keep.filter(|_| !found.is_absent()).map(String::into_bytes);
    Ok(Verdict::Change(Box::new(change.to(
        Target::File { bytes: wanted.into_bytes(), mode, owner },
        to,
        lines,
    ))))
}

/// The text that is edited; a file that is not there counts as an empty one.
pub(super) fn text(found: &Found) -> Result<&str, String> {
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
        Found::Else(other) => Err(format!("{} stands there, not a file: move it out of the way", other)),
    }
}

/// A file with the mode and owner of the one that is there, and this text.
fn attributed(found: &Found, text: &str) -> State {
    match found {
        Found::File { mode, uid, gid, .. } => {
            State::of_file(text.as_bytes(), Attributes { mode: *mode, owner: Some((*uid, *gid)) })
        }
        Found::Else(_) => State::Absent,
    }
}
