//! kill -9 in a hook, at calls of the kernel that change the tree, and the same hook again.

use std::fs;

use support::killed::{Call, TREE, calls, killed_at};
use support::laid::Laid;
use support::real;

use crate::machines::worker;
use crate::unit::Unit;

/// Every so many calls: each kind is made by apply many times, and tests/setup kills apply at each of them.
const SAMPLE: usize = 13;

#[test]
fn real_a_hook_that_was_killed_ends_as_if_it_had_not_been_when_it_runs_again() {
    if !real::require(&["python3", "env", "strace"]) {
        return;
    }
    is_as_if_it_had_not_been(&worker(), &Unit::new());
}

/// Where no package is, the charm puts its own program on the machine, and takes it away again.
#[test]
fn real_a_hook_that_was_killed_with_the_charms_own_program_ends_as_if_it_had_not_been() {
    if !real::require(&["python3", "env", "strace", "strip"]) {
        return;
    }
    let laid = worker();
    for path in ["usr/bin/rocworker", "usr/lib/rocworker/runc-amd-wrapper"] {
        fs::remove_file(laid.path(path)).unwrap();
    }
    is_as_if_it_had_not_been(&laid, &Unit::with_its_own_programs());
}

fn is_as_if_it_had_not_been(laid: &Laid, unit: &Unit) {
    let run = |path: &str| unit.run(laid.top(), path);
    let new = laid.all();
    run("hooks/install").well();
    let installed = laid.tree();
    let set_up = laid.all();
    unit.options(r#"{"compute-runtime":"rocm","gpu-device-ids":"0","tag":"a"}"#);
    run("hooks/config-changed").well();
    let changed = laid.tree();
    run("hooks/remove").well();
    let removed = laid.tree();
    let other = r#"{"compute-runtime":"rocm","gpu-device-ids":"0","tag":"a"}"#;
    let mut kills = 0;
    for (path, options, from, end) in [
        ("hooks/install", "{}", &new, &installed),
        ("hooks/config-changed", other, &set_up, &changed),
        ("hooks/remove", "{}", &set_up, &removed),
    ] {
        unit.options(options);
        laid.put_back(from);
        let argv = unit.argv(laid.top(), path, &[]);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let made = calls(&argv, TREE);
        let is_of_program = |call: &&Call| call.line.contains("/usr/local/bin>");
        let (sample, of_program) = (made.iter().step_by(SAMPLE), made.iter().filter(is_of_program));
        for call in sample.chain(of_program).chain(made.last()) {
            laid.put_back(from);
            assert!(killed_at(&argv, call), "{path} ended before {call:?}");
            kills += 1;
            run(path).well();
            let off = laid.tree().differences(&[end]);
            assert!(off.is_empty(), "{path} killed at {}: {off:?}", call.line);
        }
    }
    assert!(kills > 10, "{kills} kills");
}

#[test]
fn real_an_undo_by_action_that_was_killed_is_ended_by_the_next_hook() {
    if !real::require(&["python3", "env", "strace"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let run = |path: &str| unit.run(laid.top(), path);
    run("hooks/install").well();
    let (set_up, set_up_tree) = (laid.all(), laid.tree());
    run("actions/undo").well();
    let undone = laid.tree();
    let argv = unit.argv(laid.top(), "actions/undo", &[]);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    laid.put_back(&set_up);
    let made = calls(&argv, TREE);
    assert!(made.len() > SAMPLE, "{made:?}");
    for call in made.iter().step_by(SAMPLE).chain(made.last()) {
        laid.put_back(&set_up);
        assert!(killed_at(&argv, call), "it ended before {call:?}");
        let is_begun = laid.text("var/lib/rocworker/charm.json").contains("\"is_taken_back\": true");
        let status = run("hooks/update-status").status();
        let off = laid.tree().differences(&[if is_begun { &undone } else { &set_up_tree }]);
        assert!(off.is_empty(), "killed at {}: {off:?}", call.line);
        assert_eq!(status.starts_with("blocked: Taken back by the action undo: "), is_begun, "{status}");
    }
}
