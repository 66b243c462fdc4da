//! Two hooks at once on one machine: both charms' units, by two processes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use support::laid::Laid;
use support::real;
use support::waiting::eventually;

use crate::charm::machines::worker;
use crate::charm::record::Call;
use crate::charm::unit::Unit;

/// Tells Juju nothing until the gate is opened, and says that it waits there.
const WAITS: &str = "#!/bin/sh\n: > \"$STAND_IN/at-the-gate\"\nread -r _ < \"$STAND_IN/gate\"\n";

fn begun(unit: &Unit, laid: &Laid, path: &str) -> Child {
    let argv = unit.argv(laid.top(), path, &[]);
    let (program, arguments) = argv.split_first().unwrap();
    Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

#[test]
fn real_of_two_hooks_at_once_one_waits_and_neither_is_forgotten() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let laid = worker();
    let (first, second) = (Unit::named("rocworker/0"), Unit::named("other/0"));
    for agent in ["unit-rocworker-0", "unit-other-0"] {
        fs::create_dir_all(laid.path("var/lib/juju/agents").join(agent)).unwrap();
    }
    // The first has read and written what the charm remembers, and is to write it again.
    mkfifo(&first.folder().join("gate"), Mode::from_bits_truncate(0o600)).unwrap();
    fs::remove_file(first.folder().join("tools/application-version-set")).unwrap();
    first.program("application-version-set", WAITS);
    let mut one = begun(&first, &laid, "hooks/install");
    eventually("the first is at work", || first.folder().join("at-the-gate").exists());

    second.forget();
    let mut other = begun(&second, &laid, "hooks/install");
    let waits = |unit: &Unit| {
        let is_told = |call: &Call| call.words().join(" ").contains("waiting up to 60 s for another hook");
        unit.pending().iter().any(is_told)
    };
    eventually("the second waits or has ended", || waits(&second) || other.try_wait().unwrap().is_some());
    fs::OpenOptions::new().write(true).open(first.folder().join("gate")).unwrap().write_all(b"\n").unwrap();
    assert!(one.wait().unwrap().success() && other.wait().unwrap().success());

    let state: Value = serde_json::from_str(&laid.text("var/lib/rocworker/charm.json")).unwrap();
    assert_eq!(state["units"], json!(["rocworker/0", "other/0"]));
    assert!(waits(&second), "{:?}", second.pending());
    // What a forgotten unit would lose by the other's removal.
    first.run(laid.top(), "hooks/remove").well();
    assert!(laid.path("etc/cdi/amd.json").exists());
    second.run(laid.top(), "hooks/remove").well();
    assert!(!laid.path("etc/cdi/amd.json").exists());
}

#[test]
fn real_a_hook_that_is_given_no_turn_says_why_and_changes_nothing() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let lock = laid.path("var/lib/rocworker/charm.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    symlink("/nowhere", &lock).unwrap();
    let before = laid.tree();
    for (path, begin) in [("hooks/install", "Installation failed: "), ("hooks/remove", "Removal failed: ")] {
        let told = unit.run(laid.top(), path).calls;
        let text = format!("{begin}cannot lock {}", lock.display());
        let is_said = |tool: &str, word: &str| {
            told.iter().any(|call| {
                let words = call.words().join(" ");
                call.name() == tool && words.contains(word) && words.contains(&text)
            })
        };
        assert!(is_said("status-set", "blocked") && is_said("juju-log", "ERROR"), "{path}: {told:?}");
    }
    let told = unit.run(laid.top(), "actions/apply").well();
    assert!(told.iter().any(|call| call.name() == "action-fail"), "{told:?}");
    assert_eq!(laid.tree(), before);
}
