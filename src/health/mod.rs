//! Gives this machine's cards and the kernel's log to [`gpu_health::judge`].
//!
//! `cards` and `log` read the machine, `rules` says which rules are in force.

mod cards;
mod log;
pub mod rules;

use gpu_health::judge::Judge;
use gpu_health::known::{Known, Log};
use gpu_health::rules::Rules;
use inventory::health::Health;
use inventory::snapshot::Card;
use root::Root;

use cards::{Cards, Read};
use log::KernelLog;

/// The kernel's name for this boot (random(4)). `None` where it does not say.
#[must_use]
pub fn boot_id(root: &Root) -> Option<String> {
    reconcile::Uptime::boot(root)
}

/// Judges a machine's GPUs, as often as it is asked.
#[derive(Debug)]
pub struct Observer {
    cards: Cards,
    log: KernelLog,
    judge: Judge,
}

/// What [`Observer::judge`] finds.
#[derive(Debug)]
pub struct Judgement {
    pub health: Health,
    /// The cards whose readings `health` judges.
    pub cards: Vec<Card>,
}

impl Observer {
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self { cards: Cards::new(root), log: KernelLog::default(), judge: Judge::default() }
    }

    /// Reads the machine once and judges it. A card whose files hang costs a second, once. `last`: the last judgement,
    /// or what an earlier process left in the file, however old. `now`: seconds since 1970.
    pub fn judge(&mut self, root: &Root, rules: &Rules, last: Option<&Health>, now: u64) -> Judgement {
        root.ask_again();
        let Read { cards, problem, unanswered } = self.cards.read(last);
        let events = self.log.read(root, &cards, now);
        let log = events.as_ref().map(|(events, is_whole)| Log { events, is_whole: *is_whole });
        let known = Known { now, cards: &cards, log: log.map_err(String::as_str), last };
        let mut health = self.judge.judge(rules, known);
        health.unknown.extend(problem.into_iter().chain(unanswered));
        Judgement { health, cards }
    }
}

#[cfg(test)]
mod tests {
    use inventory::health::State;
    use layout::{Machine, Nodes};

    use super::*;

    const BOOT: &str = "5,0,0,-;Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)\n";
    const HANG: &str = "3,1,2000000,-;amdgpu 0000:05:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=2219, emitted \
                        seq=2221\n";

    /// `judge` asks no clock but by `now`.
    #[test]
    fn a_clock_that_is_set_back_or_forth_neither_ends_a_quarantine_early_nor_keeps_it_for_ever() {
        const T: u64 = 1_790_000_000;
        const DAY: u64 = 86_400;
        let rules = Rules::built_in();
        let laid = |log: &str| {
            let folder = tempfile::tempdir().unwrap();
            let machine = Machine::instinct_with_readings(1, 1).put("/dev/kmsg", log);
            machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
            let root = Root::open(folder.path()).unwrap();
            (folder, root)
        };
        let (_hung, hung) = laid(&format!("{BOOT}{HANG}"));
        let (_well, well) = laid(BOOT);
        let mut observers = [Observer::new(&hung), Observer::new(&well)];
        let mut last: Option<Health> = None;
        for (is_well, now, since) in [
            (0, T, Some(T)),
            // Back by an hour, forth by a day: it hangs all the time.
            (0, T - 3600, Some(T - 3600)),
            (0, T + DAY, Some(T - 3600)),
            // Well now. A clock that is set back begins the hold anew.
            (1, T + DAY + 10, Some(T - 3600)),
            (1, T, Some(T - 3600)),
            (1, T + rules.hold_s - 1, Some(T - 3600)),
            (1, T + rules.hold_s, None),
            (1, T, None),
        ] {
            let root = [&hung, &well][is_well];
            let Judgement { health, .. } = observers[is_well].judge(root, &rules, last.as_ref(), now);
            let gpu = &health.gpus[0];
            assert_eq!(gpu.state, [State::Unhealthy, State::Healthy][is_well], "{now}: {health:#?}");
            assert_eq!(gpu.quarantine.as_ref().map(|it| it.since), since, "{now}: {health:#?}");
            assert!(health.written_at == now && health.is_fresh(now), "{now}: {health:#?}");
            last = Some(health);
        }
    }
}
