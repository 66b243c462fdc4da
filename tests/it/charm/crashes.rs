//! A crash in a hook, at each of its writes, and the same hook again.

use std::fs;

use reconcile::Digest;
use serde_json::{Value, json};
use support::laid::WRAPPER;

use crate::charm::in_process::Unit;
use crate::charm::machines::worker;

/// Where a charm without a package put its copies.
const COPIES: [&str; 2] = ["usr/local/bin/rocworker", "usr/local/bin/rocworker-exporter"];
const STATE: &str = "var/lib/rocworker/charm.json";

#[test]
fn a_hook_that_was_killed_ends_as_if_it_had_not_been_when_it_runs_again() {
    let (laid, unit) = (&worker(), &Unit::new());
    let new = laid.all();
    unit.run(laid, "hooks/install");
    let installed = laid.tree();
    let set_up = laid.all();
    let other = r#"{"compute-runtime":"rocm","gpu-device-ids":"0","tag":"a"}"#;
    unit.options(other);
    unit.run(laid, "hooks/config-changed");
    let changed = laid.tree();
    unit.run(laid, "hooks/remove");
    let removed = laid.tree();
    for (path, options, from, end) in [
        ("hooks/install", "{}", &new, &installed),
        ("hooks/config-changed", other, &set_up, &changed),
        ("hooks/remove", "{}", &set_up, &removed),
    ] {
        unit.options(options);
        laid.put_back(from);
        let crashes = unit.crashes(laid, path);
        let written = laid.all().differences(&[from]).len();
        assert!(crashes.states.len() > written, "{path} has changed {written} paths: {:?}", crashes.points);
        for (point, left) in crashes.first_points() {
            laid.put_back(left);
            unit.run(laid, path);
            let off = laid.tree().differences(&[end]);
            assert!(off.is_empty(), "{path} crashed at {} of {}: {off:?}", point.call, point.path.display());
        }
    }
}

/// The charm that carries a package takes over from one that copied its programs.
#[test]
fn an_upgrade_that_was_killed_leaves_no_copy_and_nothing_that_names_one() {
    let (laid, unit) = (worker(), Unit::new());
    laid.put("run/systemd/system/.keep", "");
    let packaged = ["usr/bin/rocworker", "usr/bin/rocworker-exporter", "usr/lib/rocworker/runc-amd-wrapper"];
    let package = packaged.map(|path| (path, laid.text(path)));
    packaged.iter().for_each(|path| fs::remove_file(laid.path(path)).unwrap());
    COPIES.iter().for_each(|path| laid.put_program(path, "a copy\n"));
    laid.put_program("usr/local/lib/rocworker/runc-amd-wrapper", WRAPPER);
    unit.run(&laid, "hooks/install");
    let written = json!([Digest::of(b"a copy\n").as_str()]);
    let mut state: Value = serde_json::from_str(&laid.text(STATE)).unwrap();
    (state["program"], state["exporter"]) = (written.clone(), written);
    laid.put(STATE, &state.to_string());
    let boot = "etc/systemd/system/rocworker-boot.service";
    assert!(laid.text(boot).contains("ExecStart=/usr/local/bin/rocworker "), "{}", laid.text(boot));

    package.iter().for_each(|(path, text)| laid.put_program(path, text));
    let crashes = unit.crashes(&laid, "hooks/upgrade-charm");
    let upgraded = laid.tree();
    assert!(laid.text(boot).contains("ExecStart=/usr/bin/rocworker "), "{}", laid.text(boot));
    assert!(COPIES.iter().all(|path| !laid.path(path).exists()), "a copy comes first on PATH");
    for (point, left) in crashes.first_points() {
        laid.put_back(left);
        unit.run(&laid, "hooks/upgrade-charm");
        let off = laid.tree().differences(&[&upgraded]);
        assert!(off.is_empty(), "crashed at {} of {}: {off:?}", point.call, point.path.display());
    }
}

#[test]
fn an_undo_by_action_that_was_killed_is_ended_by_the_next_hook() {
    let (laid, unit) = (worker(), Unit::new());
    unit.run(&laid, "hooks/install");
    let (set_up, set_up_tree) = (laid.all(), laid.tree());
    let crashes = unit.crashes(&laid, "actions/undo");
    let undone = laid.tree();
    let changed = laid.all().differences(&[&set_up]).len();
    assert!(crashes.states.len() > changed, "it has changed {changed} paths: {:?}", crashes.points);
    for (point, left) in crashes.first_points() {
        laid.put_back(left);
        let is_begun = laid.text("var/lib/rocworker/charm.json").contains("\"is_taken_back\": true");
        let status = unit.run(&laid, "hooks/update-status");
        let off = laid.tree().differences(&[if is_begun { &undone } else { &set_up_tree }]);
        assert!(off.is_empty(), "crashed at {} of {}: {off:?}", point.call, point.path.display());
        assert_eq!(status.starts_with("blocked: Reverted by the action undo: "), is_begun, "{status}");
    }
}
