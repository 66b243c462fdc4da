//! A folder that an archive becomes, and the way back of one.

use root::{Kind, Root};

use super::change::{Change, Target, Verb};
use super::{Verdict, contested};
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::Found;
use crate::unpack::{Manifest, staging};
use crate::{Action, State, Unpacked};

/// How many paths a sentence names.
const NAMED: usize = 3;

pub(super) fn plan(
    root: &Root,
    action: &Action,
    wanted: &Unpacked,
    found: &Found,
    held: Option<&Entry>,
    now: u64,
) -> Result<Verdict, String> {
    let from = found.state();
    if !found.is_absent() && !is_folder(root, action) {
        return Err(format!("{from} stands there, which is not replaced: move it out of the way"));
    }
    let ours = held.map(|entry| (&entry.ours, entry));
    let (verb, repairs) = match (found.is_absent(), ours) {
        (false, Some((Ours::Unpacked { sha256, .. }, _))) => {
            if *sha256 != wanted.sha256 {
                return Err(format!(
                    "another archive was unpacked there, with the SHA-256 {}: rocworker undo, then apply again",
                    sha256.as_str()
                ));
            }
            return match wanted.holds.iter().find(|it| !root.exists(action.path.join(it))) {
                None => Ok(Verdict::Right),
                Some(missing) => Err(format!(
                    "somebody has taken {} out of it: rocworker undo --force, then apply again",
                    missing.display()
                )),
            };
        }
        (false, _) => {
            return Err(
                "a folder stands there, which rocworker has not unpacked: move it out of the way, or name another \
                 version in the configuration"
                    .to_owned(),
            );
        }
        (true, None) => (Verb::Create, Repairs::default()),
        (true, Some((ours, entry))) if ours.is_begun() => (Verb::Create, entry.repairs),
        (true, Some((_, entry))) => match entry.repairs.one_more(now) {
            Some(repairs) => (Verb::Repair, repairs),
            None => return Ok(contested(action, entry.repairs, found)),
        },
    };
    let ours = Ours::Unpacked { sha256: wanted.sha256.clone(), begun: true };
    let entry = Entry::of(action, State::Absent, ours, repairs);
    let to = State::Other { what: format!("what {} gives", wanted.url) };
    let change = Change::forward(action, verb, from, to.clone(), entry);
    Ok(Verdict::Change(Box::new(change.to(Target::Unpacked(wanted.clone()), to, None))))
}

fn is_folder(root: &Root, action: &Action) -> bool {
    root.lstat(&action.path).is_ok_and(|meta| meta.kind == Kind::Directory)
}

pub(super) fn revert(root: &Root, entry: &Entry, found: &Found, force: bool) -> Verdict {
    let Ours::Unpacked { sha256, .. } = &entry.ours else { return Verdict::Gone };
    let from = found.state();
    let remove = || {
        let change = Change::back(entry, Verb::Remove, from.clone(), Target::UnpackedGone);
        Verdict::Change(Box::new(change))
    };
    match &from {
        // It had left its place when a run was killed.
        State::Absent if root.lstat(staging(&entry.path)).is_ok() => return remove(),
        State::Absent => return Verdict::Gone,
        State::Other { .. } if root.lstat(&entry.path).is_ok_and(|it| it.kind == Kind::Directory) => {}
        other => return Verdict::GoneBut(format!("{other} stands there now, which is somebody else's")),
    }
    if force {
        return remove();
    }
    let strangers = Manifest::read(root, sha256)
        .map_err(|error| error.to_string())
        .and_then(|manifest| manifest.strangers(root, &entry.path).map_err(|error| error.to_string()));
    let strangers = match strangers {
        Ok(strangers) if strangers.is_empty() => return remove(),
        Ok(strangers) => strangers,
        Err(error) => return Verdict::Left(format!("what of it is ours cannot be told: {error}")),
    };
    let mut names: Vec<String> = strangers
        .iter()
        .take(NAMED)
        .map(|it| root.shown(entry.path.join(it)).display().to_string())
        .collect();
    if strangers.len() > NAMED {
        names.push(format!("{} more", strangers.len() - NAMED));
    }
    Verdict::Left(format!(
        "somebody has added or changed {} in it: it stays whole; move that elsewhere, then undo again, or rocworker undo \
         --force takes everything away",
        names.join(", ")
    ))
}
