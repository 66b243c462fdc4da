//! A file or link that is ours.

use root::Root;

use super::change::{Change, Target, Verb, diff};
use super::{Verdict, contested};
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::{Found, owner};
use crate::{Action, Content, State};

pub(super) fn plan(
    root: &Root,
    action: &Action,
    content: &Content,
    found: &Found,
    held: Option<&Entry>,
    now: u64,
) -> Result<Verdict, String> {
    if is_at(root, content, found) {
        return Ok(Verdict::Right);
    }
    let from = found.state();
    let known = held.map_or(&[][..], |entry| entry.ours.states());
    match &from {
        State::Other { what } => {
            return Err(format!("{what} stands there, which is not replaced: move it out of the way"));
        }
        State::Node { .. } => {
            return Err(
                "a device node stands there, which is not replaced: move it out of the way".to_owned()
            );
        }
        // Writing a file there would take away somebody's link, or write through it.
        State::Link { target } if !matches!(content, Content::Link { .. }) && !known.contains(&from) => {
            return Err(format!(
                "it is a symbolic link to {}, which is not replaced: remove the link, or name another path in the \
                 configuration",
                target.display()
            ));
        }
        _ => {}
    }
    let (before, repairs, verb, keep) = match held {
        None => {
            let verb = if found.is_absent() { Verb::Create } else { Verb::Replace };
            (from.clone(), Repairs::default(), verb, true)
        }
        Some(entry) if known.contains(&from) => (entry.before.clone(), entry.repairs, Verb::Replace, false),
        Some(entry) => match entry.repairs.one_more(now) {
            Some(repairs) => (entry.before.clone(), repairs, Verb::Repair, false),
            None => return Ok(contested(action, entry.repairs, found)),
        },
    };
    let to = wanted(content);
    // For a run that is killed between the receipt and the file: what stands there then is ours too.
    let mut states = vec![to.clone()];
    states.extend(known.contains(&from).then(|| from.clone()));
    let entry = Entry {
        path: action.path.clone(),
        stage: action.stage,
        reason: action.reason.clone(),
        before,
        ours: Ours::Owned { states },
        effects: action.effects_back().to_vec(),
        concern: action.concern.clone(),
        uses: action.uses.clone(),
        rival: action.rival.clone(),
        repairs,
        mount: None,
    };
    let mut change = Change::forward(action, verb, from, to.clone(), entry);
    change.keep = (keep && matches!(found, Found::File { .. })).then(|| found.bytes().to_vec());
    Ok(Verdict::Change(Box::new(match content {
        Content::File { bytes, attributes } => {
            let target =
                Target::File { bytes: bytes.clone(), mode: attributes.mode, owner: Some(owner(*attributes)) };
            change.to(target, to, diff(found.bytes(), bytes))
        }
        Content::Link { target } => change.to(Target::Link { target: target.clone() }, to, None),
        Content::Fetched { url, check, attributes } => {
            let (url, check) = (url.clone(), check.clone());
            let target = Target::Fetched { url, check, mode: attributes.mode, owner: owner(*attributes) };
            change.to(target, to, None)
        }
    })))
}

/// Without an owner that is wanted, the file must be of one whom the machine believes: another could write it.
fn is_at(root: &Root, content: &Content, found: &Found) -> bool {
    match (content, found) {
        (Content::File { bytes, attributes }, Found::File { bytes: there, mode, uid, gid }) => {
            attributes.mode == *mode
                && attributes.owner.map_or_else(|| root.believes(*uid), |owner| owner == (*uid, *gid))
                && bytes == there
        }
        (Content::Link { target }, Found::Else(State::Link { target: there })) => target == there,
        (Content::Fetched { check, attributes, .. }, Found::File { bytes, mode, uid, gid }) => {
            attributes.mode == *mode
                && attributes.owner.map_or_else(|| root.believes(*uid), |owner| owner == (*uid, *gid))
                && check.holds(bytes).is_ok()
        }
        _ => false,
    }
}

fn wanted(content: &Content) -> State {
    match content {
        Content::File { bytes, attributes } => State::of_file(bytes, *attributes),
        Content::Link { target } => State::Link { target: target.clone() },
        // Its bytes are known once they are there.
        Content::Fetched { url, .. } => State::Other { what: format!("what {url} gives") },
    }
}
