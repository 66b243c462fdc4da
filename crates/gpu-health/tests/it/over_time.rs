//! Tests that need several judgements: counters that grow, and quarantine.

use gpu_health::judge::Judge;
use gpu_health::known::{Event, Known, Log};
use gpu_health::rules::Rules;
use inventory::health::{GpuHealth, Health, State};
use inventory::snapshot::Card;
use kernel_log::knowledge::Class;

use crate::{NOW, card, event, rules_of, sample};

/// Judges one card at a time after another, each with what came out before.
struct Over {
    judge: Judge,
    rules: Rules,
    last: Option<Health>,
}

impl Over {
    fn new() -> Self {
        Self { judge: Judge::default(), rules: Rules::built_in(), last: None }
    }

    fn at(&mut self, after: u64, card: &Card, log: Result<&[Event], &str>) -> GpuHealth {
        let log = log.map(|events| Log { events, is_whole: true });
        let cards = std::slice::from_ref(card);
        let known = Known { now: NOW + after, cards, log, last: self.last.as_ref() };
        self.last.insert(self.judge.judge(&self.rules, known)).gpus[0].clone()
    }

    /// Forgets the judge's history, as a restart of the daemon does.
    fn restart(&mut self) {
        self.judge = Judge::default();
    }
}

/// A card about which the log can have no messages, with so many corrected errors.
fn corrected(count: f64) -> Card {
    let errors = sample("rocm_ras_errors_total", &[("block", "umc"), ("severity", "correctable")], count);
    Card { driver: Some("vfio-pci".to_owned()), ..card(vec![errors]) }
}

#[test]
fn a_counter_is_judged_from_the_second_reading_on_and_by_what_it_grew() {
    let mut over = Over::new();
    let first = over.at(0, &corrected(5000.0), Ok(&[]));
    assert_eq!((first.state, first.score), (State::Unknown, None));
    assert_eq!(over.at(10, &corrected(5099.0), Ok(&[])).score, Some(100));
    let many = over.at(20, &corrected(5100.0), Ok(&[]));
    assert_eq!(rules_of(&many), [("memory-correctable", 15)]);
    assert_eq!(
        many.deductions[0].evidence,
        "rocm_ras_errors_total{block=\"umc\",severity=\"correctable\"} grew by 100 within 20 s"
    );
    // An hour later an unchanged count is old.
    over.at(1800, &corrected(5100.0), Ok(&[]));
    assert_eq!(over.at(3700, &corrected(5100.0), Ok(&[])).score, Some(100));
}

#[test]
fn a_daemon_that_starts_anew_and_a_driver_that_is_loaded_anew_begin_without_history() {
    let mut over = Over::new();
    over.at(0, &corrected(0.0), Ok(&[]));
    assert_eq!(over.at(10, &corrected(900.0), Ok(&[])).score, Some(85));
    over.restart();
    assert_eq!(over.at(20, &corrected(900.0), Ok(&[])).score, None);
    assert_eq!(over.at(30, &corrected(900.0), Ok(&[])).score, Some(100));
    assert_eq!(over.at(40, &corrected(2.0), Ok(&[])).score, None);
    assert_eq!(over.at(50, &corrected(102.0), Ok(&[])).score, Some(85));
}

#[test]
fn quarantine_lasts_until_the_card_was_not_unhealthy_for_the_hold() {
    let mut over = Over::new();
    let hang = [event(Class::Hang, 0)];
    let recovered = [event(Class::Hang, 0), Event { at: NOW + 50, ..event(Class::ResetRecovered, 0) }];
    let card = card(Vec::new());
    let quarantine = over.at(0, &card, Ok(&hang)).quarantine.unwrap();
    assert_eq!((quarantine.since, quarantine.unhealthy_at), (NOW, NOW));
    assert_eq!(quarantine.reason, "The GPU hangs: the kernel has not logged that it recovered.");
    let later = over.at(40, &card, Ok(&hang)).quarantine.unwrap();
    assert_eq!((later.since, later.unhealthy_at), (NOW, NOW + 40));
    let held = over.at(60, &card, Ok(&recovered));
    assert_eq!((held.state, held.quarantine.as_ref()), (State::Degraded, Some(&later)));
    // A restart of the daemon changes nothing, and an unknown state neither.
    over.restart();
    assert_eq!(over.at(639, &card, Ok(&recovered)).quarantine, Some(later.clone()));
    assert_eq!(over.at(9000, &card, Err("none")).quarantine, Some(later));
    assert_eq!(over.at(9001, &card, Ok(&recovered)).quarantine, None);
    assert_eq!(over.at(9002, &card, Err("none")).quarantine, None);
}

#[test]
fn a_clock_that_is_set_back_begins_the_hold_anew() {
    let mut over = Over::new();
    let card = card(Vec::new());
    over.at(1_000_000, &card, Ok(&[event(Class::ResetFailed, 0)]));
    let held = over.at(0, &card, Ok(&[])).quarantine.unwrap();
    assert_eq!(held.unhealthy_at, NOW);
    assert!(over.at(599, &card, Ok(&[])).quarantine.is_some());
    assert!(over.at(600, &card, Ok(&[])).quarantine.is_none());
}
