//! The state that a killed run leaves in the receipt, and what the next run does with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::machine::{Machine, Ran, desired, edited, owned};
use edit::Format;
use serde_json::{Value, json};

const RECEIPT: &str = "var/lib/rocworker/receipt.json";

/// The receipt as a run leaves it that is killed while it writes this path.
fn killed_while_writing(machine: &Machine, path: &str, change: impl FnOnce(&mut Value)) {
    let mut receipt: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
    receipt["writing"] = json!(path);
    change(&mut receipt);
    machine.put(RECEIPT, &receipt.to_string());
}

/// After a power cut, a daemon may have the pid of the killed run.
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

/// Killed between the exchange of two files and the comparison: what somebody had written in that moment is put back, and
/// counts as any unmanaged edit. What was displaced as it was meant to be goes.
#[test]
fn what_a_killed_run_has_displaced_is_put_back_where_it_is_somebodys_edit() {
    for (beside, is_theirs) in [("theirs\n", true), ("old\n", false), ("new\n", false)] {
        let machine = Machine::new();
        let (old, new) = (desired([owned("/etc/ours", "old\n")]), desired([owned("/etc/ours", "new\n")]));
        machine.apply(&old);
        let before: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
        machine.apply(&new);
        let left = "/etc/.rocworker-ours.17";
        machine.put(left, beside);
        killed_while_writing(&machine, "/etc/ours", |receipt| {
            let older = before["entries"][0]["states"][0].clone();
            let to = receipt["entries"][0]["states"][0].clone();
            receipt["replacing"] = json!({"from": older, "to": to});
        });
        let ran = machine.undo();
        assert!(!machine.path(left).exists(), "{beside}");
        assert_eq!(machine.path("/etc/ours").exists(), is_theirs, "{beside}: {ran:?}");
        if is_theirs {
            assert_eq!(machine.text("/etc/ours"), beside);
            assert!(ran.left[0].text.starts_with("somebody has changed it since"), "{ran:?}");
        }
        assert_eq!(machine.is_bare(), !is_theirs);
    }
}

/// A killed run displaces an edit, and the file is edited once more before the next run: neither edit is lost. Each run
/// names the older one until somebody removes it. Half of a new file is no edit.
#[test]
fn an_edit_that_a_killed_run_has_displaced_is_kept_and_named_when_the_file_is_edited_again() {
    let name = |text: &str| format!("the file says {text:?}");
    for again in ["theirs, again\n", "old\n"] {
        let machine = Machine::new();
        let (old, new) = (desired([owned("/etc/ours", "old\n")]), desired([owned("/etc/ours", "new\n")]));
        machine.apply(&old);
        let before: Value = serde_json::from_str(&machine.text(RECEIPT)).unwrap();
        machine.apply(&new);
        let pid = std::process::id();
        machine.put(&format!("/etc/.rocworker-ours.{pid}"), "theirs\n");
        let half = "/etc/.rocworker-ours.17";
        machine.put(half, "ne");
        fs::set_permissions(machine.path(half), fs::Permissions::from_mode(0o200)).unwrap();
        machine.put("/etc/ours", again);
        killed_while_writing(&machine, "/etc/ours", |receipt| {
            let older = before["entries"][0]["states"][0].clone();
            let to = receipt["entries"][0]["states"][0].clone();
            receipt["entries"][0]["states"].as_array_mut().unwrap().push(older.clone());
            receipt["replacing"] = json!({"from": older, "to": to});
        });
        let kept = format!("/etc/.rocworker-ours.{pid}.edit");
        let is_named = |ran: &Ran| ran.left.iter().any(|left| left.path == Path::new(&kept));
        for run in 0..2 {
            let ran = machine.apply(&new);
            assert_eq!(machine.text(&kept), "theirs\n", "{}", name(again));
            assert!(is_named(&ran), "{}, run {run}: {ran:?}", name(again));
        }
        assert!(!machine.path(half).exists(), "{}", name(again));
        fs::remove_file(machine.path(&kept)).unwrap();
        assert!(!is_named(&machine.apply(&new)), "{}", name(again));
        assert!(!machine.text(RECEIPT).contains("displaced"), "{}", name(again));
    }
}

/// The file was written: what was managed before it is managed no longer, and a rival who puts it back is one.
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
