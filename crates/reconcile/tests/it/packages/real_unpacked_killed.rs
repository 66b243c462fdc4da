//! kill -9 while an archive becomes a folder, and while the folder goes: at its place it is whole or not there, and the
//! next run takes away what is left.

use std::collections::BTreeMap;
use std::fs;

use crate::packages::worker::{CHILD, Order, Worker};
use lab::machine::{Machine, SHARED};
use lab::repository::sha256;
use lab::systems;
use lab::tarball::Tarball;
use support::killed::{Call, TREE};
use support::real;
use support::tree::Tree;

const FOLDER: &str = "/opt/rocm-7.0";
/// Of similar calls in a row, one in so many is tried; the second number applies with `cargo xtask test
/// --all`.
const STEP: [usize; 2] = [7, 2];

/// The calls of the one thread that the program does its work on: another only waits for it. It starts no other program.
fn calls(machine: &Machine) -> Vec<Call> {
    let trace = format!("trace={TREE}");
    let log = format!("{SHARED}/calls");
    let strace = ["strace", "-f", "-qq", "-y", "-s", "200", "-e", "signal=none", "-e", &trace, "-o", &log];
    machine.call(&[&strace[..], &CHILD].concat()).well();
    let mut counts = BTreeMap::<String, u32>::new();
    let text = fs::read_to_string(machine.shared().join("calls")).unwrap();
    let call = |line: &str| {
        let line = line.split_once(' ')?.1.trim_start();
        let name = line.split_once('(')?.0.to_owned();
        let nth = counts.entry(name.clone()).or_default();
        *nth += 1;
        Some(Call { name, nth: *nth, line: line.to_owned() })
    };
    text.lines().filter_map(call).collect()
}

/// Runs it until it is about to make this call.
#[track_caller]
fn killed_at(machine: &Machine, call: &Call) {
    let inject = format!("inject={}:signal=KILL:when={}", call.name, call.nth);
    let trace = format!("trace={}", call.name);
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let output = machine.call(&[&strace[..], &CHILD].concat());
    assert!(output.status.code().is_none(), "{call:?}: {output:?}");
}

/// Calls that touch what is not only for the test.
fn ours(calls: Vec<Call>) -> Vec<Call> {
    let is_ours = |call: &Call| {
        ["/opt", "/var"].iter().any(|it| call.line.contains(it)) && !call.line.contains("/run/lab/")
    };
    calls.into_iter().filter(is_ours).collect()
}

fn some(calls: &[Call]) -> Vec<&Call> {
    let step = STEP[usize::from(real::is_all())];
    let is_meant = |(at, call): &(usize, &Call)| at % step == 0 || call.name == "renameat2";
    calls.iter().enumerate().filter(is_meant).map(|(_, call)| call).collect()
}

fn tree(machine: &Machine) -> Tree {
    machine.tree(&["opt", "var/cache", "var/lib/rocworker"])
}

/// Compares without the receipt, its history and its lock.
#[track_caller]
fn same(machine: &Machine, expected: &Tree, what: &str) {
    let off = tree(machine).differences(&[expected]);
    let is_kept = |line: &String| {
        let path = line.split(':').next().unwrap_or_default();
        let ours = ["", "/history.json", "/lock", "/receipt.json"];
        ours.iter().any(|it| path == format!("var/lib/rocworker{it}"))
    };
    let off: Vec<String> = off.into_iter().filter(|line| !is_kept(line)).collect();
    assert!(off.is_empty(), "{what}: {off:#?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_killed_while_a_folder_comes_or_goes_it_is_whole_or_not_there_and_the_next_run_sweeps() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, []);
    let machine = &worker.machine;
    let archive = Tarball::therock("7.0").bytes();
    machine.put("/root/a.tgz", &archive);
    let wanted = format!("unpack {FOLDER} file:/root/a.tgz {}", sha256(&archive));
    let apply = Order { wanted: vec![wanted], lock: 60, ..Order::default() };
    let undo = Order { lock: 60, ..Order::default() };
    worker.run(&apply);
    worker.run(&undo);
    let bare = tree(machine);

    worker.tell(&apply);
    let coming = ours(calls(machine));
    let whole = tree(machine);
    worker.tell(&undo);
    let going = ours(calls(machine));
    same(machine, &bare, "undone");
    assert!(coming.len() > 18 && going.len() > 8, "{coming:#?} {going:#?}");

    let goes_on = |at: usize, call: &Call| {
        whole_or_not_there(machine, &whole, call);
        if at.is_multiple_of(2) {
            let ran = worker.run(&apply);
            assert!(ran.failed.is_empty() && ran.blocked.is_empty(), "{call:?}: {ran:#?}");
            same(machine, &whole, &call.line);
        }
        let undone = worker.run(&undo);
        assert!(undone.is_bare && undone.left.is_empty(), "{call:?}: {undone:#?}");
        same(machine, &bare, &call.line);
    };
    for (at, call) in some(&coming).into_iter().enumerate() {
        worker.tell(&apply);
        killed_at(machine, call);
        goes_on(at, call);
    }
    for (at, call) in some(&going).into_iter().enumerate() {
        worker.run(&apply);
        worker.tell(&undo);
        killed_at(machine, call);
        goes_on(at, call);
    }
}

#[track_caller]
fn whole_or_not_there(machine: &Machine, whole: &Tree, call: &Call) {
    if fs::symlink_metadata(machine.outside(FOLDER)).is_err() {
        return;
    }
    let off = tree(machine).differences(&[whole]);
    let off: Vec<&String> = off.iter().filter(|line| line.starts_with("opt/rocm-7.0")).collect();
    assert!(off.is_empty(), "{call:?}: {off:#?}");
}
