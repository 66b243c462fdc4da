//! Cards that another program divides while the daemon runs: the kernel announces nothing.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use inventory::partitioning::Compute;
use serde_json::Value;
use support::fuse;
use support::partitioned::{Driver, Partitioned};

use crate::daemon::running::applied;
use crate::setup::laid::Laid;

/// The render nodes that engines get from a file of the machine.
fn nodes(laid: &Laid, file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(laid.path(file)).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let mut found = BTreeSet::new();
    collect(&json, &mut found);
    found
}

fn collect(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::String(text) => found.extend(text.strip_prefix("/dev/dri/render").map(str::to_owned)),
        Value::Array(all) => all.iter().for_each(|it| collect(it, found)),
        Value::Object(all) => all.values().for_each(|it| collect(it, found)),
        _ => {}
    }
}

fn expected(modes: [Compute; 2]) -> BTreeSet<String> {
    let of =
        |(card, mode): (u32, Compute)| (0..mode.devices(8)).map(move |n| format!("D{}", 128 + 8 * card + n));
    (0..).zip(modes).flat_map(of).collect()
}

#[test]
fn real_switches_without_an_event_are_in_the_spec_and_in_the_policy_within_a_second() {
    if !fuse::require() {
        return;
    }
    let driver = Driver::new(2);
    let laid = Laid::out(&driver.machine(), "wrapper: {requests: all}\n");
    let machine = Partitioned::at(&laid.path(""), driver);
    let daemon = applied(&laid);
    let mut slowest = Duration::ZERO;
    let mut modes = [Compute::Spx; 2];
    for (card, mode) in
        [(0, Compute::Cpx), (1, Compute::Dpx), (0, Compute::Spx), (1, Compute::Qpx), (1, Compute::Spx)]
    {
        machine.change(|driver| driver.switch(card, mode));
        let since = Instant::now();
        modes[card] = mode;
        let wanted = expected(modes);
        for file in ["etc/cdi/amd.json", "etc/rocworker/wrapper.json"] {
            while nodes(&laid, file) != wanted {
                assert!(since.elapsed() < Duration::from_secs(20), "{file}: {:?}", nodes(&laid, file));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        slowest = slowest.max(since.elapsed());
    }
    let causes = daemon.says()["last"]["causes"].to_string();
    assert!(causes.contains("topology"), "{causes}");
    eprintln!("the slowest of five switches was published after {} ms", slowest.as_millis());
    drop(daemon);
    drop(machine);
}
