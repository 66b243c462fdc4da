//! How cards differ from the last switch and from the profile of the configuration.

use config::Partitions;
use reconcile::Uptime;
use root::Root;

use super::{Look, Phase, Plan, Progress, Refused, rivals};

/// The last switch of this boot; `None`: there was none. The driver picks modes at each boot.
///
/// # Errors
/// A sentence on why it is not known, and what to do.
pub fn last_switch(root: &Root) -> Result<Option<Progress>, String> {
    let boot = Uptime::boot(root);
    Ok(Progress::read(root)?.filter(|last| last.boot == boot))
}

/// What a person should know of the cards' modes, a sentence each; nothing where the configuration has no profile and
/// rocworker has switched no card.
#[must_use]
pub fn differences(root: &Root, partitions: &Partitions) -> Vec<String> {
    let last = match last_switch(root) {
        Ok(last) => last,
        Err(problem) => return vec![problem],
    };
    let profile = partitions.profile.as_ref().and_then(|name| partitions.profiles.get_key_value(name));
    if last.is_none() && profile.is_none() {
        return Vec::new();
    }
    if let (rivals, Some(_)) = (rivals(root), profile)
        && !rivals.is_empty()
    {
        return rivals;
    }
    let look = Look::at(root);
    let of_last = last.as_ref().and_then(|last| of_switch(last, &look));
    let of_profile = || {
        let (name, entries) = profile?;
        match Plan::make(&look, partitions, entries) {
            Err(Refused(why)) => Some(format!("the profile {name} cannot be set: {}", why.join("; "))),
            Ok(plan) if plan.steps.is_empty() => None,
            Ok(_) => Some(format!(
                "the cards are not in the profile {name}: `rocworker partition plan` says what sets it"
            )),
        }
    };
    of_last.or_else(of_profile).into_iter().collect()
}

fn of_switch(last: &Progress, look: &Look) -> Option<String> {
    let goal = &last.goal;
    let command = goal.command();
    if last.is_unfinished() {
        return Some(format!(
            "the switch to {goal} of {} has not ended: it is at work, or was killed, and `{command}` finishes it",
            last.since
        ));
    }
    if last.phase == Phase::Failed {
        let problem = last.problem.as_deref().unwrap_or("for a reason that was not kept");
        return Some(format!("the switch to {goal} failed: {problem}; `{command}` tries it again"));
    }
    let wrong = last.wrong(&look.cards);
    (!wrong.is_empty()).then(|| {
        format!(
            "cards have lost the modes of the switch to {goal}: {}; `{command}` sets them again",
            wrong.join(", ")
        )
    })
}
