use hip_remote_tests::{Steps, Worker, resident};

/// What the two processes may grow by, in KiB, between the first tenth of a soak and its end.
const GROWTH: u64 = 1024;

/// How many launches and copies are one step.
const PART: u32 = 100;

fn soak(rounds: u32) {
    let worker = Worker::start();
    let mut steps = Steps::on(&worker.unix());
    // Each side has its buffers whole after this.
    assert!(steps.ask("malloc 8388608").starts_with("hipSuccess"));
    assert_eq!(steps.ask("copies 5"), "hipSuccess");
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    let mut both = |rounds: u32| {
        for _ in 0..rounds / PART {
            assert!(steps.ask(&format!("pipeline {PART}")).starts_with(&format!("hipSuccess {PART} ")));
            assert_eq!(steps.ask(&format!("copies {PART}")), "hipSuccess");
        }
        (resident(steps.pid()), resident(worker.clients()[0]))
    };
    let (client, at_worker) = both(rounds / 10);
    let (client_now, at_worker_now) = both(rounds);
    assert!(client_now <= client + GROWTH, "the client grew from {client} to {client_now} KiB");
    assert!(
        at_worker_now <= at_worker + GROWTH,
        "the worker's process grew from {at_worker} to {at_worker_now} KiB"
    );
}

#[test]
fn real_1000_launches_and_copies_grow_neither_side() {
    soak(1000);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_100_000_launches_and_copies_grow_neither_side() {
    soak(100_000);
}
