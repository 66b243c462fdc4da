//! deploy/tensorfusion, read by TensorFusion's schemas, by Kubernetes', and by Google's implementation of CEL. No cluster
//! runs.

mod objects;
mod real_kubectl;
mod real_rules;
mod real_schemas;
mod remote;
mod script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A Python with what the device plugin's requirements.txt lists, which `cargo xtask test` makes.
const TOOLS: &str = "ROCWORKER_KUBERNETES_TOOLS";

pub(crate) fn repository() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("deploy/tensorfusion").is_dir()).unwrap()
}

fn deployed(name: &str) -> PathBuf {
    repository().join("deploy/tensorfusion").join(name)
}

/// A file beside this one.
fn beside(name: &str) -> PathBuf {
    repository().join(file!()).with_file_name(name)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

fn yaml(name: &str) -> Value {
    yaml_serde::from_str(&text(&deployed(name))).unwrap()
}

/// A program beside this file, run by the tools' Python.
fn script(tools: &Path, name: &str) -> Command {
    let mut python = Command::new(tools.join("bin/python"));
    python.arg(beside(name));
    python
}
