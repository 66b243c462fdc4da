//! Kernels with their own amdgpu driver, for the machines that tests boot in QEMU.
//!
//! Debian's packages, downloaded by apt, which checks their signatures, and unpacked beside the build; nothing of
//! them is installed. Another release than the machine's own has a source list and an apt state of its own here.
//! So the machine's stay as they are. Needs no root.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Command;
use crate::repository;

/// Releases of Debian: Linux 6.1 and 6.12. A third boot would make the full run longer than it is worth there; sid's
/// kernel, 7.2 in November 2026, comes by [`fetch_one`].
const SUITES: [&str; 2] = ["bookworm", "trixie"];

const ARCHIVE: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The package that depends on a release's newest kernel.
const NEWEST: &str = "linux-image-amd64";

/// The folder with a kernel in a folder for each release; what is missing of it is fetched.
///
/// # Errors
/// Names the command that failed. A release that failed is fetched anew by the next run.
pub(crate) fn fetch() -> Result<PathBuf> {
    for suite in SUITES {
        fetch_one(suite)?;
    }
    Ok(folder())
}

fn folder() -> PathBuf {
    repository::target().join("kernels")
}

/// The kernel of one suite of Debian's, if it is not there yet.
///
/// # Errors
/// As [`fetch`].
pub(crate) fn fetch_one(suite: &str) -> Result<PathBuf> {
    let place = folder().join(suite);
    if place.is_dir() {
        return Ok(place);
    }
    // Complete or not there.
    let unfinished = folder().join(format!("{suite}.unfinished"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
    }
    unpack(suite, &unfinished)?;
    fs::rename(&unfinished, &place)
        .with_context(|| format!("renaming {} to {}", unfinished.display(), place.display()))?;
    Ok(place)
}

/// The newest kernel of a suite in place of the one that was fetched, and its release.
///
/// # Errors
/// As [`fetch`].
pub(super) fn fetch_anew(suite: &str) -> Result<String> {
    let place = folder().join(suite);
    fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    fetch_one(suite)?;
    release(suite)
}

/// What `uname -r` says in the kernel that was fetched.
///
/// # Errors
/// Where none was.
pub(super) fn release(suite: &str) -> Result<String> {
    let place = folder().join(suite);
    let folders = [place.join("lib/modules"), place.join("usr/lib/modules")];
    let modules = folders.iter().find(|folder| folder.is_dir());
    let modules = modules.with_context(|| format!("{} holds no lib/modules", place.display()))?;
    let releases = listed(modules)?;
    let [release] = releases.as_slice() else {
        bail!("{} should hold one kernel's modules, and holds {releases:?}", modules.display());
    };
    let name = release.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).with_context(|| format!("the name of {} is no text", release.display()))
}

fn unpack(suite: &str, into: &Path) -> Result<()> {
    let apt = Apt::of(suite, &into.join("apt"))?;
    apt.run("apt-get", &["update"]).run()?;
    let answer = apt.run("apt-cache", &["depends", "--important", NEWEST]).read()?;
    let package =
        kernel_in(&answer).with_context(|| format!("{NEWEST} of {suite} depends on no kernel: {answer}"))?;
    let answer = apt.run("apt-cache", &["depends", "--important", package]).read()?;
    let packages = [&[package][..], &parts_in(&answer)].concat();
    apt.run("apt-get", &["download"]).arguments(&packages).inside(into).run()?;
    let mut archives = listed(into)?;
    archives.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
    if archives.len() != packages.len() {
        bail!("apt-get download of {packages:?} left {archives:?} in {}", into.display());
    }
    for archive in archives {
        Command::new(["dpkg-deb", "--extract"]).arguments([archive.as_path(), into]).run()?;
        fs::remove_file(&archive).with_context(|| format!("removing {}", archive.display()))?;
    }
    index_modules(into)
}

