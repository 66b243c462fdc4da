//! `labels`. Expected values of captures were worked out by hand from their raw files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use layout::{Machine, Nodes, XcpNames};
use serde_json::Value;
use support::captures;
use support::detect::scratch;

fn run(root: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rocworker"))
        .arg("--root")
        .arg(root)
        .args(line.split(' '))
        .output()
        .unwrap()
}

#[track_caller]
fn says(root: &Path, line: &str) -> String {
    let output = run(root, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The labels by the patch of the node.
fn labels(root: &Path) -> BTreeMap<String, String> {
    let patch: Value = serde_json::from_str(&says(root, "labels -o json")).unwrap();
    serde_json::from_value(patch["metadata"]["labels"].clone()).unwrap()
}

fn configure(root: &Path, text: &str) {
    std::fs::create_dir_all(root.join("etc/rocworker")).unwrap();
    std::fs::write(root.join("etc/rocworker/config.yaml"), text).unwrap();
}

fn laid(machine: &Machine) -> tempfile::TempDir {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

/// The capture has no memory and no product's name, and the kernel's own driver no version: these labels are absent.
#[test]
fn a_server_in_cpx_counts_partitions_by_their_size_and_cards_by_their_name() {
    let root = laid(&captures::mi300x(XcpNames::Dot));
    let expected = [
        ("amd.com/gpu", "true"),
        ("amd.com/gpu.cu-count", "38"),
        ("amd.com/gpu.device-id", "74a1"),
        ("amd.com/gpu.family", "AI"),
        ("amd.com/gpu.simd-count", "152"),
        ("amdgpu.com/gpu.present", "true"),
        ("beta.amd.com/gpu.cu-count", "38"),
        ("beta.amd.com/gpu.cu-count.38", "63"),
        ("beta.amd.com/gpu.device-id", "74a1"),
        ("beta.amd.com/gpu.device-id.74a1", "8"),
        ("beta.amd.com/gpu.family", "AI"),
        ("beta.amd.com/gpu.family.AI", "8"),
        ("beta.amd.com/gpu.simd-count", "152"),
        ("beta.amd.com/gpu.simd-count.152", "63"),
        ("gpu", "true"),
    ];
    let expected: BTreeMap<String, String> =
        expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(labels(root.path()), expected);
}

/// Synthetic: partition files as amdgpu lays them out.
#[test]
fn several_values_are_counted_and_modes_are_named_only_where_all_cards_agree() {
    let machine = |other: &str| {
        let gpu = |address: &str, number: u32, id: u16, mode: &str| {
            layout::Gpu::amd(address, id)
                .card(number)
                .render(128 + number)
                .attribute("current_compute_partition", mode)
                .attribute("available_compute_partition", "SPX, DPX")
                .attribute("current_memory_partition", "NPS1")
                .attribute("product_name", "AMD Instinct MI300X (OAM)")
                .attribute("mem_info_vram_total", &(192_u64 << 30).to_string())
                .entry("fw_version/mec_fw_version", "0x000000b1\n")
                .entry("fw_version/vce_fw_version", "0x00000000\n")
        };
        let machine = Machine::new().module(layout::Module::new("amdgpu"));
        let gpus = [gpu("0000:05:00.0", 0, 0x74a1, "SPX"), gpu("0000:15:00.0", 1, 0x74a5, other)];
        laid(&gpus.into_iter().fold(machine, Machine::gpu))
    };
    const ALL: &str = "kubernetes: {labels: [device-id, product-name, vram, compute-memory-partition, compute-partitioning-supported, \
                       memory-partitioning-supported, firmware]}\n";
    for (other, modes) in [("SPX", Some("spx_nps1")), ("DPX", None)] {
        let root = machine(other);
        configure(root.path(), ALL);
        let labels = labels(root.path());
        let value = |name: &str| labels.get(name).map(String::as_str);
        assert_eq!(value("amd.com/gpu.compute-memory-partition"), modes, "{labels:?}");
        for (name, expected) in [
            ("amd.com/gpu.device-id", None),
            ("amd.com/gpu.device-id.74a1", Some("1")),
            ("amd.com/gpu.device-id.74a5", Some("1")),
            ("beta.amd.com/gpu.device-id.74a5", Some("1")),
            ("amd.com/gpu.product-name", Some("AMD_Instinct_MI300X_OAM")),
            // KFD does not know the GPUs.
            ("amd.com/gpu.vram", None),
            ("amd.com/gpu.compute-partitioning-supported", Some("true")),
            ("amd.com/gpu.memory-partitioning-supported", Some("false")),
            ("beta.amd.com/gpu.firmware.MEC.fw.177", Some("2")),
            ("beta.amd.com/gpu.firmware.VCE.fw.0", None),
            ("amd.com/gpu.family", None),
            ("gpu", None),
        ] {
            assert_eq!(value(name), expected, "{name}: {labels:?}");
        }
    }
}

#[test]
fn each_format_has_what_its_reader_takes() {
    let root = laid(&captures::mi300x(XcpNames::Dot));
    let lines = says(root.path(), "labels");
    assert!(lines.starts_with("amd.com/gpu=true\n") && lines.contains("\ngpu=true\n"), "{lines}");
    let yaml = says(root.path(), "labels -o yaml");
    assert!(yaml.starts_with("metadata:\n  labels:\n") && yaml.contains("    gpu: 'true'\n"), "{yaml}");
    let file = says(root.path(), "labels -o nfd");
    assert!(file.lines().all(|line| line.contains('/') && line.contains('=')), "{file}");
    assert!(file.contains("amdgpu.com/gpu.present=true\n"), "{file}");
    let output = run(root.path(), "detect -o nfd");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("-o nfd is of `rocworker labels` alone: take table, wide or json"), "{stderr}");
}

#[test]
fn a_machine_without_amds_gpus_has_no_label() {
    for machine in [Machine::new(), captures::rtx4080(0, 128), captures::a380()] {
        let root = laid(&machine);
        assert_eq!(says(root.path(), "labels"), "No label: amdgpu drives no GPU of this machine.\n");
        assert!(labels(root.path()).is_empty());
    }
}
