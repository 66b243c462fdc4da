//! From this machine to [`gpu_health::judge`]: its cards and the kernel's log.
//!
//! `cards` and `log` read the machine, `rules` says which rules are in force.

mod cards;
mod log;
pub mod rules;

use allocation::health::Health;
use gpu_health::judge::{Judge, Known, Log};
use gpu_health::rules::Rules;
use root::Root;

use cards::{Cards, Read};
pub use cards::Memory;
use log::KernelLog;

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
    /// Of the same reading, a card that amdgpu drives each.
    pub memory: Vec<Memory>,
}

impl Observer {
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self { cards: Cards::new(root), log: KernelLog::default(), judge: Judge::default() }
    }

    /// Reads the machine once and judges it. A card whose files hang costs a second, once. `last`: the last judgement, or
    /// what an earlier process left in the file, however old. `now`: seconds since 1970.
    pub fn judge(&mut self, root: &Root, rules: &Rules, last: Option<&Health>, now: u64) -> Judgement {
        let Read { cards, memory, problem } = self.cards.read(last);
        let events = self.log.read(root, now);
        let log = events.as_ref().map(|(events, is_whole)| Log { events, is_whole: *is_whole });
        let known = Known { now, cards: &cards, log: log.map_err(String::as_str), last };
        let mut health = self.judge.judge(rules, known);
        health.unknown.extend(problem);
        Judgement { health, memory }
    }
}
