//! docs/dev/dependencies.md gives a reason for each crate that a manifest of this repository names, and for no other. An
//! asynchronous runtime stays out of rocworker and its wrapper.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::command::Command;
use crate::repository;

/// The workspace, and the workspaces that it excludes.
const WORKSPACES: [&str; 4] = [".", "fuzz", "hip-remote", "tests/cdi-oracle"];

fn named_by_manifests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for workspace in WORKSPACES {
        let manifest = repository::top().join(workspace).join("Cargo.toml");
        let metadata =
            Command::new(["cargo", "metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
        let metadata: Value = serde_json::from_str(&metadata.arguments([manifest]).read().unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let dependencies = packages.flat_map(|package| package["dependencies"].as_array().unwrap());
        let foreign = dependencies.filter(|dependency| !dependency["source"].is_null());
        names.extend(foreign.map(|dependency| dependency["name"].as_str().unwrap().to_owned()));
    }
    names
}

/// The first columns of the tables, up to that of crates that are not used.
fn documented() -> Vec<String> {
    let text = std::fs::read_to_string(repository::top().join("docs/dev/dependencies.md")).unwrap();
    let (used, _) = text.split_once("## Tried and left").unwrap();
    let columns = used.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names =
        columns.filter(|column| !["crate", "---"].contains(column)).flat_map(|column| column.split(", "));
    // Text in parentheses says more about a crate.
    names.filter_map(|name| name.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_direct_dependency_has_its_line_and_no_other_crate_has_one() {
    let documented = documented();
    let unique: BTreeSet<String> = documented.iter().cloned().collect();
    assert_eq!(documented.len(), unique.len(), "a crate has two lines: {documented:#?}");
    let named = named_by_manifests();
    let rows = |names: &BTreeSet<String>, others: &BTreeSet<String>| -> String {
        names.difference(others).map(|name| format!("| {name} | … |\n")).collect()
    };
    assert!(
        named == unique,
        "docs/dev/dependencies.md lacks these rows:\n{}must not have these rows:\n{}",
        rows(&named, &unique),
        rows(&unique, &named)
    );
}

/// Programs of their own may use crates that the program does without.
#[test]
fn neither_rocworker_nor_its_wrapper_has_an_asynchronous_runtime_or_a_crate_of_other_programs() {
    for package in ["rocworker", "runc-amd-wrapper"] {
        let tree =
            Command::new(["cargo", "tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"]);
        let tree = tree.arguments(["--package", package]).read().unwrap();
        let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(crates.contains("allocation"), "{package}: {crates:?}");
        let apart = ["rocworker-device-plugin", "accelerator-amd", "hip-protocol", "hip-client"];
        for kept_out in ["tokio", "tonic", "hyper", "ureq", "rustls"].into_iter().chain(apart) {
            assert!(!crates.contains(kept_out), "{package} depends on {kept_out}");
        }
    }
}
