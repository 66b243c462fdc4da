//! Group and mode of a device node that is there.

use super::case::{Case, Planned, Unchanged};
use super::file;
use crate::model::{Change, Entry, Found, Managed, Repairs, State, Target, Verb};
use crate::receipt::{Failure, Journal};

pub(super) fn plan(case: &Case<'_>, mode: u32, gid: u32) -> Planned {
    let action = case.action;
    // An archive's record of a node does not change.
    if action.path.path().is_some_and(|path| case.seen.root.is_recorded(path)) {
        return Err(Unchanged::InSync);
    }
    let from = case.found.state();
    let State::Node { mode: now, uid, gid: group } = from else {
        return Err(match from {
            State::Absent => Unchanged::InSync,
            other => Unchanged::Blocked(format!("{other} is there, not a device node")),
        });
    };
    if (now, group) == (mode, gid) {
        return Err(Unchanged::InSync);
    }
    // A node is made anew at each boot: giving it its group again is no repair.
    // Undo restores what the node that is there now had, unless a run was killed between group and mode.
    let half_done = case.held.filter(|entry| is_managed(entry, (now, group)));
    // The mode and group that rocworker applied before, until this change is done.
    let older = half_done.and_then(|entry| match entry.managed {
        Managed::Node { mode, gid, .. } => Some((mode, gid)),
        _ => None,
    });
    let before = half_done.map_or_else(|| from.clone(), |entry| entry.before.clone());
    let entry = Entry::of(action, before, Managed::Node { mode, gid, older }, Repairs::default());
    let states = (from, State::Node { mode, uid, gid });
    Ok(Change::forward(action, Verb::Permissions, states, Target::Node { mode, uid: None, gid }, entry))
}

/// Whether mode and group are each one that rocworker gave the node, or one from before. Two calls set them,
/// and a run may be killed between the two.
fn is_managed(entry: &Entry, (now, group): (u32, u32)) -> bool {
    let (State::Node { mode: before, gid: group_before, .. }, Managed::Node { mode, gid, older }) =
        (&entry.before, &entry.managed)
    else {
        return false;
    };
    let known = [Some((*before, *group_before)), Some((*mode, *gid)), *older];
    let known = || known.iter().flatten();
    known().any(|known| known.0 == now) && known().any(|known| known.1 == group)
}

pub(super) fn apply(
    journal: &mut Journal<'_>,
    change: &Change,
    (mode, uid, gid): (u32, Option<u32>, u32),
    now: u64,
) -> Result<(), Failure> {
    file::write(journal, change, now, |root, path| root.set_node(path, mode, uid, gid))
}

pub(super) fn revert(entry: &Entry, found: &Found) -> Planned {
    let from = found.state();
    match (&from, &entry.before) {
        (State::Node { mode: now, gid: group, .. }, State::Node { mode, uid, gid })
            if from != entry.before && is_managed(entry, (*now, *group)) =>
        {
            let target = Target::Node { mode: *mode, uid: Some(*uid), gid: *gid };
            Ok(Change::back(entry, Verb::Permissions, (from, entry.before.clone()), target))
        }
        // The kernel made it anew since, or another program changed it: nothing on it is managed.
        _ => Err(Unchanged::Gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Action, Kind, Stage};

    #[test]
    fn undo_takes_a_node_back_also_where_a_run_was_killed_between_group_and_mode() {
        let action = Action::new(Stage::Shape, "/dev/kfd", Kind::Node { mode: 0o660, gid: 44 }, "");
        let before = State::Node { mode: 0o600, uid: 0, gid: 0 };
        let managed = Managed::Node { mode: 0o660, gid: 44, older: Some((0o666, 109)) };
        let entry = Entry::of(&action, before.clone(), managed, Repairs::default());
        for (mode, gid, is_managed) in [
            (0o660, 44, true),
            (0o600, 44, true),
            (0o660, 0, true),
            (0o666, 44, true),
            (0o600, 0, false),
            (0o640, 44, false),
            (0o660, 5, false),
        ] {
            let reverted = revert(&entry, &Found::Else(State::Node { mode, uid: 0, gid }));
            let to = reverted.ok().map(|change| change.to);
            assert_eq!(to, is_managed.then(|| before.clone()), "{mode:o} {gid}");
        }
    }
}
