//! Cards that have lost their modes: the daemon reports it, or writes the compute modes again.

use std::time::Duration;

use config::OnRevert;

use crate::partition::{Goal, News, Options, differences, is_at_work, set};
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
    /// What the last look found.
    known: Vec<String>,
}

impl Partitions {
    /// What a person should know of the modes, a sentence each, once what may be repaired is. The journal gets a sentence
    /// when it is new. `apart`: the least time between two repairs.
    pub fn look(&mut self, run: &Run<'_>, now: Duration, apart: Duration) -> Vec<String> {
        let found = self.find(run, now, apart);
        found.iter().filter(|text| !self.known.contains(text)).for_each(|text| tracing::error!("{text}"));
        self.known.clone_from(&found);
        found
    }

    fn find(&mut self, run: &Run<'_>, now: Duration, apart: Duration) -> Vec<String> {
        let partitions = &run.config.partitions;
        let found = differences(run.root, partitions);
        if !found.is_empty() && is_at_work(run.root) {
            return Vec::new();
        }
        self.repaired.retain(|then| now < *then + DAY);
        let is_early = self.repaired.last().is_some_and(|then| now < *then + apart);
        let may = partitions.on_revert == OnRevert::Repair && run.config.daemon.enforce && !is_early;
        let mut texts: Vec<String> = found.iter().map(|it| it.text.clone()).collect();
        let Some(goal) = found.into_iter().find_map(|it| it.repair).filter(|_| may) else { return texts };
        let repaired = match self.repaired.len() {
            MOST.. => Err(format!("another program has switched them after {MOST} repairs in a day")),
            _ => repair(run, &goal),
        };
        match repaired {
            Ok(has_switched) => {
                self.repaired.extend(has_switched.then_some(now));
                differences(run.root, partitions).into_iter().map(|it| it.text).collect()
            }
            Err(why) => {
                texts.push(format!("they are not repaired: {why}"));
                texts
            }
        }
    }
}

/// Switches idle cards back, without a load of the driver, and without a stop of units. `false`: the cards had their modes
/// again by then.
fn repair(run: &Run<'_>, goal: &Goal) -> Result<bool, String> {
    let options = Options { reload: false, wait: Duration::ZERO, kill: false, stops_units: false };
    let mut say = |news: News<'_>| {
        if let News::Done(what) = news {
            tracing::info!("{what}");
        }
    };
    // The next look publishes the devices: KFD's generation changes.
    let set = set(run, &run.config.partitions, goal, options, &|| Ok(()), &mut say);
    set.map(|progress| progress.is_some()).map_err(|error| format!("{error:#}"))
}
