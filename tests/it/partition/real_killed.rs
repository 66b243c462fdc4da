//! `partition set` that is killed: at each call that writes, and at moments of chance.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use inventory::partitioning::Compute;
use support::fuse;
use support::killed::{calls, killed_at};
use support::partitioned::{Driver, Partitioned};

use super::machine::{PROFILES, ROCWORKER, answer, answered, configure};

/// A card in DPX, and one in SPX, of which rocworker keeps nothing.
fn fresh(machine: &Partitioned) {
    machine.change(|driver| {
        driver.cards[0].compute = Compute::Dpx;
        driver.cards[1].compute = Compute::Spx;
    });
    fs::remove_dir_all(machine.root().join("var")).ok();
}

/// After a kill, another set finishes, and reset restores what each card had before the killed one.
#[track_caller]
fn recovers(machine: &Partitioned, what: &str) {
    for (line, modes) in
        [("partition set cores", ["CPX/NPS1"; 2]), ("partition reset", ["DPX/NPS1", "SPX/NPS1"])]
    {
        let output = answered(machine.root(), line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "killed at {what}: {line}: {stderr}");
        assert_eq!(machine.modes(), modes, "killed at {what}: {line}: {stderr}");
    }
}

fn machine() -> Partitioned {
    let machine = Partitioned::new(Driver::new(2));
    configure(&machine, PROFILES);
    // Without the boot's id nothing tells one boot from another.
    machine.put(&BTreeMap::from([("proc/sys/kernel/random/boot_id", "first\n".to_owned())]));
    machine.put(&BTreeMap::from([("proc/uptime", "100.00 100.00\n".to_owned())]));
    machine
}

#[test]
fn real_kills_at_each_write_leave_what_the_next_set_finishes_and_reset_restores() {
    if !fuse::require() {
        return;
    }
    let machine = machine();
    let root = machine.root().to_str().unwrap().to_owned();
    let argv = [ROCWORKER, "--root", &root, "partition", "set", "cores"];
    fresh(&machine);
    let all = calls(&argv, "renameat,renameat2,write");
    assert_eq!(machine.modes(), ["CPX/NPS1"; 2]);
    // A file is put in place by its rename, and the driver's files are written.
    let all: Vec<_> =
        all.into_iter().filter(|call| call.name != "write" || call.line.contains("/sys/")).collect();
    assert!(all.len() > 10 && all.iter().any(|call| call.name == "write"), "{all:#?}");
    for call in &all {
        fresh(&machine);
        assert!(killed_at(&argv, call), "{call:?}");
        recovers(&machine, &call.line);
    }
}

#[test]
fn real_kills_at_twenty_moments_of_set_and_reset_leave_what_the_next_set_finishes() {
    kills_leave_what_the_next_set_finishes(20);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_kills_at_a_hundred_moments_of_set_and_reset_leave_what_the_next_set_finishes() {
    kills_leave_what_the_next_set_finishes(100);
}

/// Kills a set and a reset by turns, at moments that lie evenly over the time that a whole set takes.
fn kills_leave_what_the_next_set_finishes(moments: u32) {
    if !fuse::require() {
        return;
    }
    let machine = machine();
    fresh(&machine);
    let began = Instant::now();
    answer(machine.root(), "partition set cores");
    let whole = began.elapsed();
    for n in 0..moments {
        fresh(&machine);
        let mut command = Command::new(ROCWORKER);
        command.arg("--root").arg(machine.root());
        if n % 2 == 0 {
            command.args(["partition", "set", "cores"]);
        } else {
            assert!(answered(machine.root(), "partition set cores").status.success());
            command.args(["partition", "reset"]);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let after = whole.mul_f64(f64::from(n) / f64::from(moments));
        std::thread::sleep(after.min(Duration::from_secs(5)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (again, modes) = match n % 2 {
            0 => ("partition set cores", ["CPX/NPS1"; 2]),
            _ => ("partition reset", ["DPX/NPS1", "SPX/NPS1"]),
        };
        let what = format!("{again}, killed after {} ms", after.as_millis());
        let output = answered(machine.root(), again);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // One that was killed at its very end has ended.
        let has_ended = n % 2 == 1 && stderr.contains("rocworker has switched no card since this boot");
        assert!(output.status.success() || has_ended, "{what}: {stderr}");
        assert_eq!(machine.modes(), modes, "{what}: {stderr}");
    }
}

#[test]
fn real_two_sets_at_once_are_one_and_a_sentence() {
    if !fuse::require() {
        return;
    }
    let machine = machine();
    fresh(&machine);
    // A process keeps the first one waiting.
    machine.change(|driver| driver.processes.push(4711));
    let mut command = Command::new(ROCWORKER);
    command.arg("--root").arg(machine.root()).args(["partition", "set", "cores", "--wait", "60"]);
    let first = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let state = machine.root().join("var/lib/rocworker/partition.json");
    support::waiting::eventually("the first waits", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("draining"))
    });
    let (code, stderr) = super::machine::refused(machine.root(), "partition set whole");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("another switch of cards is at work"), "{stderr}");
    machine.change(|driver| driver.processes.clear());
    let output = first.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.modes(), ["CPX/NPS1"; 2]);
}

#[test]
fn real_another_profile_takes_the_place_of_a_killed_set_which_means_nothing_after_a_boot() {
    if !fuse::require() {
        return;
    }
    let machine = machine();
    fresh(&machine);
    machine.change(|driver| driver.processes.push(4711));
    let mut command = Command::new(ROCWORKER);
    command.arg("--root").arg(machine.root()).args(["partition", "set", "cores"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let state = machine.root().join("var/lib/rocworker/partition.json");
    support::waiting::eventually("it waits", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("draining"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    machine.change(|driver| driver.processes.clear());
    answer(machine.root(), "partition set whole");
    assert_eq!(machine.modes(), ["SPX/NPS1"; 2]);
    answer(machine.root(), "partition reset");
    assert_eq!(machine.modes(), ["DPX/NPS1", "SPX/NPS1"]);
    machine.put(&BTreeMap::from([("proc/sys/kernel/random/boot_id", "second\n".to_owned())]));
    machine.change(Driver::reboot);
    answer(machine.root(), "partition set one");
    assert_eq!(machine.modes(), ["DPX/NPS1", "SPX/NPS1"]);
}
