use std::time::{Duration, Instant};

use hip_remote_tests::{Relay, Steps, Worker};

/// From Europe to the west of North America.
const ROUND_TRIP: Duration = Duration::from_millis(130);

#[test]
fn real_1000_operations_cost_two_round_trips() {
    let worker = Worker::start();
    let time = |steps: &mut Steps| -> u64 {
        assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
        // The first launch loads the code.
        assert!(steps.ask("pipeline 1").starts_with("hipSuccess 1 "));
        let run = |_| -> u64 {
            let answer = steps.ask("pipeline 1000");
            let words: Vec<_> = answer.split(' ').collect();
            assert_eq!(words[..2], ["hipSuccess", "1000"]);
            words[2].parse().unwrap()
        };
        // A machine that is busy with other tests delays some of them.
        (0..5).map(run).inspect(|time| eprintln!("{time} ms")).min().unwrap()
    };
    let near = time(&mut Steps::on(&worker.tcp()));
    let far = time(&mut Steps::on(&Relay::to(&worker.tcp(), ROUND_TRIP / 2).address));
    let extra = Duration::from_millis(far.saturating_sub(near));
    assert!(extra < 2 * ROUND_TRIP, "near {near} ms, far {far} ms");
}

#[test]
fn real_launches_fills_async_copies_events_and_frees_do_not_wait() {
    const ROUNDS: u32 = 20;
    let worker = Worker::start();
    let mut steps = Steps::on(&Relay::to(&worker.tcp(), ROUND_TRIP / 2).address);
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    // The first launch loads the code.
    assert_eq!(steps.ask("launch 1"), "hipSuccess");
    let answer = steps.ask(&format!("one-way {ROUNDS}"));
    let time = answer.strip_prefix("hipSuccess ").expect(&answer).parse().map(Duration::from_millis).unwrap();
    // One kind that waits takes a round trip in each round.
    assert!(time < ROUNDS * ROUND_TRIP / 2, "{time:?}");
}

#[test]
fn real_connection_that_is_cut_for_5_seconds_goes_on() {
    let worker = Worker::start();
    let relay = Relay::to(&worker.tcp(), Duration::ZERO);
    let mut steps = Steps::on(&relay.address);
    assert!(steps.ask("malloc 4194304").starts_with("hipSuccess"));
    assert_eq!(steps.ask("copies 1"), "hipSuccess");
    steps.begin("copies 5");
    relay.cut();
    std::thread::sleep(Duration::from_secs(5));
    relay.heal();
    assert_eq!(steps.answer(), "hipSuccess");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_connection_that_is_cut_for_60_seconds_ends_on_both_sides() {
    let worker = Worker::start();
    let relay = Relay::to(&worker.tcp(), Duration::ZERO);
    let mut steps = Steps::on(&relay.address);
    assert!(steps.ask("malloc 4194304").starts_with("hipSuccess"));
    assert_eq!(steps.ask("copies 1"), "hipSuccess");
    relay.cut();
    let begin = Instant::now();
    let answer = steps.ask("copies 5");
    assert_eq!(answer, "hipErrorContextIsDestroyed");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    worker.until_free(Duration::from_secs(35));
    std::thread::sleep(Duration::from_secs(60).saturating_sub(begin.elapsed()));
    relay.heal();
    assert!(steps.ask("malloc 16").starts_with("hipErrorContextIsDestroyed"));
    let mut next = Steps::on(&relay.address);
    assert!(next.ask("malloc 16").starts_with("hipSuccess"));
}
