//! A crash in a hook, at each of its writes, and the same hook again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::laid::Laid;

use crate::charm::in_process::Unit;
use crate::charm::machines::worker;

/// Stands for a program that a package has put on the machine: nothing of it is read.
const PACKAGED: &str = "/usr/bin/rocworker";

/// Where the charm puts its own program.
const COPY: &str = "/usr/local/bin/rocworker";

#[test]
fn a_hook_that_was_killed_ends_as_if_it_had_not_been_when_it_runs_again() {
    let paths = is_as_if_it_had_not_been(&worker(), &Unit::new(Path::new(PACKAGED)));
    assert!(!paths.contains(Path::new(COPY)), "{paths:?}");
}

/// Where no package is, the charm puts its own program on the machine, and takes it away again.
#[test]
#[ignore = "cargo xtask test --all"]
fn a_hook_that_was_killed_with_the_charms_own_program_ends_as_if_it_had_not_been() {
    let laid = worker();
    for path in ["usr/bin/rocworker", "usr/lib/rocworker/runc-amd-wrapper"] {
        fs::remove_file(laid.path(path)).unwrap();
    }
    let paths = is_as_if_it_had_not_been(&laid, &Unit::with_its_own_programs());
    assert!(paths.contains(Path::new(COPY)), "{paths:?}");
}

/// The paths at whose writes the hooks crashed.
fn is_as_if_it_had_not_been(laid: &Laid, unit: &Unit) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
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
            paths.insert(point.path.clone());
            laid.put_back(left);
            unit.run(laid, path);
            let off = laid.tree().differences(&[end]);
            assert!(off.is_empty(), "{path} crashed at {} of {}: {off:?}", point.call, point.path.display());
        }
    }
    paths
}

#[test]
fn an_undo_by_action_that_was_killed_is_ended_by_the_next_hook() {
    let (laid, unit) = (worker(), Unit::new(Path::new(PACKAGED)));
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
