//! Many containers, and an engine that is killed: what is left behind, and who has which GPU meanwhile.

use std::collections::BTreeMap;
use std::thread;

use real_engines::containerd::{Containerd, SHIM};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine, releases};
use real_engines::machine::{ASKED, seen_on_demo};
use serde_json::Value;
use support::real;
use support::said::Said;

/// The demo machine's.
const GPUS: usize = 9;

/// How many containers run in a row, so that each of seven ids meets each of four requests. The second number
/// applies with `cargo xtask test --all`.
const IN_A_ROW: [usize; 2] = [30, 200];

#[track_caller]
fn containerd(engine: &Engine) -> Option<Containerd> {
    Some(Containerd::on_demo(engine, &engine.unpacked()?, ASKED))
}

/// Runs containers one after the other: whatever one of them left would hinder a later one, or be there at
/// the end.
fn serves_containers_in_a_row(containerd: &Containerd) {
    for n in 0..IN_A_ROW[usize::from(real::is_all())] {
        let (env, gpus) = match n % 4 {
            0 => ("AMD_VISIBLE_DEVICES=none", 0..0),
            1 => ("AMD_VISIBLE_DEVICES=all", 0..9),
            // The container that had the first GPU is gone, so that GPU is free again.
            2 => ("AMD_GPU_COUNT=1", 0..1),
            _ => ("AMD_VISIBLE_DEVICES=5", 5..6),
        };
        // Ids come round again, each time with another request.
        let id = format!("c{}", n % 7);
        let seen = containerd.look(&["--env", env], &id);
        assert_eq!(seen, seen_on_demo(gpus, "open"), "{}: container {n}, {env}", containerd.name());
    }
    containerd.assert_nothing_is_left();
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_containerd_1_6_serves_containers_in_a_row() {
    containerd(&CONTAINERD_1_6).iter().for_each(serves_containers_in_a_row);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_containerd_1_7_serves_containers_in_a_row() {
    containerd(&CONTAINERD_1_7).iter().for_each(serves_containers_in_a_row);
}

#[test]
fn real_containerd_2_1_serves_containers_in_a_row() {
    containerd(&CONTAINERD_2_1).iter().for_each(serves_containers_in_a_row);
}

/// The number of containers that have each GPU, by the records.
fn holders(containerd: &Containerd) -> BTreeMap<u64, usize> {
    let mut holders = BTreeMap::new();
    for record in containerd.host().records() {
        let text = containerd.host().busybox(&["cat", &format!("/run/rocworker/records/{record}")]).well();
        let record: Value = serde_json::from_str(&text).unwrap();
        for gpu in record["gpus"].as_array().unwrap() {
            *holders.entry(gpu["index"].as_u64().unwrap()).or_default() += 1;
        }
    }
    holders
}

fn at_once<T: Send>(count: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|n| {
                scope.spawn({
                    let act = &act;
                    move || act(n)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn spreads_32_containers_that_start_at_once(containerd: &Containerd) {
    at_once(32, |n| containerd.start_sleeping(&["--env", "AMD_GPU_COUNT=1"], &format!("c{n}")));
    let holders = holders(containerd);
    assert_eq!(holders.values().sum::<usize>(), 32, "{}: {holders:?}", containerd.name());
    // Each decision takes the least used, under the lock: nobody has two more than another.
    let each = holders.values().all(|count| [32 / GPUS, 32 / GPUS + 1].contains(count));
    assert!(holders.len() == GPUS && each, "{}: {holders:?}", containerd.name());
    at_once(32, |n| containerd.remove(&format!("c{n}")));
    containerd.assert_nothing_is_left();
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_containerd_spreads_32_containers_that_start_at_once() {
    for engine in releases() {
        containerd(&engine).iter().for_each(spreads_32_containers_that_start_at_once);
    }
}

/// Kills containerd while containers run and while others are being created, and starts it again.
fn survives_a_kill(containerd: &mut Containerd) {
    containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=4"], "steady");
    let mut starting: Vec<_> = (0..8)
        .map(|n| {
            let mut command = containerd.run_command(
                &["--detach", "--env", "AMD_GPU_COUNT=1"],
                &format!("s{n}"),
                &["/bin/sleep", "1000"],
            );
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    // At this moment some containers have their GPU, and none can be known to be done.
    containerd.until("a create has been recorded", || containerd.host().records().len() > 2);
    containerd.kill_and_start_again();
    // What ctr says of it, it says to nobody: its containerd was killed.
    starting.iter_mut().for_each(|ctr| {
        let _ = ctr.wait().unwrap();
    });

    let seen = containerd.look_in("steady", "after");
    assert_eq!(seen, seen_on_demo(4..5, "open"), "{}", containerd.name());
    let containers = containerd.ctr(&["container", "list", "--quiet"]).well();
    for id in containers.lines() {
        containerd.remove_whatever_it_is(id);
    }
    containerd.remove_forgotten();
    // A create that was killed with containerd may have left its record, for the next decision to clear away.
    let seen = containerd.look(&["--env", "AMD_GPU_COUNT=1"], "last");
    assert_eq!(seen, seen_on_demo(0..1, "open"), "{}: a GPU is held by nobody", containerd.name());
    // Empty cgroups may stay where runc itself was killed in the midst of a create.
    assert_eq!(containerd.host().records(), [""; 0], "{}", containerd.name());
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_containerd_killed_while_containers_start_leaves_no_gpu_held() {
    for engine in releases() {
        containerd(&engine).iter_mut().for_each(survives_a_kill);
    }
}

/// Kills the shim, and with it nobody is there who would call `delete`.
#[test]
fn real_a_killed_shim_leaves_no_gpu_held() {
    for engine in releases() {
        let Some(containerd) = containerd(&engine) else { return };
        containerd.start_sleeping(&["--env", "AMD_GPU_COUNT=1"], "c1");
        containerd.host().kill_all(SHIM);
        containerd.until("containerd has seen it", || !running(&containerd.ctr(&["task", "list"])));
        containerd.remove_whatever_it_is("c1");
        let seen = containerd.look(&["--env", "AMD_GPU_COUNT=1"], "c2");
        assert_eq!(seen, seen_on_demo(0..1, "open"), "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}

fn running(tasks: &Said) -> bool {
    tasks.stdout.contains("RUNNING")
}
