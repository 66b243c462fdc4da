//! Which card a message belongs to, and the answer for a card about which nothing is known.

use gpu_health::judge::Judge;
use gpu_health::known::{Event, Known, Log};
use gpu_health::rules::Rules;
use inventory::health::State;
use inventory::readings::CardReadings;
use inventory::snapshot::Card;
use kernel_log::knowledge::Class;

use crate::{NOW, address, card, event, health, of, rules_of};

fn another() -> Card {
    Card { pci: Some(address("0000:43:00.0")), bridges: vec![address("0000:40:01.1")], ..card(Vec::new()) }
}

#[test]
fn a_message_is_its_cards_alone() {
    let health = health(&[another(), card(Vec::new())], &[event(Class::Hang, 5)]);
    let [first, second] = &health.gpus[..] else { panic!("{health:?}") };
    assert_eq!(
        (first.pci.to_string(), second.pci.to_string()),
        ("0000:03:00.0".into(), "0000:43:00.0".into())
    );
    assert_eq!((first.state, second.state), (State::Unhealthy, State::Healthy));
    assert_eq!((first.hang, second.hang), (Some(true), Some(false)));
    assert_eq!(health.unknown, Vec::<String>::new());
}

#[test]
fn a_bridges_message_is_of_each_card_behind_it_and_a_strangers_of_none() {
    let of_bridge = |bridge| Event { gpu: Some(address(bridge)), ..event(Class::Pcie, 5) };
    let cards = [card(Vec::new()), another()];
    let taken = |bridge| {
        let health = health(&cards, &[of_bridge(bridge)]);
        health.gpus.iter().map(|gpu| rules_of(gpu).len()).collect::<Vec<_>>()
    };
    assert_eq!(taken("0000:00:01.1"), [1, 0]);
    assert_eq!(taken("0000:40:01.1"), [0, 1]);
    assert_eq!(taken("0000:09:00.0"), [0, 0]);
}

#[test]
fn a_message_without_a_gpu_is_the_only_cards_and_of_several_it_is_nobodys() {
    let nameless = |class, line: &str| Event { gpu: None, line: line.to_owned(), ..event(class, 5) };
    let events =
        [nameless(Class::Hang, "one"), nameless(Class::Hang, "two"), nameless(Class::PageFault, "x")];
    let alone = health(&[card(Vec::new())], &events);
    assert_eq!((alone.gpus[0].hang, &alone.unknown[..]), (Some(true), &[][..]));
    let of_two = health(&[card(Vec::new()), another()], &events);
    assert!(of_two.gpus.iter().all(|gpu| gpu.state == State::Healthy), "{of_two:?}");
    // Each of the two may hang.
    assert_eq!((of_two.gpus[0].hang, of_two.gpus[1].hang), (None, None));
    assert_eq!(of_two.unknown, ["2 messages of the kernel name no GPU, the last: two"]);
}

#[test]
fn a_card_of_which_nothing_is_known_has_no_score_and_says_so() {
    const SUSPENDED: &str = "It is suspended: no reading wakes it, and the kernel's log alone was judged";
    let power_state = Some("suspended".to_owned());
    let suspended =
        Card { readings: CardReadings { power_state, ..CardReadings::default() }, ..card(Vec::new()) };
    let cards = [suspended];
    let known = Known { now: NOW, cards: &cards, log: Err("no permission"), last: None };
    let health = Judge::default().judge(&Rules::built_in(), known);
    let gpu = &health.gpus[0];
    assert_eq!((gpu.state, gpu.score, gpu.hang), (State::Unknown, None, None));
    assert_eq!(
        gpu.unknown,
        [SUSPENDED, "Neither a reading that a rule names nor the kernel's log is known."]
    );
    assert_eq!(health.unknown, ["The kernel's log is not judged: no permission"]);
    // With a log, the suspended card is judged by the log alone.
    let gpu = of(&cards[0], &[]);
    assert_eq!((gpu.score, &gpu.unknown[..]), (Some(100), &[SUSPENDED.to_owned()][..]));
}

#[test]
fn a_log_that_is_silent_of_a_card_without_amdgpu_says_nothing_of_it() {
    let idle = Card { driver: Some("vfio-pci".to_owned()), ..card(Vec::new()) };
    assert_eq!((of(&idle, &[]).state, of(&idle, &[]).score), (State::Unknown, None));
    let failed = of(&idle, &[event(Class::InitFailed, 5)]);
    assert_eq!((failed.state, failed.score), (State::Unhealthy, Some(0)));
}

#[test]
fn a_log_with_a_gap_says_so() {
    let cards = [card(Vec::new())];
    let log = Ok(Log { events: &[], is_whole: false });
    let health =
        Judge::default().judge(&Rules::built_in(), Known { now: NOW, cards: &cards, log, last: None });
    assert_eq!(health.unknown, ["The kernel's log does not go back to boot without a gap."]);
    assert_eq!(health.gpus[0].score, Some(100));
}
