//! Kernels with their own amdgpu driver, for the machines that tests boot in QEMU: Debian's packages, unpacked and never
//! installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::apt::{Apt, extract};
use super::{cache, remove, whole_or_absent};
use crate::command::Command;
use crate::refusal::Refusal;

/// The package that depends on a release's newest kernel.
pub(super) const NEWEST: &str = "linux-image-amd64";

/// The folder in that of a kernel with the packages by which dkms builds a module that it loads.
pub(super) const HEADERS: &str = "headers";
/// The release that the tests' own machine is a copy of, where there is a compiler.
const OF_HEADERS: &str = "bookworm";

/// The prefix of the package with the kernel's image, and of the one with its modules: from Linux 7 on the
/// kernel's own package is empty.
const IMAGE: &str = "linux-binary-";
pub(super) const MODULES: &str = "linux-modules-";

/// `cargo xtask kernel SUITE`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [suite] = arguments else {
        return Err(Refusal::new("`cargo xtask kernel` takes one SUITE of Debian's: bookworm or sid"));
    };
    println!("{} holds the kernel", fetch(suite)?.display());
    Ok(())
}

/// The kernel of one suite of Debian's, fetched if it is not there yet. Needs no root.
///
/// # Errors
/// Names the command that failed.
pub(super) fn fetch(suite: &str) -> Result<PathBuf> {
    let place = cache()?.join("kernels").join(suite);
    whole_or_absent(&place, |unfinished| unpack(unfinished, suite))?;
    Ok(place)
}

pub(super) fn unpack(place: &Path, suite: &str) -> Result<()> {
    let state = place.join("apt");
    let apt = Apt::of(suite, state.clone())?;
    let image = apt.dependency(NEWEST, "linux-image-")?;
    let packages = [vec![image.clone()], apt.dependencies(&image, &[IMAGE, MODULES])?].concat();
    extract(&apt.download(&packages, &state.join("archives"))?, place)?;
    index_modules(place)?;
    if suite == OF_HEADERS {
        let headers = image.replace("linux-image-", "linux-headers-");
        // Everything else that they depend on is a compiler, which the machine has.
        let parts = apt.dependencies(&headers, &["linux-"])?;
        apt.download(&[vec!["dkms".to_owned(), headers], parts].concat(), &place.join(HEADERS))?;
    }
    remove(&state)
}

/// Writes modules.dep, which an installed package's own script would write. Newer packages have their modules
/// beneath /usr.
fn index_modules(unpacked: &Path) -> Result<()> {
    for base in [unpacked.to_owned(), unpacked.join("usr")] {
        let modules = base.join("lib/modules");
        if !modules.is_dir() {
            continue;
        }
        for release in fs::read_dir(&modules).with_context(|| format!("listing {}", modules.display()))? {
            let release = release.with_context(|| format!("listing {}", modules.display()))?.file_name();
            // depmod is in an sbin folder, which an ordinary user's PATH leaves out.
            Command::new(["/sbin/depmod", "-b"]).arguments([base.as_os_str(), &release]).run()?;
        }
        return Ok(());
    }
    bail!("the kernel's package in {} holds no lib/modules", unpacked.display())
}
