//! Group and mode of a device node that is there.

use super::Verdict;
use super::change::{Change, Target, Verb};
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::Found;
use crate::{Action, State};

pub(super) fn plan(
    action: &Action,
    mode: u32,
    gid: u32,
    found: &Found,
    held: Option<&Entry>,
) -> Result<Verdict, String> {
    let from = found.state();
    let State::Node { mode: now, uid, gid: group } = from else {
        return match from {
            State::Absent => Ok(Verdict::Right),
            other => Err(format!("{} stands there, not a device node", other)),
        };
    };
    if (now, group) == (mode, gid) {
        return Ok(Verdict::Right);
    }
    // A node is made anew at each boot: giving it its group again is no repair of anybody's doing.
    // What undo gives back is what the one that is there now had, unless a run was killed between group and mode.
    let is_half_done = |entry: &&Entry| match (&entry.before, &entry.ours) {
        (State::Node { mode: before, gid: group_before, .. }, Ours::Node { mode, gid, older }) => {
            is_ours((now, group), [Some((*before, *group_before)), Some((*mode, *gid)), *older])
        }
        _ => false,
    };
    // What stands there by our hand until this is done.
    let older = held.filter(is_half_done).and_then(|entry| match entry.ours {
        Ours::Node { mode, gid, .. } => Some((mode, gid)),
        _ => None,
    });
    let before = held.filter(is_half_done).map_or_else(|| from.clone(), |entry| entry.before.clone());
    let entry = Entry {
        path: action.path.clone(),
        stage: action.stage,
        reason: action.reason.clone(),
        before,
        ours: Ours::Node { mode, gid, older },
        effects: action.effects_back().to_vec(),
        concern: action.concern.clone(),
        uses: action.uses.clone(),
        rival: action.rival.clone(),
        repairs: Repairs::default(),
        mount: None,
    };
    let to = State::Node { mode, uid, gid };
    let change = Change::forward(action, Verb::Permissions, from, to.clone(), entry);
    Ok(Verdict::Change(Box::new(change.to(Target::Node { mode, uid: None, gid }, to, None))))
}

/// Whether mode and group are each one of these: they are two calls, and a run may be killed between them.
pub(super) fn is_ours((mode, gid): (u32, u32), known: [Option<(u32, u32)>; 3]) -> bool {
    let known = || known.iter().flatten();
    known().any(|known| known.0 == mode) && known().any(|known| known.1 == gid)
}
