//! Finds the packages that a change touches: commits since the main branch, and what is not committed yet.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::Command;
use crate::repository;

/// Checks documents, and packs what is handed out: it names few of the files that it reads.
const READS_ALL: &str = "xtask";

/// The folders with the sources of rocworker's own package. Everything else at the top is in no package.
const OF_ROCWORKER: [&str; 2] = ["src/", "tests/"];

/// A package of the workspace.
#[derive(Debug)]
struct Package {
    name: String,
    /// The package's folder from the top of the repository, with its last slash; empty for rocworker.
    folder: String,
}

/// The packages that the change touches, by name. What depends on them nextest knows.
pub(super) fn packages() -> Result<Vec<String>> {
    let packages = workspace()?;
    let mut touched = BTreeSet::new();
    for file in files()? {
        if is_of_all(&file) {
            return Ok(packages.into_iter().map(|package| package.name).collect());
        }
        touched.extend(owner(&file, &packages).map(str::to_owned));
        if !file.ends_with(".rs") {
            touched.insert(READS_ALL.to_owned());
            touched.extend(naming(&file)?.iter().filter_map(|it| owner(it, &packages)).map(str::to_owned));
        }
    }
    Ok(touched.into_iter().collect())
}

/// Files that differ from the last commit that this branch shares with the main one, and files that git does
/// not know yet.
fn files() -> Result<Vec<String>> {
    let shared = |branch| Command::new(["git", "merge-base", "HEAD", branch]).read();
    let base = shared("origin/main").or_else(|_| shared("main")).unwrap_or_else(|_| "HEAD".to_owned());
    let mut files = Vec::new();
    for arguments in [
        &["diff", "--name-only", "--no-renames", base.trim()][..],
        &["ls-files", "--others", "--exclude-standard"],
    ] {
        let listed = Command::new(["git", "-c", "core.quotePath=off"]).arguments(arguments).read()?;
        files.extend(listed.lines().map(str::to_owned));
    }
    Ok(files)
}

fn workspace() -> Result<Vec<Package>> {
    let metadata = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"];
    let metadata: Value =
        serde_json::from_str(&Command::new(metadata).read()?).context("reading cargo metadata")?;
    let of = |package: &Value| {
        let manifest = std::path::Path::new(package["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(repository::top()).ok()?.to_str()?.to_owned();
        let folder = if folder.is_empty() { folder } else { folder + "/" };
        Some(Package { name: package["name"].as_str()?.to_owned(), folder })
    };
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    packages
        .iter()
        .map(|package| of(package).context("cargo metadata has another form than is known"))
        .collect()
}

/// Whether the file decides about the dependencies or the build of every package.
fn is_of_all(file: &str) -> bool {
    ["Cargo.toml", "Cargo.lock"].contains(&file) || file.starts_with(".cargo/")
}

/// The package in whose folder a file lies.
fn owner<'a>(file: &str, packages: &'a [Package]) -> Option<&'a str> {
    let around = packages.iter().filter(|package| match package.folder.as_str() {
        "" => OF_ROCWORKER.iter().any(|folder| file.starts_with(folder)),
        folder => file.starts_with(folder),
    });
    around.max_by_key(|package| package.folder.len()).map(|package| package.name.as_str())
}

/// The sources that name a file by its last two parts, or a folder of two parts or more around it: they include it, or read it
/// in a test.
fn naming(file: &str) -> Result<Vec<String>> {
    let mut grep = Command::new(["git", "grep", "--files-with-matches", "--fixed-strings"]);
    for name in names(file) {
        grep = grep.arguments(["-e", name]);
    }
    // `git grep` ends with 1 where nothing matches.
    let found = grep.arguments(["--", "*.rs"]).read_whatever_it_ends_with()?;
    Ok(found.lines().map(str::to_owned).collect())
}

fn names(file: &str) -> impl Iterator<Item = &str> {
    let slashes = || file.match_indices('/').map(|(at, _)| at);
    let last = slashes().rev().nth(1).map_or(file, |at| &file[at + 1..]);
    slashes().skip(1).map(|at| &file[..at]).chain([last])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_innermost_package_around_it() {
        let packages = workspace().unwrap();
        for (file, expected) in [
            ("src/main.rs", Some("rocworker")),
            ("tests/it/main.rs", Some("rocworker")),
            ("tests/engines/src/lib.rs", Some("real-engines")),
            ("crates/root/src/lib.rs", Some("root")),
            ("xtask/src/main.rs", Some("xtask")),
            ("templates/cdi/amd.json", None),
            ("README.md", None),
        ] {
            assert_eq!(owner(file, &packages), expected, "{file}");
        }
        assert!(is_of_all("Cargo.lock") && !is_of_all("crates/root/Cargo.toml"));
    }

    #[test]
    fn a_file_reaches_the_sources_that_include_it_or_read_its_folder() {
        assert_eq!(names("a/b/c/d").collect::<Vec<_>>(), ["a/b", "a/b/c", "c/d"]);
        assert_eq!(names("README.md").collect::<Vec<_>>(), ["README.md"]);
        let packages = workspace().unwrap();
        let reached = |file: &str| {
            let naming = naming(file).unwrap();
            naming.iter().filter_map(|it| owner(it, &packages)).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        assert!(
            reached("templates/demo/machine.json")
                .is_superset(&["rocworker", "layout"].map(str::to_owned).into())
        );
        assert!(reached("tests/captures/a380-i915.tar.gz").contains("support"));
        assert!(reached("tests/cases/k3s.tar.gz").contains("support"));
        assert!(reached("docs/explain.md").contains("kernel-log"));
    }

    #[test]
    fn what_a_source_includes_of_another_package_or_of_none_is_found_by_its_name() {
        let packages = workspace().unwrap();
        let include = ["git", "grep", "-o", "-E", r#"include_(str|bytes)!\("[^"]+"\)"#, "--", "*.rs"];
        let found = Command::new(include).read().unwrap();
        let mut foreign = 0;
        for line in found.lines() {
            let (source, included) = line.split_once(':').unwrap();
            let included =
                repository::top().join(source).parent().unwrap().join(included.split('"').nth(1).unwrap());
            let included = included.canonicalize().unwrap();
            let included = included.strip_prefix(repository::top()).unwrap().to_str().unwrap().to_owned();
            if owner(&included, &packages) != owner(source, &packages) {
                foreign += 1;
                assert!(
                    naming(&included).unwrap().iter().any(|it| it == source),
                    "{source} includes {included}"
                );
            }
        }
        assert!(foreign > 20, "{foreign}");
    }
}
