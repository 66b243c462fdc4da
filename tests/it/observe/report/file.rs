//! The file that is written, and what keeps it from being written.

use crate::observe::report::archive::*;
use layout::Nodes;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use support::detect::scratch;

#[test]
fn a_file_is_written_new_and_for_its_owner_alone() {
    let (root, out) = (scratch(), scratch());
    machine().put("/etc/hostname", "farm-3\n").lay_out(root.path(), Nodes::Recorded).unwrap();
    let file = out.path().join("r.tar.gz");
    let output = report(root.path(), &file);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["path"], file.to_str().unwrap());
    assert_eq!(answer["schema_version"], 1);
    assert_eq!(answer["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(answer["entries"], entries(&fs::read(&file).unwrap()).len() - 1, "without the top folder");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);

    fs::write(&file, "mine").unwrap();
    symlink("nowhere", out.path().join("link")).unwrap();
    for name in ["r.tar.gz", "link"] {
        let output = report(root.path(), &out.path().join(name));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains("exists: name another file with --file") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert!(!out.path().join("nowhere").exists());
    let missing = report(root.path(), &out.path().join("no/such/r.tar.gz"));
    assert_eq!(missing.status.code(), Some(2));
    let left: Vec<_> = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");

    let output =
        Command::new(PROGRAM).arg("--root").arg(root.path()).arg("report").current_dir(out.path()).output();
    let output = output.unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let made =
        fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let made = made.into_iter().find(|name| name.starts_with("rocworker-report-farm-3-20")).unwrap();
    assert!(made.ends_with("Z.tar.gz") && table.contains(&made), "{table}");
    assert!(table.contains("Look through it before you send it"), "{table}");
}

#[test]
fn a_wrong_configuration_is_reported_and_does_not_keep_anybody_from_reporting() {
    let root = scratch();
    let wrong = format!("no-such: 1\ntoken: {SECRET}\n");
    machine().put("/etc/rocworker/config.yaml", wrong).lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    let entries = entries(&archive);
    for answer in ["doctor.json", "plan.json", "status.json"] {
        let answer = text(&entries, answer);
        assert!(answer.contains("\"error\": \"/etc/rocworker/config.yaml:1:\""), "{answer}");
    }
    assert_eq!(text(&entries, "etc/rocworker/config.yaml"), "{}\n");
    assert_nowhere(&archive, SECRET);
}
