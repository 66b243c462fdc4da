//! What a killed run leaves in the receipt, and what the next one makes of it.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

mod machine;

use machine::{Machine, desired, edited, owned};
use reconcile::edit::Format;
use serde_json::{Value, json};

const RECEIPT: &str = "var/lib/rocworker/receipt.json";

/// The receipt as a run leaves it that is killed while it writes this path.
fn killed_while_writing(machine: &Machine, path: &str, change: impl FnOnce(&mut Value)) {
    let mut receipt: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
    receipt["writing"] = json!(path);
    change(&mut receipt);
    machine.put(RECEIPT, &receipt.to_string());
}

/// After a power cut the number of its process is some daemon's.
#[test]
fn a_temporary_file_goes_also_when_its_process_seems_to_live() {
    let machine = Machine::new();
    let wanted = desired([owned("/etc/ours", "ours\n")]);
    machine.apply(&wanted);
    let left = format!("/etc/.rocworker-ours.{}", std::process::id());
    machine.put(&left, "half");
    machine.apply(&wanted);
    assert!(machine.path(&left).exists(), "somebody may be at work");
    killed_while_writing(&machine, "/etc/ours", |_| {});
    machine.apply(&wanted);
    assert!(!machine.path(&left).exists());
    assert!(!machine.text(RECEIPT).contains("writing"));
}

/// The file was written: what was ours before it is ours no longer, and a rival who puts it back is one.
#[test]
fn of_a_run_that_was_killed_after_its_file_was_written_only_the_newest_state_stays_ours() {
    let machine = Machine::new();
    let (old, new) = (desired([owned("/etc/ours", "old\n")]), desired([owned("/etc/ours", "new\n")]));
    machine.apply(&old);
    let before: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
    machine.apply(&new);
    killed_while_writing(&machine, "/etc/ours", |receipt| {
        let older = before["entries"][0]["states"][0].clone();
        receipt["entries"][0]["states"].as_array_mut().unwrap().push(older);
    });
    machine.apply(&new);
    let receipt: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
    assert_eq!(receipt["entries"][0]["states"].as_array().unwrap().len(), 1);
}

#[test]
fn a_path_that_is_to_be_ours_in_another_way_is_refused_until_it_was_taken_back() {
    let machine = Machine::new();
    machine.put("/etc/it.json", "{\"theirs\":1}\n");
    let before = machine.tree();
    let (whole, keys) = (
        desired([owned("/etc/it.json", "{}\n")]),
        desired([edited("/etc/it.json", Format::Json, &[(&["ours"], json!(1))])]),
    );
    for (first, second) in [(&whole, &keys), (&keys, &whole)] {
        machine.apply(first);
        let applied = machine.tree();
        let ran = machine.apply(second);
        assert!(ran.blocked[0].text.contains("by an earlier configuration"), "{ran:?}");
        assert_eq!(machine.tree(), applied);
        machine.undo();
        assert_eq!(machine.tree(), before, "what was there before is not forgotten");
    }
}
