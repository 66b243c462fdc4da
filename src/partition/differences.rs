//! How cards differ from the last switch and from the profile of the configuration.

use config::{Partitions, Reload};
use reconcile::Uptime;
use root::Root;

use super::{Goal, Look, Phase, Plan, Progress, Refused, rivals};

/// The last switch of this boot; `None`: there was none. The driver picks modes at each boot.
///
/// # Errors
/// A sentence on why it is not known, and what to do.
pub fn last_switch(root: &Root) -> Result<Option<Progress>, String> {
    let boot = Uptime::boot(root);
    Ok(Progress::read(root)?.filter(|last| last.boot == boot))
}

/// What a person should know of the cards' modes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// A sentence.
    pub text: String,
    /// The switch that repairs it, where cards have only lost modes that they had.
    pub repair: Option<Goal>,
}

impl From<String> for Difference {
    fn from(text: String) -> Self {
        Self { text, repair: None }
    }
}

/// How the cards differ; nothing where the configuration has no profile and rocworker has switched no card.
#[must_use]
pub fn differences(root: &Root, partitions: &Partitions) -> Vec<Difference> {
    let last = match last_switch(root) {
        Ok(last) => last,
        Err(problem) => return vec![problem.into()],
    };
    let profile = partitions.profile.as_ref().and_then(|name| partitions.profiles.get_key_value(name));
    if last.is_none() && profile.is_none() {
        return Vec::new();
    }
    if let (rivals, Some(_)) = (rivals(root), profile)
        && !rivals.is_empty()
    {
        return rivals.into_iter().map(Difference::from).collect();
    }
    let look = Look::at(root);
    let of_last = last.as_ref().and_then(|last| of_switch(last, &look));
    let of_profile = || {
        let (name, entries) = profile?;
        match Plan::make(root, &look, partitions, entries) {
            Err(Refused(why)) => Some(format!("the profile {name} cannot be set: {}", why.join("; ")).into()),
            Ok(plan) if plan.steps.is_empty() => None,
            Ok(plan) => {
                let hindrance = match plan.steps.needs_reload() && partitions.reload == Reload::Never {
                    true => {
                        "; it changes a memory mode, which rocworker-partition.service does at a boot only with \
                         partitions.reload: boot"
                    }
                    false => "",
                };
                let text = format!(
                    "the cards are not in the profile {name}: `rocworker partition plan` says what sets it{hindrance}"
                );
                // After a switch of this boot a person has chosen other modes.
                let repair = last.is_none().then(|| Goal::Profile(name.clone()));
                Some(Difference { text, repair })
            }
        }
    };
    of_last.or_else(of_profile).into_iter().collect()
}

fn of_switch(last: &Progress, look: &Look) -> Option<Difference> {
    let goal = &last.goal;
    let command = goal.command();
    let stopped = match &*last.units {
        [] => String::new(),
        units => format!("; until then {} stay stopped", units.join(" ")),
    };
    if last.is_unfinished() {
        let text = format!(
            "the switch to {goal} of {} has not ended: it is at work, or was killed, and `{command}` finishes it{stopped}",
            last.since
        );
        return Some(text.into());
    }
    if last.phase == Phase::Failed {
        let problem = last.problem.as_deref().unwrap_or("for a reason that was not kept");
        let text = format!("the switch to {goal} failed: {problem}; `{command}` tries it again{stopped}");
        return Some(text.into());
    }
    // After a reset the cards are anybody's.
    if *goal == Goal::Reset {
        return None;
    }
    let wrong = last.wrong(&look.cards);
    (!wrong.is_empty()).then(|| {
        let wrong = wrong.join(", ");
        let text = format!(
            "cards have lost the modes of the switch to {goal}: {wrong}; `{command}` sets them again"
        );
        Difference { text, repair: Some(goal.clone()) }
    })
}
