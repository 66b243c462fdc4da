//! Machines that this repository lays out, read by programs that nobody here wrote: what they see
//! is what was meant, so the layout has a kernel's shape and not merely the shape that our own
//! reader expects.
#![allow(clippy::disallowed_methods, reason = "the tests run and look at real things")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use layout::{Gpu, Machine, Nodes};
use support::captures;
use support::node_exporter::{self, NodeExporter};
use support::real;

fn laid_out(machine: &Machine) -> tempfile::TempDir {
    let root = support::detect::scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

/// lspci's own records by slot: `Class`, `Vendor`, `Device`, `SVendor`, `SDevice`, `Rev`, `Driver`.
fn lspci(root: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let output = Command::new(real::program("lspci").unwrap())
        .args(["-A", "linux-sysfs", "-O"])
        .arg(format!("sysfs.path={}", root.join("sys/bus/pci").display()))
        .args(["-D", "-n", "-k", "-vmm"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The modules of the kernel that the test runs on, which a container need not have.
    let complaints = stderr.lines().filter(|line| !line.is_empty() && !line.contains("libkmod")).count();
    assert!(output.status.success() && complaints == 0, "lspci: {}: {stderr}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let records = text.split("\n\n").filter(|record| !record.trim().is_empty());
    records
        .map(|record| {
            let fields = record.lines().filter_map(|line| line.split_once(":\t"));
            let mut fields: BTreeMap<_, _> = fields.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            (fields.remove("Slot").expect("lspci names every slot"), fields)
        })
        .collect()
}

#[test]
fn real_lspci_sees_the_functions_that_were_laid_out() {
    if !real::require(&["lspci"]) {
        return;
    }
    // Slot, class, vendor, device, subsystem, revision, driver: by hand from each card's captured
    // device/uevent, device/class and device/revision; those of mi300x are tests/support's own.
    let phoenix = ("0000:64:00.0", "0300", "1002", "15bf", "17aa", "50da", "dd", "amdgpu");
    let rtx4080 = ("0000:09:00.0", "0300", "10de", "2704", "1462", "5110", "", "nvidia");
    let a380 = ("0000:0b:00.0", "0300", "8086", "56a5", "1849", "6004", "", "i915");
    let vega = ("0000:09:00.0", "0300", "1002", "687f", "1043", "04c4", "c1", "amdgpu");
    let first = ("0000:05:00.0", "1200", "1002", "74a1", "1002", "74a1", "", "amdgpu");
    let last = ("0000:e5:00.0", "1200", "1002", "74a1", "1002", "74a1", "", "amdgpu");
    let aspeed = ("0000:02:00.0", "0300", "1a03", "2000", "1a03", "2000", "52", "ast");
    let server = Machine::instinct(8, 8);
    for (machine, functions, expected) in [
        (captures::phoenix_beside_rtx4080(), 2, vec![phoenix, rtx4080]),
        (captures::a380(), 1, vec![a380]),
        (captures::vega(), 1, vec![vega]),
        (captures::mi300x(layout::XcpNames::Dot), 8, vec![first, last]),
        (server, 9, vec![first, aspeed]),
    ] {
        let root = laid_out(&machine);
        let seen = lspci(root.path());
        let gpus = seen.values().filter(|f| f.get("Class").is_some_and(|class| class != "0604")).count();
        assert_eq!(gpus, functions, "{seen:#?}");
        for (slot, class, vendor, device, subvendor, subdevice, revision, driver) in expected {
            let record = seen.get(slot).unwrap_or_else(|| panic!("lspci does not see {slot}: {seen:#?}"));
            let field = |key: &str| record.get(key).map_or("", String::as_str);
            assert_eq!(
                ["Class", "Vendor", "Device", "SVendor", "SDevice", "Rev", "Driver"].map(field),
                [class, vendor, device, subvendor, subdevice, revision, driver],
                "{slot}"
            );
        }
    }
}

#[test]
fn real_lspci_finds_no_driver_where_none_is_bound() {
    if !real::require(&["lspci"]) {
        return;
    }
    let machine = Machine::new()
        .gpu(Gpu::amd("0000:03:00.0", 0x7448).unbound())
        .gpu(Gpu::amd("0001:03:00.0", 0x7448).numa_node(1));
    let seen = lspci(laid_out(&machine).path());
    let driver = |slot: &str| seen.get(slot).expect(slot).get("Driver").map(String::as_str);
    assert_eq!(driver("0000:03:00.0"), None);
    assert_eq!(driver("0001:03:00.0"), Some("amdgpu"));
    let numa = seen.get("0001:03:00.0").unwrap().get("NUMANode").map(String::as_str);
    assert_eq!(numa, Some("1"));
}

/// node_exporter takes every cardN for AMD's (an NVIDIA card reads as one with 0 bytes), so only what it says of
/// amdgpu's cards is looked at.
#[test]
fn real_node_exporter_reads_the_amdgpu_cards() {
    if !real::require(&[node_exporter::PROGRAM]) {
        return;
    }
    // vega's captured card0/device/{mem_info_vram_total,gpu_busy_percent,mem_info_vram_vendor,…};
    // phoenix' card1/device/{mem_info_vram_total,mem_info_gtt_total}.
    for (machine, lines) in [
        (
            captures::vega(),
            vec![
                "node_drm_memory_vram_size_bytes{card=\"card0\"} 8.573157376e+09",
                "node_drm_gpu_busy_percent{card=\"card0\"} 4",
                "node_drm_card_info{card=\"card0\",memory_vendor=\"samsung\",power_performance_level=\"manual\",unique_id=\"0123456789abcdef\",vendor=\"amd\"} 1",
            ],
        ),
        (
            captures::phoenix_beside_rtx4080(),
            vec![
                "node_drm_memory_vram_size_bytes{card=\"card1\"} 4.294967296e+09",
                "node_drm_memory_gtt_size_bytes{card=\"card1\"} 3.1433977856e+10",
            ],
        ),
    ] {
        let root = laid_out(&machine);
        let answer = NodeExporter::start(root.path(), &["drm"]).scrape();
        for line in lines {
            assert!(answer.lines().any(|have| have == line), "{line} is not in\n{answer}");
        }
    }
}

#[test]
fn real_nodes_have_the_numbers_owner_and_mode_that_the_recording_says() {
    if !real::require_root(&[]) {
        return;
    }
    let machine = captures::phoenix();
    let root = tempfile::tempdir().unwrap();
    machine.lay_out(root.path(), Nodes::Real).unwrap();
    for (path, major, minor, gid) in
        [("dev/kfd", 237, 0, 992), ("dev/dri/card1", 226, 1, 44), ("dev/dri/renderD128", 226, 128, 992)]
    {
        let stat = fs::symlink_metadata(root.path().join(path)).unwrap();
        assert!(stat.file_type().is_char_device(), "{path}");
        let number = (nix::sys::stat::major(stat.rdev()), nix::sys::stat::minor(stat.rdev()));
        let rights = (stat.mode() & 0o7777, stat.uid(), stat.gid());
        assert_eq!((number, rights), ((major, minor), (0o660, 0, gid)), "{path}");
    }
    assert!(!root.path().join("capture.json").exists());
}
