//! amdgpu.ko of three releases, uncompressed: their strings judge what crates/kernel-log takes for messages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::apt::{Apt, extract};
use super::{kernels, remove};
use crate::command::Command;

/// The module's path beneath the folder of a kernel's modules; a suffix tells how it is compressed.
const MODULE: &str = "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko";

/// Kernels that are there for booting in QEMU, too.
const BOOTED: [(&str, &str); 2] = [("6.1", "bookworm"), ("6.12", "trixie")];
/// The suite of which only the modules are fetched: no test boots its kernel.
const NEWEST: &str = "sid";

/// A text that names everything that is made.
pub(super) fn recipe() -> String {
    format!("{BOOTED:?} {NEWEST}")
}

/// Makes 6.1.ko, 6.12.ko and sid.ko: 100 MB come from the archive. Needs no root.
pub(super) fn fetch(place: &Path) -> Result<()> {
    let unpacked = place.join(NEWEST);
    fs::create_dir_all(&unpacked).with_context(|| format!("making {}", unpacked.display()))?;
    for (release, suite) in BOOTED {
        uncompress(&found(&kernels::fetch(suite)?)?, &place.join(format!("{release}.ko")))?;
    }
    let apt = Apt::of(NEWEST, unpacked.join("apt"))?;
    let image = apt.dependency(kernels::NEWEST, "linux-image-")?;
    let modules = apt.dependency(&image, kernels::MODULES)?;
    extract(&apt.download(&[modules], &unpacked.join("archives"))?, &unpacked)?;
    uncompress(&found(&unpacked)?, &place.join(format!("{NEWEST}.ko")))?;
    remove(&unpacked)
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

fn uncompress(module: &Path, to: &Path) -> Result<()> {
    let is_compressed = module.extension().is_some_and(|suffix| suffix == "xz");
    let copy = if is_compressed { to.with_extension("ko.xz") } else { to.to_owned() };
    fs::copy(module, &copy).with_context(|| format!("copying {} to {}", module.display(), copy.display()))?;
    if is_compressed {
        Command::new(["xz", "--decompress", "--force"]).arguments([&copy]).run()?;
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
