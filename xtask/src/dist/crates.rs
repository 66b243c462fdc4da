//! The crates that are linked into the programs, as cargo resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::Command;
use crate::programs::{self, PACKAGES};
use crate::repository;

use super::files::read;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// Whether the crate is of this workspace, not of crates.io.
    pub(super) is_own: bool,
    /// An SPDX expression; none where the crate has only a file.
    pub(super) licence: Option<String>,
    pub(super) description: Option<String>,
    /// SHA-256 of the archive on crates.io, as Cargo.lock has it.
    pub(super) sha256: Option<String>,
    pub(super) folder: PathBuf,
    /// The crates that this one needs, each as `NAME@VERSION`.
    pub(super) needs: BTreeSet<String>,
}

impl Crate {
    /// `NAME@VERSION`, which is one crate's alone.
    pub(super) fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// The packages of the programs and all that they are linked with on the platform that they ship for, in order. What runs in the
/// compiler alone (procedural macros, and what they and build scripts need) is left out.
pub(super) fn linked() -> Result<Vec<Crate>> {
    let metadata = Command::new(["cargo", "metadata", "--locked", "--format-version", "1"])
        .arguments(["--filter-platform", &programs::target()])
        .read()?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading what cargo metadata says")?;
    let lock =
        String::from_utf8(read(&repository::top().join("Cargo.lock"))?).context("Cargo.lock is no text")?;
    select(&metadata, &checksums(&lock)).context("what cargo metadata says has another form than is known")
}

fn select(metadata: &Value, checksums: &BTreeMap<String, String>) -> Option<Vec<Crate>> {
    let packages: BTreeMap<&str, &Value> =
        metadata["packages"].as_array()?.iter().filter_map(|it| Some((it["id"].as_str()?, it))).collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|it| Some((it["id"].as_str()?, it)))
        .collect();
    let is_program = |package: &Value| {
        package["source"].is_null() && package["name"].as_str().is_some_and(|name| PACKAGES.contains(&name))
    };
    let mut open: Vec<&str> =
        packages.iter().filter(|(_, package)| is_program(package)).map(|(id, _)| *id).collect();
    let mut found: BTreeMap<&str, Crate> = BTreeMap::new();
    while let Some(id) = open.pop() {
        if found.contains_key(id) {
            continue;
        }
        let package = packages.get(id)?;
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let mut needs = BTreeSet::new();
        for needed in nodes.get(id)?["deps"].as_array()? {
            let other = needed["pkg"].as_str()?;
            let is_normal = needed["dep_kinds"].as_array()?.iter().any(|kind| kind["kind"].is_null());
            if is_normal && !is_macro(packages.get(other)?) {
                let package = packages.get(other)?;
                needs.insert(format!("{}@{}", package["name"].as_str()?, package["version"].as_str()?));
                open.push(other);
            }
        }
        let manifest = PathBuf::from(package["manifest_path"].as_str()?);
        let (name, version) = (text("name")?, text("version")?);
        let one = Crate {
            sha256: checksums.get(&format!("{name}@{version}")).cloned(),
            name,
            version,
            is_own: package["source"].is_null(),
            // Old crates write "MIT/Apache-2.0".
            licence: text("license").map(|licence| licence.replace('/', " OR ")),
            description: text("description"),
            folder: manifest.parent()?.to_owned(),
            needs,
        };
        found.insert(id, one);
    }
    let mut crates: Vec<Crate> = found.into_values().collect();
    crates.sort_by_key(Crate::id);
    Some(crates)
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
    kinds.into_iter().any(|kind| kind == "proc-macro")
}

/// The checksum of each `[[package]]` of Cargo.lock that has one.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |line: &str, key: &str| {
        Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
    };
    let one = |package: &str| {
        let of = |key| package.lines().find_map(|line| value(line, key));
        Some((format!("{}@{}", of("name")?, of("version")?), of("checksum")?))
    };
    lock.split("[[package]]").filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_here_and_what_only_builds_is_not() {
        let crates = linked().unwrap();
        let named = |name: &str| crates.iter().find(|it| it.name == name);
        for (name, is_there) in [
            ("rocworker", true),
            ("rocworker-exporter", true),
            ("runc-amd-wrapper", true),
            ("serde_json", true),
            ("serde_derive", false),
            ("syn", false),
            ("assert_cmd", false),
            ("xtask", false),
        ] {
            assert_eq!(named(name).is_some(), is_there, "{name}");
        }
        let serde_json = named("serde_json").unwrap();
        assert_eq!(serde_json.sha256.as_ref().unwrap().len(), 64);
        assert!(!serde_json.is_own && serde_json.needs.iter().any(|need| need.starts_with("itoa@")));
        assert!(named("rocworker").unwrap().sha256.is_none());
        let ids: BTreeSet<String> = crates.iter().map(Crate::id).collect();
        assert!(crates.iter().all(|it| it.needs.is_subset(&ids)));
    }
}
