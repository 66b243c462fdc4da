//! Container engines of several releases of Debian, unpacked beside the build and never installed.
//!
//! apt gets a state of its own for each suite. So it resolves what a package needs, checks every signature,
//! and shares nothing with this machine's own packages.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Command;
use crate::repository;

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
/// Checks Debian's signatures.
pub(crate) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Where this machine's own sources name no mirror of Debian, as on Ubuntu.
const MIRROR: &str = "http://deb.debian.org/debian";

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
    let mirror = mirror();
    SUITES.iter().filter(|(suite, _)| !is_whole(suite)).try_for_each(|(suite, _)| {
        unpack_suite(suite, &mirror).with_context(|| format!("fetching the engines of Debian {suite}"))
    })
}

fn unpack_suite(suite: &str, mirror: &str) -> Result<()> {
    let place = folder().join(suite);
    empty(&place)?;
    for part in ["lists/partial", "cache/archives/partial", "new"] {
        make(&place.join(part))?;
    }
    write(&place.join("status"), "")?;
    write(&place.join("debian.sources"), &sources(suite, mirror))?;
    let configuration = place.join("apt.conf");
    write(&configuration, &apt_configuration(&place))?;
    let apt = |arguments: &[&str]| {
        Command::new(["apt-get", "--quiet"]).arguments(arguments).environment("APT_CONFIG", &configuration)
    };
    apt(&["update"]).run()?;
    let install = ["install", "--yes", "--no-install-recommends", "--download-only"];
    let further = further(suite).flat_map(|(_, packages, _)| *packages);
    apt(&install).arguments(PACKAGES).arguments(further).run()?;

    let tree = place.join("new");
    for archive in archives(&place.join("cache/archives"))? {
        Command::new(["dpkg-deb", "--extract"]).arguments([&archive, &tree]).run()?;
    }
    // Debian's base-files makes these; without them no program would find its loader.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let link = tree.join(name);
        if !link.exists() && tree.join("usr").join(name).is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(name), &link)
                .with_context(|| format!("linking {}", link.display()))?;
        }
    }
    let whole = place.join("tree");
    std::fs::rename(&tree, &whole)
        .with_context(|| format!("moving {} to {}", tree.display(), whole.display()))?;
    if !is_whole(suite) {
        bail!("the packages hold no {}, or lack what else is taken from {suite}", program(suite).display());
    }
    // 40 MB of archives and as much of lists that nothing reads again.
    [place.join("cache"), place.join("lists")].iter().try_for_each(|folder| remove(folder))
}

/// The mirror that this machine's own apt uses for Debian's main archive.
pub(crate) fn mirror() -> String {
    let targets =
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"];
    let known = Command::new(targets).read().unwrap_or_default();
    first_main_mirror(&known).unwrap_or(MIRROR).to_owned()
}

/// The security archive has suites of its own, and none of sid's.
fn first_main_mirror(known: &str) -> Option<&str> {
    known.lines().map(|line| line.trim_end_matches('/')).find(|uri| uri.ends_with("/debian"))
}

fn sources(suite: &str, mirror: &str) -> String {
    format!("Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n")
}

/// apt's own user could not write below a home folder, so that apt stays the user who calls it.
fn apt_configuration(place: &Path) -> String {
    let place = place.display();
    format!(
        "Dir::Etc::sourcelist \"{place}/debian.sources\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State \"{place}\";\nDir::State::lists \"{place}/lists\";\nDir::State::status \"{place}/status\";\n\
         Dir::Cache \"{place}/cache\";\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n\
         Debug::NoLocking \"true\";\n"
    )
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let archives: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect();
    if archives.is_empty() {
        bail!("apt-get left no .deb in {}", folder.display());
    }
    Ok(archives)
}

fn empty(folder: &Path) -> Result<()> {
    remove(folder)?;
    make(folder)
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mirror_is_used_where_it_has_debians_main_archive() {
        let debian = "http://mirror.example/debian-security/\nhttp://mirror.example/debian/\n";
        for (known, expected) in [
            (debian, Some("http://mirror.example/debian")),
            ("http://archive.ubuntu.com/ubuntu/\n", None),
            ("", None),
        ] {
            assert_eq!(first_main_mirror(known), expected, "{known}");
        }
    }

    #[test]
    fn apts_state_is_all_below_the_place_and_its_signatures_are_debians() {
        let configuration = apt_configuration(Path::new("/place"));
        for line in configuration.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(line.contains("\"/place") || line.contains("\"/dev/null\""), "{line}");
        }
        assert!(sources("sid", MIRROR).contains(&format!("Signed-By: {KEYRING}")));
    }
}
