//! Files of Debian's kernel sources: headers that the tables of crates/amdgpu are compared with, and sources whose
//! strings judge what crates/kernel-log takes for messages.

use std::path::Path;

use anyhow::Result;

use super::apt::{Apt, extract};
use super::remove;
use crate::command::Command;

/// The package that depends on a suite's newest source.
const NEWEST: &str = "linux-source";

const METRICS: &str = "drivers/gpu/drm/amd/include/kgd_pp_interface.h";

/// Files of every suite that crates/kernel-log/knowledge/messages.toml names as `file`.
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

/// Files of every suite with tables of chips.
const CHIPS: [&str; 3] = [
    "drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c",
    "drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c",
    "drivers/gpu/drm/amd/amdkfd/kfd_device.c",
];

/// The folder of the newest suite in which crates/kernel-log counts the strings that the driver logs at error
/// level.
const DRIVER: &str = "drivers/gpu/drm/amd";
const NEWEST_SUITE: &str = "trixie-backports";

/// The suites of Linux 6.1, 6.12 and the newest, with the headers of each. bookworm-backports has 6.12 too,
/// with an equal header.
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

/// A text that names everything that is kept.
pub(super) fn recipe() -> String {
    format!("{SUITES:?} {MESSAGES:?} {CHIPS:?} {DRIVER}")
}

/// Downloads each source, 160 MB, keeps its files in a folder for each suite, and removes the rest. Needs no root.
pub(super) fn fetch(place: &Path) -> Result<()> {
    SUITES.iter().try_for_each(|(suite, headers)| {
        fetch_one(suite, &[headers, &MESSAGES[..], &CHIPS].concat(), &place.join(suite))
    })
}

fn fetch_one(suite: &str, files: &[&str], place: &Path) -> Result<()> {
    let work = place.join("work");
    let apt = Apt::of(suite, work.join("apt"))?;
    let source = apt.dependency(NEWEST, "linux-source-")?;
    extract(&apt.download(&[&source], &work.join("archives"))?, &work)?;
    let archive = work.join("usr/src").join(format!("{source}.tar.xz"));
    // tar stops behind the last file, unless it looks for a pattern.
    let (how, driver) = match suite {
        NEWEST_SUITE => ("--wildcards", Some(format!("{source}/{DRIVER}/*.c"))),
        _ => ("--occurrence=1", None),
    };
    Command::new(["tar", "--extract", "--xz", how, "--strip-components=1", "--file"])
        .arguments([&archive])
        .arguments(files.iter().map(|file| format!("{source}/{file}")).chain(driver))
        .inside(place)
        .run()?;
    remove(&work)
}
