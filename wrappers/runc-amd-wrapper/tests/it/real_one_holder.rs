//! A GPU has one holder and a container is ended for its own lease alone, also where an id or a bundle is used twice
//! and where cards have other numbers than the policy has.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::real;

use crate::machine::creates::{holder, sleeper, spawn, wait_for};
use crate::machine::{Machine, Program};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "flock"];

/// The render nodes that runc made a container with.
fn nodes_of(machine: &Machine, id: &str) -> Vec<u32> {
    let state = std::fs::read_to_string(machine.path(&format!("R/{id}/state.json"))).unwrap_or_default();
    (128..136).filter(|n| state.contains(&format!("/dev/dri/renderD{n}\""))).collect()
}

fn creates(machine: &Machine, id: &str, env: &[&str]) -> (bool, String) {
    let bundle = machine.bundle(id, sleeper(env));
    let succeeded = spawn(machine, &bundle, id).wait().unwrap().success();
    (succeeded, std::fs::read_to_string(bundle.join("stderr")).unwrap())
}

/// Somebody has the lock for as long as this lives.
fn hold_the_lock(machine: &Machine) -> std::process::Child {
    let lock = machine.path("run/rocworker/lock");
    let holder = std::process::Command::new("flock")
        .arg("--no-fork")
        .arg(&lock)
        .args(["sleep", "1000"])
        .spawn()
        .unwrap();
    let is_free = || {
        std::process::Command::new("flock")
            .arg("--nonblock")
            .arg(&lock)
            .arg("true")
            .status()
            .unwrap()
            .success()
    };
    wait_for("the lock is held", || !is_free());
    holder
}

/// Two creates wait with one bundle. The first one's runtime reads it late, so that what the second one writes into it
/// would be what both get.
#[test]
fn real_two_that_wait_with_one_bundle_do_not_both_run_with_the_gpu_of_one() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({"sharing": "exclusive", "wait_limit_s": 30}));
    for gpu in 0..8 {
        let (succeeded, reported) =
            creates(&machine, &format!("h{gpu}"), &[&format!("AMD_VISIBLE_DEVICES={gpu}")]);
        assert!(succeeded, "{reported}");
    }
    let late = machine.path("late-runc");
    std::fs::write(&late, "#!/bin/sh\nsleep 0.5\nexec runc \"$@\"\n").unwrap();
    std::fs::set_permissions(&late, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    machine.policy_of_eight(&json!({
        "sharing": "exclusive", "wait_limit_s": 30, "runtime": late.to_str().unwrap()
    }));
    let bundle = machine.bundle("both", sleeper(&["AMD_GPU_COUNT=1", "AMD_GPU_WAIT=30"]));
    let waits = |id: &str| {
        let create = ["create", "--bundle", bundle.to_str().unwrap(), id];
        let reported = std::fs::File::create(bundle.join(id)).unwrap();
        let mut command = machine.command(&Program::Wrapper.path(), &create);
        command.stdout(Stdio::null()).stderr(reported).spawn().unwrap()
    };
    let tickets = || std::fs::read_dir(machine.path("run/rocworker/waiting")).map_or(0, Iterator::count);
    let mut creates = Vec::new();
    for (number, id) in ["a", "b"].into_iter().enumerate() {
        creates.push((id, waits(id)));
        wait_for("it waits", || tickets() == number + 1);
    }
    for id in ["h0", "h1"] {
        machine.runc(&["delete", "--force", id]);
    }
    let mut running = 0;
    for (id, mut create) in creates {
        if create.wait().unwrap().success() {
            running += 1;
            let nodes = nodes_of(&machine, id);
            assert_eq!(nodes.len(), 1, "{id}: {nodes:?}");
            assert_eq!(holder(&machine, nodes[0]).as_deref(), Some(id));
        } else {
            let reported = std::fs::read_to_string(bundle.join(id)).unwrap();
            assert!(reported.contains("another create is at work on this bundle"), "{reported}");
        }
    }
    assert_eq!(running, 1);
}

/// An id that is used again, by plain runc or by a container that asks for nothing, while the lease of the earlier
/// container is still there.
#[test]
fn real_a_later_container_of_an_id_neither_keeps_an_earlier_ones_lease_nor_is_ended_for_it() {
    if !real::require_root(NEEDED) {
        return;
    }
    for by in [Program::Runc, Program::Wrapper] {
        let machine = Machine::with_eight_gpus();
        machine.policy_of_eight(&json!({"sharing": "exclusive", "idle_grace_s": 0}));
        let (succeeded, reported) = creates(&machine, "again", &["AMD_VISIBLE_DEVICES=7"]);
        assert!(succeeded, "{reported}");
        assert!(machine.wrapper(&["delete", "--force", "again"]).status.success());
        assert_eq!(holder(&machine, 135).as_deref(), Some("again"), "no decision has cleared it away");
        let mut lock = hold_the_lock(&machine);
        let bundle = machine.bundle("again", sleeper(&[]));
        machine.start_sleeping(by, &bundle, "again");
        lock.kill().unwrap();
        lock.wait().unwrap();
        let (succeeded, reported) = creates(&machine, "wants", &["AMD_VISIBLE_DEVICES=7"]);
        assert!(succeeded, "{reported}");
        assert_eq!(holder(&machine, 135).as_deref(), Some("wants"));
        let state: Value = serde_json::from_str(&machine.runc(&["state", "again"]).stdout).unwrap();
        assert_eq!(state["status"], "running");
    }
}

#[test]
fn real_who_gets_gpus_unasked_waits_for_a_decision_only_for_a_moment() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({"sharing": "shared", "default": "all"}));
    assert!(creates(&machine, "first", &[]).0);
    let mut lock = hold_the_lock(&machine);
    let began = Instant::now();
    let (succeeded, reported) = creates(&machine, "silent", &[]);
    // A hundredth of what it would wait that asks.
    assert!(succeeded && began.elapsed() < Duration::from_secs(10), "{reported}");
    lock.kill().unwrap();
    lock.wait().unwrap();
    assert!(nodes_of(&machine, "silent").is_empty() && nodes_of(&machine, "first").len() == 8);
}