/// Downloads and unpacks the package with the newest kernel's modules alone, from Linux 7 on.
///
/// # Errors
/// As [`fetch`].
pub(super) fn download_modules(apt: &Apt, into: &Path) -> Result<()> {
    apt.run("apt-get", &["update"]).run()?;
    let answer = apt.run("apt-cache", &["depends", "--important", NEWEST]).read()?;
    let package = kernel_in(&answer).with_context(|| format!("{NEWEST} depends on no kernel: {answer}"))?;
    let answer = apt.run("apt-cache", &["depends", "--important", package]).read()?;
    let parts = parts_in(&answer);
    let modules = parts.into_iter().find(|name| name.starts_with("linux-modules-"));
    let modules = modules.with_context(|| format!("{package} depends on no modules: {answer}"))?;
    apt.run("apt-get", &["download", modules]).inside(into).run()?;
    let archives = listed(into)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "deb"));
    for archive in archives {
        Command::new(["dpkg-deb", "--extract"]).arguments([archive.as_path(), into]).run()?;
    }
    Ok(())
}

/// apt with a state of its own, for one suite.
pub(super) struct Apt {
    options: Vec<String>,
}

impl Apt {
    pub(super) fn of(suite: &str, state: &Path) -> Result<Self> {
        for folder in ["lists/partial", "cache/archives/partial"] {
            let folder = state.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        let list = state.join("sources.list");
        let line = format!("deb [signed-by={KEYRING}] {ARCHIVE} {suite} main\n");
        fs::write(&list, line).with_context(|| format!("writing {}", list.display()))?;
        let options = [
            format!("Dir::Etc::SourceList={}", list.display()),
            "Dir::Etc::SourceParts=-".to_owned(),
            format!("Dir::State::Lists={}", state.join("lists").display()),
            format!("Dir::Cache={}", state.join("cache").display()),
            // The user _apt cannot write into a build folder; apt would say so each time and continue without it.
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        Ok(Self { options: options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect() })
    }

    /// As [`Self::of`], for a suite whose Release file may have expired: sid's does when the archive's copy is old.
    pub(super) fn of_whenever(suite: &str, state: &Path) -> Result<Self> {
        let mut apt = Self::of(suite, state)?;
        apt.options.extend(["-o", "Acquire::Check-Valid-Until=false"].map(str::to_owned));
        Ok(apt)
    }

    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Command {
        Command::new([program]).arguments(&self.options).arguments(arguments)
    }
}

/// The kernel's package in the answer of `apt-cache depends`.
fn kernel_in(answer: &str) -> Option<&str> {
    let mut depends = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    depends.find(|name| name.starts_with("linux-image-"))
}

/// From Linux 7 on that package is empty, and the image and the modules are packages that it depends on.
fn parts_in(answer: &str) -> Vec<&str> {
    let depends = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    depends.filter(|name| name.starts_with("linux-binary-") || name.starts_with("linux-modules-")).collect()
}

/// Writes modules.dep, which an installed package's own script would write. Newer packages have their modules
/// beneath /usr.
fn index_modules(unpacked: &Path) -> Result<()> {
    for base in [unpacked.to_owned(), unpacked.join("usr")] {
        let modules = base.join("lib/modules");
        if !modules.is_dir() {
            continue;
        }
        for release in listed(&modules)?.iter().filter_map(|path| path.file_name()) {
            // depmod is in an sbin folder, which an ordinary user's PATH leaves out.
            Command::new(["/sbin/depmod", "-b"]).arguments([base.as_os_str(), release]).run()?;
        }
        return Ok(());
    }
    bail!("the kernel's package in {} holds no lib/modules", unpacked.display())
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let listing = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    listing.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_one_package_has_no_parts_and_one_of_three_has_two() {
        let old = "linux-image-6.12\n  Depends: kmod\n |Depends: linux-initramfs-tool\n";
        assert_eq!(parts_in(old), [""; 0]);
        let new = "linux-image-7.2\n  Depends: linux-base-7.2\n  Depends: linux-binary-7.2\n  Depends: linux-modules-7.2\n";
        assert_eq!(parts_in(new), ["linux-binary-7.2", "linux-modules-7.2"]);
    }

    #[test]
    fn the_kernel_is_the_image_that_the_newest_depends_on() {
        let cases = [
            (
                "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n",
                Some("linux-image-6.1.0-56-amd64"),
            ),
            (
                "linux-image-amd64\n  Depends: linux-base-amd64\n  Depends: linux-image-7.2\n",
                Some("linux-image-7.2"),
            ),
            ("linux-image-amd64\n", None),
        ];
        for (answer, expected) in cases {
            assert_eq!(kernel_in(answer), expected, "{answer}");
        }
    }
}
