//! `rocworker detect` on a machine laid out for a test.

use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use serde_json::Value;

/// The answer of `detect --output json` on a machine whose device nodes are recorded.
///
/// # Panics
/// Where detect fails or prints anything but one JSON document.
pub fn detect(program: &Path, machine: &Machine) -> Value {
    detect_with(program, machine, Nodes::Recorded)
}

/// Calls detect as [`detect`] does, with the device nodes laid out by `nodes`.
///
/// # Panics
/// Where [`detect`] panics.
pub fn detect_with(program: &Path, machine: &Machine, nodes: Nodes) -> Value {
    let root = scratch();
    machine.lay_out(root.path(), nodes).unwrap();
    detect_beneath(program, root.path())
}

/// A folder for a machine that is read and thrown away: in memory where that is possible, since a
/// machine is thousands of files, and a virtual disk may take half a millisecond for each.
///
/// # Panics
/// Where no temporary folder can be made.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The answer of `detect --output json` on the machine beneath a folder.
///
/// # Panics
/// Where [`detect`] panics.
pub fn detect_beneath(program: &Path, root: &Path) -> Value {
    let output =
        Command::new(program).arg("--root").arg(root).args(["detect", "--output", "json"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "detect: {}: {stderr}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("detect's stdout: {error}: {}{stderr}", String::from_utf8_lossy(&output.stdout))
    })
}

/// Asserts that each field in `expected` has its value in a GPU's entry (or any object), and tells all differences at
/// once.
///
/// # Panics
/// Where one differs.
#[track_caller]
pub fn assert_fields(entry: &Value, expected: &Value) {
    let expected = expected.as_object().expect("expectations are an object");
    // A null that is expected must stand there as null: an absent key is another contract.
    let wrong = |(key, value): &(&String, &Value)| entry.get(key.as_str()) != Some(*value);
    let differences: Vec<String> = expected
        .iter()
        .filter(wrong)
        .map(|(key, value)| format!("{key}: expected {value}, found {:?}", entry.get(key)))
        .collect();
    assert!(differences.is_empty(), "{}\nin {entry:#}", differences.join("\n"));
}

/// Why a field of a GPU's entry is null.
///
/// # Panics
/// Where the entry gives no reason.
#[track_caller]
pub fn reason<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry["unknown"][field].as_str().unwrap_or_else(|| panic!("no reason for {field} in {entry:#}"))
}
