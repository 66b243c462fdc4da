//! The way back of one entry: what was there before, as far as what stands there is still ours.

use std::collections::BTreeSet;

use super::Verdict;
use super::change::{Change, Target, Verb, diff};
use super::edited::text;
use super::node::is_ours;
use super::{module, package, unpacked};
use crate::observed::Observed;
use crate::receipt::{Entry, Ours};
use crate::state::Found;
use crate::store::Store;
use crate::{Edit, Error, State};

/// `going`: packages that entries before this one take away already.
pub(super) fn plan(
    seen: &Observed<'_>,
    store: &Store<'_>,
    entry: &Entry,
    found: &Found,
    going: &BTreeSet<String>,
    force: bool,
) -> Result<Verdict, Error> {
    let from = found.state();
    if let Ours::Package { .. } = &entry.ours {
        let verdict = package::revert(seen, entry, &from, going, force);
        return Ok(verdict.unwrap_or_else(|error| Verdict::Left(error.to_string())));
    }
    match &entry.ours {
        Ours::Unpacked { .. } => return Ok(unpacked::revert(seen.root, entry, found, force)),
        Ours::Module { .. } => return Ok(module::revert(seen.root, entry, &from)),
        _ => {}
    }
    if from == entry.before {
        return Ok(Verdict::Gone);
    }
    match &entry.ours {
        Ours::Owned { states } if force || states.contains(&from) => Ok(restore(store, entry, found, force)),
        Ours::Owned { .. } if found.is_absent() => match entry.before {
            State::Absent => Ok(Verdict::Gone),
            _ => Ok(restore(store, entry, found, force)),
        },
        Ours::Owned { .. } => Ok(Verdict::Left(
            "somebody has changed it since: it stays as it is; rocworker undo --force takes it back all the same"
                .to_owned(),
        )),
        Ours::Edited { edit, states } if states.contains(&from) => {
            let verdict = restore(store, entry, found, force);
            Ok(told(verdict, store, entry, edit, found))
        }
        Ours::Edited { .. } if found.is_absent() => Ok(Verdict::Gone),
        Ours::Edited { edit, .. } => match store.text_before(&entry.before) {
            Ok(before) => Ok(take_out(entry, edit, found, before.as_deref(), force)),
            Err(error) => Ok(lost(&error, force)),
        },
        Ours::Package { .. } | Ours::Unpacked { .. } | Ours::Module { .. } => Ok(Verdict::Gone),
        Ours::Node { mode, gid, older } => Ok(node(entry, (*mode, *gid), *older, &from)),
    }
}

/// What was there before cannot be given back: the path stays as it is, and with force it is ours no longer.
fn lost(error: &Error, force: bool) -> Verdict {
    if force { Verdict::GoneBut(error.to_string()) } else { Verdict::Left(error.to_string()) }
}

fn restore(store: &Store<'_>, entry: &Entry, found: &Found, force: bool) -> Verdict {
    let from = found.state();
    if let State::Other { what } = &from {
        return Verdict::Left(format!("{what} stands there now: move it out of the way"));
    }
    let (verb, target, lines) = match &entry.before {
        State::Absent => (Verb::Remove, Target::Absent, diff(found.bytes(), b"")),
        State::File { sha256, mode, uid, gid } => {
            let bytes = match store.kept(sha256) {
                Ok(bytes) => bytes,
                Err(error) => return lost(&error, force),
            };
            let lines = diff(found.bytes(), &bytes);
            (Verb::Restore, Target::File { bytes, mode: *mode, owner: Some((*uid, *gid)) }, lines)
        }
        State::Link { target } => (Verb::Restore, Target::Link { target: target.clone() }, None),
        // Neither is ever replaced, so that neither was ever there.
        State::Node { .. } | State::Loaded | State::Package { .. } | State::Other { .. } => {
            return Verdict::Gone;
        }
    };
    let change = Change::back(entry, verb, from, target.clone());
    Verdict::Change(Box::new(change.to(target, entry.before.clone(), lines)))
}

/// What was before may lack what somebody has put into an entry of ours.
fn told(verdict: Verdict, store: &Store<'_>, entry: &Entry, edit: &Edit, found: &Found) -> Verdict {
    let Verdict::Change(mut change) = verdict else { return verdict };
    let before = store.text_before(&entry.before).unwrap_or_default();
    let reverted = text(found).ok().and_then(|text| edit.revert(text, before.as_deref()).ok());
    if let Some(told) = reverted.and_then(|reverted| reverted.told()) {
        change.reason = format!("{}; {told}", change.reason);
    }
    Verdict::Change(change)
}

/// Our keys leave a file that somebody has changed since; everything of theirs stays.
fn take_out(entry: &Entry, edit: &Edit, found: &Found, before: Option<&str>, force: bool) -> Verdict {
    if let State::Link { target } = found.state() {
        let target = target.display();
        let text = format!("it is a symbolic link to {target} by now, and our keys may stand there");
        return if force {
            Verdict::GoneBut(text)
        } else {
            Verdict::Left(format!("{text}: put the file back in its place, then undo again"))
        };
    }
    let current = match text(found) {
        Ok(text) => text,
        Err(problem) => return Verdict::Left(problem),
    };
    // Whoever took the file away took our keys with it.
    let Found::File { mode, uid, gid, .. } = found else { return Verdict::Gone };
    let mut reverted = match edit.revert(current, before) {
        Ok(reverted) => reverted,
        Err(fault) => {
            return Verdict::Left(format!("{fault}; our keys stay in it: correct it, then undo again"));
        }
    };
    let change = |verb, target| Change::back(entry, verb, found.state(), target);
    let mut change = match reverted.text.take() {
        Some(text) if text == current && reverted.left.is_empty() => return Verdict::Gone,
        Some(text) if text == current => {
            let keys = reverted.left.join(", ");
            return Verdict::GoneBut(format!(
                "{keys}: somebody has changed what was ours, which is theirs now"
            ));
        }
        Some(text) => {
            let lines = diff(current.as_bytes(), text.as_bytes());
            let target =
                Target::File { bytes: text.clone().into_bytes(), mode: *mode, owner: Some((*uid, *gid)) };
            let to =
                State::of_file(text.as_bytes(), root::Attributes { mode: *mode, owner: Some((*uid, *gid)) });
            change(Verb::Edit, target.clone()).to(target, to, lines)
        }
        None => change(Verb::Remove, Target::Absent),
    };
    if let Some(told) = reverted.told() {
        change.reason = format!("{}; {told}", change.reason);
    }
    Verdict::Change(Box::new(change))
}

fn node(entry: &Entry, ours: (u32, u32), older: Option<(u32, u32)>, from: &State) -> Verdict {
    match (from, &entry.before) {
        (State::Node { mode: now, gid: group, .. }, State::Node { mode: before, uid, gid: group_before })
            if is_ours((*now, *group), [Some(ours), Some((*before, *group_before)), older]) =>
        {
            let target = Target::Node { mode: *before, uid: Some(*uid), gid: *group_before };
            let change = Change::back(entry, Verb::Permissions, from.clone(), target.clone());
            Verdict::Change(Box::new(change.to(target, entry.before.clone(), None)))
        }
        // Made anew since, or given to somebody else: nothing of ours is on it.
        _ => Verdict::Gone,
    }
}
