//! doctor looks for the wrapper where an apply would.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::doctor::{Machine, Nodes, PROGRAM, assert_check, find, put_wrapper, scratch};

/// The demo's machine with docker and without a wrapper.
fn machine() -> tempfile::TempDir {
    let root = scratch();
    Machine::demo().lay_out(root.path(), Nodes::Recorded).unwrap();
    let package = "Package: docker.io\nStatus: install ok installed\nVersion: 28.5.2-1\n";
    for (path, text) in [("usr/sbin/dockerd", ""), ("var/lib/dpkg/status", package)] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn run(folder: &Path, root: &Path, arguments: &[&str]) -> Output {
    let program = folder.join("rocworker");
    Command::new(program).arg("--root").arg(root).args(arguments).args(["--output", "json"]).output().unwrap()
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_missing_wrapper_is_a_finding_of_doctor_as_of_apply_and_status() {
    let (folder, root) = (scratch(), machine());
    fs::copy(PROGRAM, folder.path().join("rocworker")).unwrap();
    let missing = "runc-amd-wrapper is neither at";
    for command in ["plan", "apply", "status"] {
        let said = run(folder.path(), root.path(), &[command]);
        assert!(String::from_utf8_lossy(&said.stdout).contains(missing), "{command}: {said:?}");
    }
    let output = run(folder.path(), root.path(), &["doctor"]);
    let doctor = answer(&output);
    assert_eq!(output.status.code(), Some(3), "{doctor:#}");
    assert_check(find(&doctor, "wrapper", ""), "failed", missing, "rocworker apply");
    assert_check(find(&doctor, "engines", "docker"), "skipped", "the check of the wrapper says why", "");
    // A machine that runs nothing but podman lacks it all the same: apply says so too.
    fs::remove_file(root.path().join("usr/sbin/dockerd")).unwrap();
    let doctor = answer(&run(folder.path(), root.path(), &["doctor"]));
    assert_check(find(&doctor, "wrapper", ""), "failed", missing, "rocworker apply");
}

#[test]
fn the_wrapper_beside_the_program_is_what_an_apply_copies() {
    let (folder, root) = (scratch(), machine());
    fs::copy(PROGRAM, folder.path().join("rocworker")).unwrap();
    let beside = folder.path().join("runc-amd-wrapper");
    fs::write(&beside, "\u{7f}ELF").unwrap();
    let copy = "/usr/local/lib/rocworker/runc-amd-wrapper";
    let is = |status: &str, evidence: &str, remedy: &str| {
        let doctor = answer(&run(folder.path(), root.path(), &["doctor"]));
        assert_check(find(&doctor, "wrapper", ""), status, &format!("{copy} {evidence}"), remedy);
        doctor
    };
    is("failed", "is not there yet", "rocworker apply");
    assert!(run(folder.path(), root.path(), &["apply"]).status.success());
    let doctor = is("ok", "is there", "");
    assert_eq!(doctor["failed"], 0, "{doctor:#}");
    fs::write(&beside, "\u{7f}ELF of another build").unwrap();
    is("warning", "is another build than the one beside rocworker", "rocworker apply");
    put_wrapper(root.path());
    let doctor = answer(&run(folder.path(), root.path(), &["doctor"]));
    assert_check(find(&doctor, "wrapper", ""), "ok", "/usr/lib/rocworker/runc-amd-wrapper is there", "");
}
