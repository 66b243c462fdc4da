//! A module of the kernel that should be loaded, and the way back of one.

use root::Root;

use super::change::{Change, Target, Verb};
use super::{Verdict, contested};
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::Found;
use crate::{Action, Module, State, module};

pub(super) fn plan(
    root: &Root,
    action: &Action,
    wanted: &Module,
    found: &Found,
    held: Option<&Entry>,
    now: u64,
) -> Result<Verdict, String> {
    let from = found.state();
    if from == State::Loaded {
        return Ok(Verdict::Right);
    }
    let boot = module::boot(root);
    let (verb, repairs, came) = match held.map(|entry| (&entry.ours, entry)) {
        // It went with the boot: that is nobody's doing.
        Some((Ours::Module { boot: then, came, begun }, entry)) if *then == boot => {
            let repairs = if *begun { Some(entry.repairs) } else { entry.repairs.one_more(now) };
            match repairs {
                Some(repairs) => (Verb::Repair, repairs, came.clone()),
                None => return Ok(contested(action, entry.repairs, found)),
            }
        }
        _ => (Verb::Create, Repairs::default(), Vec::new()),
    };
    let entry = Entry::of(action, State::Absent, Ours::Module { boot, came, begun: true }, repairs);
    let change = Change::forward(action, verb, from, State::Loaded, entry);
    let target = Target::Load { name: wanted.name.clone() };
    Ok(Verdict::Change(Box::new(change.to(target, State::Loaded, None))))
}

pub(super) fn revert(root: &Root, entry: &Entry, from: &State) -> Verdict {
    let (Ours::Module { boot, came, .. }, Some(name)) = (&entry.ours, module::named(&entry.path)) else {
        return Verdict::Gone;
    };
    if *from != State::Loaded {
        return Verdict::Gone;
    }
    // Loaded anew since the machine was started, and not by this: nobody's concern.
    if *boot != module::boot(root) {
        return Verdict::Gone;
    }
    if let Some(why) = module::in_use(root, name) {
        return Verdict::GoneBut(format!("it stays loaded until the machine is restarted: {why}"));
    }
    let mut names: Vec<String> = came.iter().rev().filter(|it| !module::is_same(it, name)).cloned().collect();
    names.insert(0, name.to_owned());
    let change = Change::back(entry, Verb::Remove, from.clone(), Target::Unload { names });
    Verdict::Change(Box::new(change))
}
