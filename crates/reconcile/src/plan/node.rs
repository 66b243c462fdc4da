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
    let before = held.map_or_else(|| from.clone(), |entry| entry.before.clone());
    let entry = Entry {
        path: action.path.clone(),
        stage: action.stage,
        reason: action.reason.clone(),
        before,
        ours: Ours::Node { mode, gid },
        effects: action.effects.clone(),
        concern: action.concern.clone(),
        rival: action.rival.clone(),
        repairs: Repairs::default(),
    };
    let to = State::Node { mode, uid, gid };
    let change = Change::forward(action, Verb::Permissions, from, to.clone(), entry);
    Ok(Verdict::Change(Box::new(change.to(Target::Node { mode, uid: None, gid }, to, None))))
}
