//! The code that reads a machine in other people's processes cannot write: it is built without crates/root's
//! feature `write`.

use std::process::Command;

/// The packages of this workspace, with their features, that a package is built from.
fn built_from(package: &str) -> Vec<String> {
    let arguments =
        ["tree", "--locked", "--offline", "--edges", "features,normal", "--prefix", "none", "--package"];
    let output = Command::new(env!("CARGO")).args(arguments).arg(package).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .filter(|line| line.contains("/crates/") || line.contains(" feature \"write\""))
        .map(str::to_owned)
        .collect()
}

#[test]
fn amdgpu_is_built_from_the_reading_part_of_root_and_from_inventory() {
    let mut names: Vec<String> =
        built_from("amdgpu").iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names, ["amdgpu", "inventory", "root"]);
}

#[test]
fn what_only_reads_is_built_without_what_writes() {
    let writes =
        |package: &str| built_from(package).iter().any(|line| line.starts_with("root feature \"write\""));
    for package in ["amdgpu", "telemetry", "rocworker-exporter", "kernel-log"] {
        assert!(!writes(package), "{package}");
    }
    assert!(writes("reconcile"), "the feature is looked for by its name");
}
