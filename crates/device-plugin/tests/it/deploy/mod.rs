//! deploy/kubernetes, read by Kubernetes' own kubectl, by its schemas, and by Google's implementation of CEL. No cluster runs.

mod objects;
mod policy;
mod real_image;
mod real_manifests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::said::Said;

/// A Python with what requirements.txt lists, which `cargo xtask test` makes.
const TOOLS: &str = "ROCWORKER_KUBERNETES_TOOLS";

fn repository() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("deploy/kubernetes").is_dir()).unwrap()
}

fn deployed(name: &str) -> PathBuf {
    repository().join("deploy/kubernetes").join(name)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

/// A program beside this file, run by the tools' Python.
fn script(tools: &Path, name: &str) -> Command {
    let mut python = Command::new(tools.join("bin/python"));
    python.arg(repository().join(file!()).with_file_name(name));
    python
}

fn kustomize(tools: &Path, folder: &Path) -> Said {
    Said::from(Command::new(tools.join("bin/kubectl")).arg("kustomize").arg(folder).output().unwrap())
}
