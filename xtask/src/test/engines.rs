//! Container engines of several releases of Debian, unpacked beside the build and never installed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::repository;

use super::packages;

/// A suite, and the variable by which the tests learn where its containerd is.
const SUITES: &[(&str, &str)] = &[
    // containerd 1.6 with runc 1.1, crun 1.8, docker 20.10
    ("bookworm", "ROCWORKER_CONTAINERD_BOOKWORM"),
    // containerd 1.7 with runc 1.1, crun 1.21, docker 26.1
    ("trixie", "ROCWORKER_CONTAINERD_TRIXIE"),
    // containerd 2.1 with runc 1.3, crun 1.28, docker 28.5 (November 2026)
    ("sid", "ROCWORKER_CONTAINERD_SID"),
];
const PACKAGES: &[&str] = &["containerd", "runc", "crun", "docker.io"];
/// What a suite has beside these, and a file by which it is known to be there: a criu that starts on a kernel of today,
/// which Debian 12's does not, and what it calls; a udevadm that verifies rules, which it does from systemd 254 on, and
/// that systemd, which starts a machine in QEMU; docker's client, which Debian 12's package of the daemon holds.
const FURTHER: &[(&str, &[&str], &str)] = &[
    ("sid", &["criu", "tar", "gzip"], "usr/sbin/criu"),
    ("sid", &["docker-cli"], "usr/bin/docker"),
    ("trixie", &["udev"], UDEVADM),
    ("trixie", &["systemd"], "usr/lib/systemd/systemd"),
    ("trixie", &["docker-cli"], "usr/bin/docker"),
];
/// The variable by which the tests learn where Debian 13's udev is.
const UDEV: (&str, &str) = ("trixie", "ROCWORKER_UDEVADM_TRIXIE");
const UDEVADM: &str = "usr/bin/udevadm";

/// What is missing, in words.
pub(crate) const WHAT: &str =
    "containerd, runc, crun and docker of Debian 12, 13 and sid, udev of 13, and criu of sid";

/// Where the engines are, a folder a suite.
pub(crate) fn folder() -> PathBuf {
    repository::target().join("engines")
}

fn program(suite: &str) -> PathBuf {
    tree(suite).join("usr/bin/containerd")
}

/// Whether an earlier run unpacked all of them. A later release in the archive is fetched once the folder is removed.
pub(crate) fn are_there() -> bool {
    SUITES.iter().all(|(suite, _)| is_whole(suite))
}

/// The tree is moved to its place once it is whole.
fn is_whole(suite: &str) -> bool {
    let mut signs = further(suite).map(|(_, _, sign)| tree(suite).join(sign));
    program(suite).is_file()
        && tree(suite).join("usr/sbin/dockerd").is_file()
        && signs.all(|sign| sign.is_file())
}

fn further(
    suite: &str,
) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str], &'static str)> {
    FURTHER.iter().filter(move |(of, _, _)| *of == suite)
}

fn tree(suite: &str) -> PathBuf {
    folder().join(suite).join("tree")
}

/// The variables that the tests read, and the program that each names.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let engines = SUITES.iter().map(|(suite, variable)| (*variable, program(suite)));
    engines.chain([(UDEV.1, tree(UDEV.0).join(UDEVADM))])
}

/// Downloads and unpacks what is not there. Needs no root.
pub(crate) fn unpack() -> Result<()> {
    SUITES.iter().filter(|(suite, _)| !is_whole(suite)).try_for_each(|(suite, _)| {
        unpack_suite(suite).with_context(|| format!("fetching the engines of Debian {suite}"))
    })
}

fn unpack_suite(suite: &str) -> Result<()> {
    let further = further(suite).flat_map(|(_, packages, _)| *packages);
    let wanted: Vec<&str> = PACKAGES.iter().chain(further).copied().collect();
    packages::unpack(&folder().join(suite), suite, &wanted, packages::Needed::Too)?;
    if !is_whole(suite) {
        bail!("the packages hold no {}, or lack what else is taken from {suite}", program(suite).display());
    }
    Ok(())
}
