//! `rocworker detect` on a machine laid out for a test.

use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use serde_json::Value;

/// What `detect --output json` says of a machine whose device nodes are recorded.
///
/// # Panics
/// Where detect fails or prints anything but one JSON document.
pub fn detect(program: &Path, machine: &Machine) -> Value {
    detect_with(program, machine, Nodes::Recorded)
}

/// As [`detect`], with the device nodes as told.
///
/// # Panics
/// As [`detect`].
pub fn detect_with(program: &Path, machine: &Machine, nodes: Nodes) -> Value {
    let root = tempfile::tempdir().unwrap();
    machine.lay_out(root.path(), nodes).unwrap();
    detect_beneath(program, root.path())
}

/// What `detect --output json` says of the machine beneath a folder.
///
/// # Panics
/// As [`detect`].
pub fn detect_beneath(program: &Path, root: &Path) -> Value {
    let output =
        Command::new(program).arg("--root").arg(root).args(["detect", "--output", "json"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "detect: {}: {stderr}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("detect's stdout: {error}: {}{stderr}", String::from_utf8_lossy(&output.stdout))
    })
}
