use hip_remote_tests::{Steps, Worker, resident};

/// What each process may grow by, in KiB, between the first tenth of a soak and its end.
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
    let mut sizes_after = |rounds: u32| {
        for _ in 0..rounds / PART {
            assert!(steps.ask(&format!("pipeline {PART}")).starts_with(&format!("hipSuccess {PART} ")));
            assert_eq!(steps.ask(&format!("copies {PART}")), "hipSuccess");
        }
        [steps.pid(), worker.clients()[0], worker.pid()].map(resident)
    };
    let begin = sizes_after(rounds / 10);
    let end = sizes_after(rounds);
    for (who, begin, end) in [
        ("the client", begin[0], end[0]),
        ("its process at the worker", begin[1], end[1]),
        ("the worker", begin[2], end[2]),
    ] {
        assert!(end <= begin + GROWTH, "{who} grew from {begin} to {end} KiB");
    }
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
