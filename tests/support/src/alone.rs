//! Tests that measure or limit a whole process.

use std::process::Command;

use crate::real::test_name;

const VARIABLE: &str = "ROCWORKER_TEST_ALONE";

/// Whether this process runs the calling test alone. Else runs the test in a process of its own, and fails where it fails.
#[must_use]
#[track_caller]
pub fn alone() -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["--exact", &test_name()]).env(VARIABLE, "1").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    false
}
