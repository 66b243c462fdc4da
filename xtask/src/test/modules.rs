//! amdgpu.ko of three releases, uncompressed: their strings judge what crates/kernel-log takes for messages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Command;
use crate::repository;

use super::kernels::{self, Apt};

/// The variable by which the tests learn where the modules are.
const VARIABLE: &str = "ROCWORKER_AMDGPU_MODULES";

/// Beneath the folder of a kernel's modules; a suffix says how it is compressed.
const MODULE: &str = "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko";

/// Kernels that are there for booting in QEMU, too.
const BOOTED: [(&str, &str); 2] = [("6.1", "bookworm"), ("6.12", "trixie")];
/// Its modules alone are fetched: nothing boots it here.
const NEWEST: &str = "sid";

/// The variable that the tests read: the folder with 6.1.ko, 6.12.ko and sid.ko.
pub(super) fn variable() -> (&'static str, PathBuf) {
    (VARIABLE, repository::target().join("amdgpu-modules"))
}

/// Makes what is not there: 100 MB come from the archive. Needs no root, and the kernels of [`kernels::fetch`].
///
/// # Errors
/// Names the command that failed. A module that failed is made anew by the next run.
pub(super) fn fetch() -> Result<()> {
    let (_, folder) = variable();
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for (release, suite) in BOOTED {
        let module = folder.join(format!("{release}.ko"));
        if !module.is_file() {
            uncompress(&found(&kernels::fetch_one(suite)?)?, &module)?;
        }
    }
    let module = folder.join(format!("{NEWEST}.ko"));
    if module.is_file() {
        return Ok(());
    }
    let unfinished = folder.join(format!("{NEWEST}.unfinished"));
    remove(&unfinished)?;
    fs::create_dir_all(&unfinished).with_context(|| format!("making {}", unfinished.display()))?;
    kernels::download_modules(&Apt::of_whenever(NEWEST, &unfinished.join("apt"))?, &unfinished)?;
    uncompress(&found(&unfinished)?, &module)?;
    remove(&unfinished)
}

/// The module below a folder into which a kernel's package was unpacked.
fn found(unpacked: &Path) -> Result<PathBuf> {
    for folder in [unpacked.join("lib/modules"), unpacked.join("usr/lib/modules")] {
        let Ok(releases) = fs::read_dir(&folder) else { continue };
        for release in releases {
            let module =
                release.with_context(|| format!("listing {}", folder.display()))?.path().join(MODULE);
            let name = |suffix: &str| module.with_extension(format!("ko{suffix}"));
            if let Some(module) = ["", ".xz"].map(name).into_iter().find(|path| path.is_file()) {
                return Ok(module);
            }
        }
    }
    bail!("{} holds no amdgpu.ko or amdgpu.ko.xz", unpacked.display())
}

/// Complete or not there.
fn uncompress(module: &Path, to: &Path) -> Result<()> {
    let unfinished = to.with_extension("unfinished.ko");
    let is_compressed = module.extension().is_some_and(|suffix| suffix == "xz");
    let copy = if is_compressed { unfinished.with_extension("ko.xz") } else { unfinished.clone() };
    fs::copy(module, &copy).with_context(|| format!("copying {} to {}", module.display(), copy.display()))?;
    if is_compressed {
        Command::new(["xz", "--decompress", "--force"]).arguments([&copy]).run()?;
    }
    fs::rename(&unfinished, to)
        .with_context(|| format!("renaming {} to {}", unfinished.display(), to.display()))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_where_a_package_has_it_and_its_lack_is_named() {
        let place = tempfile::tempdir().unwrap();
        let said = found(place.path()).unwrap_err().to_string();
        assert!(said.ends_with("holds no amdgpu.ko or amdgpu.ko.xz"), "{said}");
        for (at, suffix) in [("usr/lib/modules/7.2.13", ".xz"), ("lib/modules/6.1.0", "")] {
            let module = place.path().join(at).join(format!("{MODULE}{suffix}"));
            fs::create_dir_all(module.parent().unwrap()).unwrap();
            fs::write(&module, "").unwrap();
            assert_eq!(found(place.path()).unwrap(), module);
        }
    }
}
