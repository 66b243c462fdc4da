//! The oracle is only worth asking if it refuses what it should.
#![allow(clippy::disallowed_methods, reason = "a test lays out its files and runs the program under test")]

use std::process::{Command, Output};

use tempfile::TempDir;

/// A spec as rocworker lays it out: no numbers, the shared node in the global edits. `/dev/null` and
/// `/dev/zero` stand in for nodes, because they are there on every machine.
const GOOD: &str = r#"{"cdiVersion":"0.5.0","kind":"amd.com/gpu","containerEdits":{"deviceNodes":[
    {"path":"/dev/null","fileMode":438,"gid":992,"permissions":"rw"}]},
  "devices":[
    {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/zero","fileMode":432,"gid":992,"permissions":"rw"}]}},
    {"name":"0000:64:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/zero","permissions":"rw"}]}}]}"#;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn oracle(subcommand: &str, folder: &TempDir, names: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cdi-oracle");
    Command::new(program).arg(subcommand).arg(folder.path()).args(names).output().unwrap()
}

#[test]
fn a_good_spec_is_listed_and_its_nodes_are_injected_with_the_numbers_of_the_nodes_themselves() {
    let folder = folder(&[("amd.json", GOOD)]);
    let listed = oracle("list", &folder, &[]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "amd.com/gpu=0\namd.com/gpu=0000:64:00.0\n");
    let injected = oracle("inject", &folder, &["amd.com/gpu=0"]);
    assert_eq!(String::from_utf8_lossy(&injected.stdout), "/dev/null c 1:3\n/dev/zero c 1:5\n");
}

#[test]
fn what_the_crate_refuses_is_a_failure_with_its_reason() {
    let same_name_twice = GOOD.replace("0000:64:00.0", "0");
    let newer_content = GOOD.replace(r#""devices":["#, r#""annotations":{"a":"b"},"devices":["#);
    let unknown_version = GOOD.replace("0.5.0", "9.9.9");
    let unknown_field = GOOD.replace("fileMode", "filemode");
    let wrong_type = GOOD.replace("432", r#""0660""#);
    let cases = [
        ("a name that stands twice", vec![("amd.json", same_name_twice.as_str())], "multiple device 0"),
        ("a second file of the kind", vec![("amd.json", GOOD), ("other.json", GOOD)], "conflicting device"),
        ("annotations at 0.5.0", vec![("amd.json", newer_content.as_str())], "at least v0.6.0"),
        ("an unknown version", vec![("amd.json", unknown_version.as_str())], "invalid"),
        ("an unknown field", vec![("amd.json", unknown_field.as_str())], "spec file"),
        ("a mode that is text", vec![("amd.json", wrong_type.as_str())], "spec file"),
        ("half a file", vec![("amd.json", &GOOD[..200])], "spec file"),
        ("a file of another extension", vec![("amd.txt", GOOD)], "names a device"),
    ];
    for (what, files, reason) in cases {
        let answer = oracle("list", &folder(&files), &[]);
        let said = String::from_utf8_lossy(&answer.stderr);
        assert_eq!(answer.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains(reason), "{what}: {said}");
        assert!(answer.stdout.is_empty(), "{what}");
    }
}

#[test]
fn an_unknown_device_and_a_node_that_is_not_there_are_refused() {
    let missing_node = GOOD.replace("/dev/zero", "/dev/not-there");
    for (text, name) in [(GOOD, "amd.com/gpu=7"), (missing_node.as_str(), "amd.com/gpu=0")] {
        let answer = oracle("inject", &folder(&[("amd.json", text)]), &[name]);
        assert_eq!(answer.status.code(), Some(1), "{name}");
    }
}
