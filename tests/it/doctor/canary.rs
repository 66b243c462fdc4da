//! `doctor --canary` where no container may be started, and the command that it runs inside of one.

use std::process::Command;

use layout::Machine;
use serde_json::Value;

use super::{PROGRAM, assert_check, find, laid_out, run};

#[test]
fn beneath_another_root_no_container_is_started() {
    let root = laid_out(&Machine::demo());
    let output = run(root.path(), &["--output", "json", "--canary"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_check(find(&answer, "canary", ""), "skipped", "commands are not run with --root", "");
    let without = run(root.path(), &["--output", "json"]);
    assert!(!String::from_utf8_lossy(&without.stdout).contains("canary"), "it is asked for alone");
    let alone = run(root.path(), &["--canary-limit", "5"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
}

#[test]
fn the_probe_tells_how_far_each_open_got_and_is_in_no_help() {
    let probe = |arguments: &[&str]| Command::new(PROGRAM).arg("probe").args(arguments).output().unwrap();
    let missing = ["--kfd", "/no/such", "--render", "/dev/null", "--stranger", "1:3"];
    let output = probe(&missing);
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // ENOENT; /dev/null's own number. Whether a node can be made is this user's to say.
    assert_eq!(
        (&answer["kfd"]["unopened"], &answer["render"]["got"]),
        (&2.into(), &"1:3".into()),
        "{answer}"
    );
    // ENOTTY: it opens, and is not KFD.
    let other = probe(&["--kfd", "/dev/null", "--render", "/dev/null", "--stranger", "1:3"]);
    let answer: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!(answer["kfd"]["unanswered"], 25, "{answer}");
    assert_eq!(probe(&["--kfd", "/x", "--render", "/x", "--stranger", "x"]).status.code(), Some(2));
    for arguments in [&["--help"][..], &["man"]] {
        let said = Command::new(PROGRAM).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).to_lowercase();
        assert!(said.contains("doctor") && !said.contains("probe"), "{said}");
    }
}
