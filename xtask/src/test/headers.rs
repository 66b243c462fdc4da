//! Kernel headers and dkms as Debian packages, for tests in which dpkg installs them and dkms builds a module.
//!
//! They are those of the kernel that tests boot in QEMU ([`super::kernels`]), so that a built module can be loaded
//! there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repository;

use super::kernels::{self, Apt};

/// The release that the tests' own machine is a copy of, where there is a compiler.
const SUITE: &str = "bookworm";
/// The variable by which the tests learn where the packages are.
const VARIABLE: &str = "ROCWORKER_APT_HEADERS";

/// The variable that the tests read.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    (VARIABLE, folder().join(SUITE))
}

fn folder() -> PathBuf {
    repository::target().join("apt/headers")
}

/// Downloads what is not there. Needs no root.
///
/// # Errors
/// Names the command that failed. The archive drops the headers of old kernels, so that an old kernel is fetched anew.
pub(crate) fn fetch() -> Result<()> {
    let release = kernels::release(SUITE)?;
    if is_there(&release) {
        return Ok(());
    }
    let state = folder().join("state");
    let apt = Apt::of(SUITE, &state)?;
    apt.run("apt-get", &["update"]).run()?;
    let has = |release: &str| apt.run("apt-cache", &["show", &headers_of(release)]).succeeds();
    let release = if has(&release) { release } else { kernels::fetch_anew(SUITE)? };
    let headers = headers_of(&release);
    let answer = apt.run("apt-cache", &["depends", "--important", &headers]).read()?;
    let (_, place) = variable();
    for old in [&place, &folder().join("unfinished")] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("removing {}", old.display()))?;
        }
    }
    // Complete or not there.
    let unfinished = folder().join("unfinished");
    fs::create_dir_all(&unfinished).with_context(|| format!("making {}", unfinished.display()))?;
    let packages = [&["dkms", headers.as_str()][..], &parts_in(&answer)].concat();
    apt.run("apt-get", &["download"]).arguments(&packages).inside(&unfinished).run()?;
    fs::rename(&unfinished, &place)
        .with_context(|| format!("renaming {} to {}", unfinished.display(), place.display()))
}

fn headers_of(release: &str) -> String {
    format!("linux-headers-{release}")
}

/// Whether an earlier run left the headers of this kernel.
fn is_there(release: &str) -> bool {
    let (_, place) = variable();
    let prefix = format!("{}_", headers_of(release));
    listed(&place).is_some_and(|names| names.iter().any(|name| name.starts_with(&prefix)))
}

fn listed(folder: &Path) -> Option<Vec<String>> {
    let names = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.file_name());
    Some(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// What the headers depend on of the kernel's own packages; everything else is a compiler, which this machine has.
fn parts_in(answer: &str) -> Vec<&str> {
    let depends = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    depends.filter(|name| name.starts_with("linux-")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_parts_are_the_kernels_own_packages() {
        let answer = "linux-headers-6.1.0-50-amd64\n  Depends: linux-headers-6.1.0-50-common\n  \
                      Depends: linux-kbuild-6.1\n |Depends: gcc-12\n  Depends: gcc-12\n";
        assert_eq!(parts_in(answer), ["linux-headers-6.1.0-50-common", "linux-kbuild-6.1"]);
    }
}
