//! From this machine to [`gpu_health::judge`]: its cards, the kernel's log, and the file in which the daemon publishes.
//!
//! `cards` and `log` read the machine, `rules` says which rules are in force, `published` reads the daemon's file.

mod cards;
mod log;
pub mod published;
pub mod rules;

use allocation::health::Health;
use gpu_health::judge::{Judge, Known, Log};
use gpu_health::rules::Rules;
use root::Root;

use cards::{Cards, Read};
pub use cards::{Memory, address};
use log::KernelLog;

/// Judges a machine's GPUs, as often as it is asked.
#[derive(Debug)]
pub struct Observer {
    cards: Cards,
    log: KernelLog,
    judge: Judge,
    memory: Vec<Memory>,
}

impl Observer {
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self {
            cards: Cards::new(root),
            log: KernelLog::default(),
            judge: Judge::default(),
            memory: Vec::new(),
        }
    }

    /// Reads the machine once and judges it. A card whose files hang costs a second, once. `last`: the last judgement, or
    /// what an earlier process left in the file, however old. `now`: seconds since 1970.
    pub fn judge(&mut self, root: &Root, rules: &Rules, last: Option<&Health>, now: u64) -> Health {
        let (Read { cards, memory }, problem) = self.cards.read(last);
        self.memory = memory;
        let events = self.log.read(root, now);
        let log = events.as_ref().map(|(events, is_whole)| Log { events, is_whole: *is_whole });
        let known = Known { now, cards: &cards, log: log.map_err(String::as_str), last };
        let mut health = self.judge.judge(rules, known);
        health.unknown.extend(problem);
        health
    }

    /// How much memory was in use at the last judgement, a card that amdgpu drives each.
    #[must_use]
    pub fn memory(&self) -> &[Memory] {
        &self.memory
    }
}
