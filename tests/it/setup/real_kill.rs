//! What the crashes of [`crate::setup::real_crashes`] stand for: apply and undo, killed by a real kill -9.
//!
//! Each call of the kernel that strace sees beneath the machine is a crash point, in the same order; and a process that is
//! killed at a call leaves what its crash point says.

use std::path::Path;

use support::crashes::{CrashPoint, Crashes};
use support::killed::{Call, WRITES, calls, is_temporary, killed_at};
use support::real;
use support::tree::Tree;

use crate::setup::in_process;
use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::starting_states::{self, START_WITH_EVERY_FILE};

/// Every so many calls a process is killed.
const SAMPLE: usize = 11;

/// rocworker's own memory holds moments, which differ from run to run.
const OWN: &str = "var/lib/rocworker";

#[test]
fn real_kill_9_of_an_apply_leaves_what_its_crash_point_says() {
    if !real::require_root(&["strace"]) {
        return;
    }
    let (laid, program) = begun();
    leaves_what_its_crash_point_says(&laid, &program, "apply");
}

#[test]
fn real_kill_9_of_an_undo_leaves_what_its_crash_point_says() {
    if !real::require_root(&["strace"]) {
        return;
    }
    let (laid, program) = begun();
    in_process::run(&laid, &program, "apply");
    leaves_what_its_crash_point_says(&laid, &program, "undo");
}

fn begun() -> (Laid, Program) {
    let (laid, program) = (starting_states::machine(), Program::new());
    // A child's end is a signal, whose handler writes into a pipe at any time: strace would count that write too.
    std::fs::remove_file(laid.path("var/lib/dpkg/status")).unwrap();
    START_WITH_EVERY_FILE(&laid, &program);
    (laid, program)
}

fn leaves_what_its_crash_point_says(laid: &Laid, program: &Program, command: &str) {
    let from = laid.all();
    let crashes = in_process::crashes(laid, program, command);
    let ended = laid.tree();
    let argv = program.argv(laid, &[command]);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    laid.put_back(&from);
    let made: Vec<Call> = calls(&argv, WRITES);
    let made: Vec<&Call> = made.iter().filter(|call| is_beneath(call, laid.top())).collect();
    let points: Vec<&CrashPoint> = crashes.points.iter().filter(|point| is_traced(point)).collect();
    let named: Vec<&str> = points.iter().map(|point| point.call).collect();
    let traced: Vec<&str> = made.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(named, traced, "{command}: {points:#?} {made:#?}");

    let mut kills = 0;
    for (call, point) in made.iter().zip(&points).step_by(SAMPLE) {
        let when = format!("{command} killed at {}({})", call.line, call.nth);
        laid.put_back(&from);
        assert!(killed_at(&argv, call), "{when}: it ended before");
        same(&laid.all(), left(&crashes, point), &when);
        let (_, said) = program.run(laid, &[command]);
        let off = laid.tree().differences(&[&ended]);
        assert!(off.is_empty(), "{when}, then {command} ({said}):\n{}", off.join("\n"));
        kills += 1;
    }
    assert!(kills > 10, "{command}: {kills} kills");
}

fn is_beneath(call: &Call, top: &Path) -> bool {
    call.name != "flock" && call.line.contains(top.to_str().unwrap())
}

/// strace is told of no calls that open files or change their attributes.
fn is_traced(point: &CrashPoint) -> bool {
    WRITES.split(',').any(|call| call == point.call)
}

fn left<'a>(crashes: &'a Crashes, point: &CrashPoint) -> &'a Tree {
    &crashes.states[point.state]
}

#[track_caller]
fn same(killed: &Tree, crashed: &Tree, when: &str) {
    let [killed, crashed] = [killed, crashed].map(comparable);
    let off = killed.differences(&[&crashed]);
    assert!(off.is_empty(), "{when}:\n{}", off.join("\n"));
}

/// Without the number of the process at the end of a temporary file's name.
fn comparable(tree: &Tree) -> Tree {
    tree.clone().without(&[OWN]).renamed(|path| {
        let name = path.to_str()?.trim_end_matches(|c: char| c.is_ascii_digit());
        is_temporary(path).then(|| name.into())
    })
}
