//! Cards that have lost their modes: the daemon reports it, or writes the compute modes again.

use std::time::Duration;

use config::OnRevert;

use crate::partition::{Goal, News, Options, Phase, differences, is_at_work, last_switch, set};
use crate::run::Run;

/// For how long a repair counts towards [`MOST`].
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// After so many repairs in a day another program keeps switching the cards.
const MOST: usize = 3;

/// How the daemon follows the cards' modes.
#[derive(Debug, Default)]
pub struct Partitions {
    /// When it repaired them within the last day.
    repaired: Vec<Duration>,
}

impl Partitions {
    /// What a person should know of the modes, a sentence each, once what may be repaired is. `apart`: the least time
    /// between two repairs.
    pub fn look(&mut self, run: &Run<'_>, now: Duration, apart: Duration) -> Vec<String> {
        let partitions = &run.config.partitions;
        let mut found = differences(run.root, partitions);
        if !found.is_empty() && is_at_work(run.root) {
            return Vec::new();
        }
        self.repaired.retain(|then| now < *then + DAY);
        let is_early = self.repaired.last().is_some_and(|then| now < *then + apart);
        let may = partitions.on_revert == OnRevert::Repair && run.config.daemon.enforce;
        if found.is_empty() || !may || is_early {
            return found;
        }
        let repaired = match self.repaired.len() {
            MOST.. => Err(format!("another program has switched them after {MOST} repairs in a day")),
            _ => repair(run),
        };
        match repaired {
            Ok(()) => {
                self.repaired.push(now);
                differences(run.root, partitions)
            }
            Err(why) => {
                found.push(format!("they are not repaired: {why}"));
                found
            }
        }
    }
}

/// Switches idle cards back, without a load of the driver, and without a stop of units.
fn repair(run: &Run<'_>) -> Result<(), String> {
    let partitions = &run.config.partitions;
    let goal = match last_switch(run.root)? {
        Some(last) if last.phase == Phase::Failed => return Err("the last switch failed".to_owned()),
        Some(last) => last.goal,
        None => Goal::Profile(partitions.profile.clone().unwrap_or_default()),
    };
    let options = Options { reload: false, wait: Duration::ZERO, kill: false, stops_units: false };
    let mut say = |news: News<'_>| {
        if let News::Done(what) = news {
            tracing::info!("{what}");
        }
    };
    // The next look publishes the devices: KFD's generation changes.
    let set = set(run, partitions, &goal, options, &|| Ok(()), &mut say);
    set.map(drop).map_err(|error| format!("{error:#}"))
}
