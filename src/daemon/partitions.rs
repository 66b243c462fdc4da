//! Cards that have lost their modes: the daemon reports it, or writes the compute modes again.

use std::time::Duration;

use config::OnRevert;

use crate::partition::{Goal, Look, News, Options, Phase, Plan, Refused, differences, last_switch, set};
use crate::run::Run;

/// How the daemon follows the cards' modes.
#[derive(Debug, Default)]
pub struct Partitions {
    repaired: Option<Duration>,
}

impl Partitions {
    /// What a person should know of the modes, a sentence each, once what may be repaired is. `apart`: between two repairs;
    /// another program that keeps switching cards would else be at war with this one.
    pub fn look(&mut self, run: &Run<'_>, now: Duration, apart: Duration) -> Vec<String> {
        let partitions = &run.config.partitions;
        let mut found = differences(run.root, partitions);
        let is_early = self.repaired.is_some_and(|then| now < then + apart);
        let may = partitions.on_revert == OnRevert::Repair && run.config.daemon.enforce;
        if found.is_empty() || !may || is_early {
            return found;
        }
        match repair(run) {
            Ok(()) => {
                self.repaired = Some(now);
                differences(run.root, partitions)
            }
            Err(why) => {
                found.push(format!("they are not repaired: {why}"));
                found
            }
        }
    }
}

/// Switches idle cards back, without a load of the driver.
fn repair(run: &Run<'_>) -> Result<(), String> {
    let partitions = &run.config.partitions;
    let goal = match last_switch(run.root)? {
        Some(last) if last.phase != Phase::Succeeded => {
            return Err("the last switch did not end well".to_owned());
        }
        Some(last) => last.goal,
        None => Goal::Profile(partitions.profile.clone().unwrap_or_default()),
    };
    let Goal::Profile(name) = &goal else {
        return Err("the modes of before the first switch are a person's to restore".to_owned());
    };
    let entries = partitions.profiles.get(name).ok_or_else(|| format!("{name} is no profile any more"))?;
    let plan = Plan::make(&Look::at(run.root), partitions, name, entries);
    let plan = plan.map_err(|Refused(why)| why.join("; "))?;
    if plan.steps.needs_reload() {
        return Err("a memory mode takes a load of amdgpu".to_owned());
    }
    if !plan.holders.is_empty() {
        let holders: Vec<String> = plan.holders.iter().map(ToString::to_string).collect();
        return Err(format!("these processes are on the cards: {}", holders.join(", ")));
    }
    let options = Options { reload: false, wait: Duration::ZERO, kill: false };
    let mut say = |news: News<'_>| {
        if let News::Done(what) = news {
            tracing::info!("{what}");
        }
    };
    let set = set(run, partitions, &goal, entries, options, &mut say);
    set.map(drop).map_err(|error| format!("{error:#}"))
}
