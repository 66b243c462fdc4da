//! Files of Debian's kernel sources: headers that the tables of crates/amdgpu are compared with, and sources whose
//! strings judge what crates/kernel-log takes for messages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

use super::kernels::Apt;

/// The package that depends on a suite's newest source.
const NEWEST: &str = "linux-source";
/// The variable by which the tests learn where the files are.
const VARIABLE: &str = "ROCWORKER_AMDGPU_HEADERS";

const METRICS: &str = "drivers/gpu/drm/amd/include/kgd_pp_interface.h";

/// Of every suite: what crates/kernel-log/knowledge/messages.toml names as `file`.
const MESSAGES: [&str; 20] = [
    "drivers/base/dd.c",
    "drivers/base/firmware_loader/main.c",
    "drivers/firmware/efi/cper.c",
    "drivers/gpu/drm/amd/amdgpu/amdgpu_device.c",
    "drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c",
    "drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c",
    "drivers/gpu/drm/amd/amdgpu/gfx_v11_0.c",
    "drivers/gpu/drm/drm_drv.c",
    "drivers/iommu/amd/iommu.c",
    "drivers/iommu/intel/dmar.c",
    "drivers/pci/hotplug/pciehp_ctrl.c",
    "drivers/pci/pci.c",
    "drivers/pci/pcie/aer.c",
    "drivers/pci/pcie/dpc.c",
    "drivers/pci/pcie/err.c",
    "drivers/pci/setup-res.c",
    "kernel/module/main.c",
    "kernel/module/signing.c",
    "kernel/module/version.c",
    "kernel/params.c",
];

/// Of every suite: tables of chips.
const CHIPS: [&str; 3] = [
    "drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c",
    "drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c",
    "drivers/gpu/drm/amd/amdkfd/kfd_device.c",
];

/// Of the newest: where crates/kernel-log counts the strings that the driver logs at error level.
const DRIVER: &str = "drivers/gpu/drm/amd";
const NEWEST_SUITE: &str = "trixie-backports";

/// Linux 6.1, 6.12 and the newest, and the headers of each. bookworm-backports has 6.12 too, with the same header.
const SUITES: [(&str, &[&str]); 3] = [
    ("bookworm", &[METRICS]),
    ("trixie", &[METRICS]),
    (
        NEWEST_SUITE,
        &[
            METRICS,
            "drivers/gpu/drm/amd/pm/swsmu/smu13/smu_v13_0_6_ppt.h",
            "drivers/gpu/drm/amd/pm/swsmu/smu15/smu_v15_0_8_ppt.h",
            "drivers/gpu/drm/amd/pm/swsmu/smu_cmn.h",
        ],
    ),
];

/// The variable that the tests read: the folder with a folder for each suite, in which drivers/ is.
pub(super) fn variable() -> (&'static str, PathBuf) {
    (VARIABLE, repository::target().join("linux-source"))
}

/// Downloads each source that is not there yet, 160 MB, keeps its files and removes the rest. Needs no root.
///
/// # Errors
/// Names the command that failed. A suite that failed is fetched anew by the next run.
pub(super) fn fetch() -> Result<()> {
    let (_, folder) = variable();
    for (suite, headers) in SUITES {
        let (place, files) = (folder.join(suite), [headers, &MESSAGES, &CHIPS].concat());
        let has_driver = suite != NEWEST_SUITE || place.join(DRIVER).join("amdkfd/kfd_chardev.c").is_file();
        if !has_driver || !files.iter().all(|file| place.join(file).is_file()) {
            fetch_one(suite, &files, &place)?;
        }
    }
    Ok(())
}

fn fetch_one(suite: &str, files: &[&str], place: &Path) -> Result<()> {
    // Complete or not there.
    let unfinished = place.with_extension("unfinished");
    remove(&unfinished)?;
    let (package, unpacked) = (unfinished.join("package"), unfinished.join("headers"));
    for folder in [&package, &unpacked] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let apt = Apt::of(suite, &unfinished.join("apt"))?;
    apt.run("apt-get", &["update"]).run()?;
    let answer = apt.run("apt-cache", &["depends", "--important", NEWEST]).read()?;
    let source =
        source_in(&answer).with_context(|| format!("{NEWEST} of {suite} depends on no source: {answer}"))?;
    apt.run("apt-get", &["download", source]).inside(&package).run()?;
    let archive = only_file_in(&package)?;
    Command::new(["dpkg-deb", "--extract"]).arguments([&archive, &package]).run()?;
    fs::remove_file(&archive).with_context(|| format!("removing {}", archive.display()))?;
    let archive = package.join("usr/src").join(format!("{source}.tar.xz"));
    // tar stops behind the last file, unless it looks for a pattern.
    let (how, driver) = match suite {
        NEWEST_SUITE => ("--wildcards", Some(format!("{source}/{DRIVER}/*.c"))),
        _ => ("--occurrence=1", None),
    };
    Command::new(["tar", "--extract", "--xz", how, "--strip-components=1", "--file"])
        .arguments([&archive])
        .arguments(files.iter().map(|file| format!("{source}/{file}")).chain(driver))
        .inside(&unpacked)
        .run()?;
    remove(place)?;
    fs::rename(&unpacked, place)
        .with_context(|| format!("renaming {} to {}", unpacked.display(), place.display()))?;
    remove(&unfinished)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

fn only_file_in(folder: &Path) -> Result<PathBuf> {
    let mut listing = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let entry =
        listing.next().with_context(|| format!("apt-get download left no .deb in {}", folder.display()))?;
    Ok(entry?.path())
}

/// The source's package in the answer of `apt-cache depends`.
fn source_in(answer: &str) -> Option<&str> {
    let mut depends = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    depends.find(|name| name.starts_with("linux-source-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_the_package_that_the_newest_depends_on() {
        for (answer, expected) in [
            ("linux-source\n  Depends: linux-source-7.3\n", Some("linux-source-7.3")),
            ("linux-source\n  Depends: <linux-source-7.3>\n", None),
            ("linux-source\n", None),
        ] {
            assert_eq!(source_in(answer), expected, "{answer}");
        }
    }
}
