//! Which driver a line of the kernel's log is from.

use amdgpu::Address;
use memchr::memmem;

/// What `dev_printk_emit` (drivers/base/core.c) puts in front of an address that may be an AMD GPU's, its audio
/// function's or a bridge's above it: the bound driver, or the bus where there is none.
const OF_AMD_OR_THE_BUS: [&[u8]; 10] = [
    b"amdgpu",
    b"kfd",
    b"pci",
    b"pcieport",
    b"vfio-pci",
    b"pci-stub",
    b"pciback",
    b"gim",
    b"snd_hda_intel",
    // drivers/iommu/amd/iommu.c writes it in front of its own address.
    b"IOMMU",
];

/// Modules that log for amdgpu within `[drm:FUNCTION [MODULE]]`: its own, and those that all of DRM shares.
const MODULES: [&[u8]; 4] = [b"amd", b"drm", b"ttm", b"gpu_sched"];

/// Graphics drivers that begin a line with their name and no address.
const OTHERS: [&[u8]; 8] =
    [b"NVRM:", b"nvidia:", b"nvidia-modeset:", b"nvidia-uvm:", b"nouveau:", b"radeon:", b"i915:", b"xe:"];

/// Whether a driver of another vendor's device, or radeon, says the line: it is then no AMD GPU's under amdgpu.
pub(crate) fn is_another(line: &[u8]) -> bool {
    if let Some(driver) = of_device(line) {
        return !OF_AMD_OR_THE_BUS.contains(&driver);
    }
    if let Some(module) = of_drm(line) {
        return !MODULES.iter().any(|known| module.starts_with(known));
    }
    // What follows amdgpu's own name is its message, which may name a process.
    let head = memmem::find(line, b"amdgpu").and_then(|end| line.get(..end)).unwrap_or(line);
    words(head).any(|word| OTHERS.contains(&word))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// `amdgpu` of `amdgpu 0000:03:00.0: GPU reset begin!`, wherever a log daemon has put its own words before it.
fn of_device(line: &[u8]) -> Option<&[u8]> {
    let mut before: &[u8] = b"";
    for word in words(line) {
        let address = word.strip_suffix(b":").and_then(|word| str::from_utf8(word).ok());
        if address.is_some_and(|address| address.parse::<Address>().is_ok()) {
            let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            let start = before.iter().rposition(|byte| !is_of_name(byte)).map_or(0, |at| at + 1);
            return before.get(start..).filter(|name| !name.is_empty());
        }
        before = word;
    }
    None
}

/// `amdgpu` of `[drm:amdgpu_job_timedout [amdgpu]]` (`__drm_err` of drivers/gpu/drm/drm_print.c).
fn of_drm(line: &[u8]) -> Option<&[u8]> {
    let function = line.get(memmem::find(line, b"[drm:")?..)?;
    let function = function.get(..memmem::find(function, b"]")?)?;
    function.get(memmem::find(function, b" [")? + 2..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_another_drivers_by_what_stands_before_the_message() {
        for (line, expected) in [
            ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", false),
            (
                "[   12.5] pcieport 0000:00:01.1: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0",
                false,
            ),
            (
                "Jul  2 00:43:48 gaia kernel: pci 0000:05:00.0: AER: can't recover (no error_detected callback)",
                false,
            ),
            ("snd_hda_intel 0000:03:00.1: AER: can't recover (no error_detected callback)", false),
            ("T370;amdgpu 0000:03:00.0: amdgpu: Failed to setup smc hw!", false),
            ("AMD-Vi: IOMMU 0000:00:00.2: Completion-Wait loop timed out", false),
            ("[drm:atom_op_jump [amdgpu]] *ERROR* atombios stuck in loop", false),
            ("[drm:psp_sw_init] *ERROR* Failed to load psp firmware!", false),
            ("[drm ERROR :gfx_v9_0_priv_reg_irq] Illegal register access in command stream", false),
            ("[drm] *ERROR* drmn0: psp gfx command UNLOAD_TA(0x2) failed", false),
            ("{1}[Hardware Error]:   device_id: 0000:43:00.0", false),
            // What a process can be named.
            ("amdgpu 0000:03:00.0: Process nvidia 0000:01:00.0: pid 7 thread NVRM: pid 8", false),
            ("amdgpu: process NVRM: x", false),
            ("nvidia 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer", true),
            ("kernel: nouveau 0000:01:00.0: bus: MMIO read of 00000000 FAULT", true),
            ("[   14.2] i915 0000:00:02.0: [drm] *ERROR* GPU HANG: ecode 12:1:85dffffb", true),
            ("xe 0030:03:00.0: BAR 2 [mem size 0x400000000 64bit pref]: failed to assign", true),
            ("mlx5_core 0000:81:00.0: AER: can't recover (no error_detected callback)", true),
            ("nvme 0000:34:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)", true),
            ("radeon 0000:01:00.0: ring 0 stalled for more than 10240msec", true),
            ("[drm:atom_op_jump [radeon]] *ERROR* atombios stuck in loop for more than 5secs aborting", true),
            ("NVRM: GPU at PCI:0000:41:00: GPU reset begin!", true),
            ("radeon: Unable to locate a BIOS ROM", true),
            ("", false),
        ] {
            assert_eq!(is_another(line.as_bytes()), expected, "{line}");
        }
    }
}
