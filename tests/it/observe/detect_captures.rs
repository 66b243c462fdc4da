//! `detect` on captured machines. Every expected value was worked out by hand from the raw file
//! that is named beside it (paths inside the archives of tests/captures); what is synthetic about
//! the machines is said in tests/support/src/captures.rs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use layout::{Machine, XcpNames};
use serde_json::{Value, json};
use support::captures;
use support::detect::{assert_fields, reason};

fn detect(machine: &Machine) -> Value {
    support::detect::detect(Path::new(env!("CARGO_BIN_EXE_rocworker")), machine)
}

fn gpus(answer: &Value) -> &[Value] {
    answer["gpus"].as_array().unwrap()
}

/// The verification report's machine.
#[test]
fn phoenix_beside_an_nvidia_card_is_one_usable_gpu_and_one_that_is_only_listed() {
    let answer = detect(&captures::phoenix_beside_rtx4080());
    let [phoenix, nvidia] = gpus(&answer) else { panic!("{answer:#}") };
    assert_fields(
        phoenix,
        &json!({
            "index": 0,
            "vendor": "amd",
            "vendor_id": "1002",               // card1/device/vendor: 0x1002
            "device_id": "15bf",               // card1/device/device: 0x15bf
            "pci": "0000:64:00.0",             // card1/device/uevent: PCI_SLOT_NAME
            "driver": "amdgpu",                // card1/device/uevent: DRIVER
            "gfx": "gfx1103",                  // kfd/topology/nodes/1/properties: gfx_target_version 110003
            "uuid": null,                      // the same: unique_id 0; card1/device/unique_id is empty
            "card": "/dev/dri/card1",          // card1/uevent: DEVNAME=dri/card1
            "render": "/dev/dri/renderD128",   // kfd/topology/nodes/1/properties: drm_render_minor 128
            "kfd_node": 1,                     // the folder's name
            "numa_node": null,                 // card1/device/numa_node: -1
            "vram_bytes": 4_294_967_296_u64,   // card1/device/mem_info_vram_total
            "partition": null,                 // no current_compute_partition, one KFD node
            "sriov": null,
            "usable": true,
            "problems": [],
        }),
    );
    assert!(reason(phoenix, "numa_node").contains("-1"), "{phoenix:#}");
    assert!(!reason(phoenix, "uuid").is_empty(), "{phoenix:#}");
    assert_eq!(phoenix["unknown"].get("vram_bytes"), None);
    // pci.ids on 1002:15bf; the driver names no product.
    assert!(phoenix["name"].as_str().unwrap().contains("Phoenix"), "{phoenix:#}");
    assert_fields(
        nvidia,
        &json!({
            "index": null,
            "vendor": "nvidia",
            "vendor_id": "10de",               // card1/device/vendor
            "device_id": "2704",               // card1/device/uevent: PCI_ID=10DE:2704
            "pci": "0000:09:00.0",             // card1/device/uevent: PCI_SLOT_NAME
            "driver": "nvidia",                // card1/device/uevent: DRIVER
            "card": "/dev/dri/card0",
            "render": "/dev/dri/renderD129",
            "gfx": null, "uuid": null, "kfd_node": null, "vram_bytes": null, "partition": null,
            "usable": false,
        }),
    );
    assert!(nvidia["problems"][0].as_str().unwrap().contains("not an AMD GPU"), "{nvidia:#}");
    assert_fields(
        &answer,
        &json!({
            "schema_version": 1,
            "kfd": {"path": "/dev/kfd", "major": 237, "minor": 0}, // kfd/dev: 237:0
            "virtualization": null,
            "problems": [],
        }),
    );
    assert_eq!(answer["amdgpu"]["loaded"], true);
}

#[test]
fn vangogh_is_known_by_its_kfd_node_though_node_0_is_missing() {
    let answer = detect(&captures::vangogh());
    let [gpu] = gpus(&answer) else { panic!("{answer:#}") };
    assert_fields(
        gpu,
        &json!({
            "index": 0,
            "device_id": "163f",             // card0/device/uevent: PCI_ID=1002:163F; KFD device_id 5695
            "pci": "0000:04:00.0",           // card0/device/uevent: PCI_SLOT_NAME; KFD location_id 1024
            "gfx": "gfx1033",                // kfd/topology/nodes/1/properties: gfx_target_version 100303
            "card": "/dev/dri/card0",        // the captured folder's name
            "render": "/dev/dri/renderD128", // kfd/topology/nodes/1/properties: drm_render_minor 128
            "kfd_node": 1,                   // the folder's name
            "uuid": null,                    // kfd/topology/nodes/1/properties: unique_id 0
            "partition": null,
            "usable": true,
            "problems": [],
            // No mem_info_vram_total was captured. The APU's mem_banks/0 says 8589934592, and that is no
            // VRAM: phoenix' bank, 31433977856, is its mem_info_gtt_total to the byte.
            "vram_bytes": null,
        }),
    );
    assert!(reason(gpu, "vram_bytes").contains("mem_info_vram_total"), "{gpu:#}");
}

/// Four cards of whose machines no KFD was captured: listed, with the reason, and with an index.
#[test]
fn a_captured_card_without_kfd_is_listed_with_what_sysfs_says_of_it_and_is_not_usable() {
    for (name, machine, expected) in [
        (
            "rx7800xt",
            captures::rx7800xt(),
            json!({
                "device_id": "747e",         // card1/device/uevent: PCI_ID=1002:747E
                "pci": "0000:03:00.0",       // card1/device/uevent: PCI_SLOT_NAME
                "card": "/dev/dri/card1",    // card1/uevent: DEVNAME=dri/card1
                "vram_bytes": null,          // no mem_info_vram_total captured
                "uuid": null,                // no unique_id captured
            }),
        ),
        (
            "rx6900xt",
            captures::rx6900xt(),
            json!({
                "device_id": "73bf",                // card0/device/uevent: PCI_ID=1002:73BF
                "pci": "0000:0c:00.0",              // card0/device/uevent: PCI_SLOT_NAME
                "card": "/dev/dri/card0",           // the captured folder's name
                "vram_bytes": 17_163_091_968_u64,   // card0/device/mem_info_vram_total, padded with NULs
                "uuid": "GPU-946d7e1ef9b172dd",     // card0/device/unique_id, padded with NULs
                "numa_node": null,                  // card0/device/numa_node: -1
            }),
        ),
        (
            "rx9070",
            captures::rx9070(),
            json!({
                "device_id": "7550",         // card1/device/uevent: PCI_ID=1002:7550
                "pci": "0000:03:00.0",       // card1/device/uevent: PCI_SLOT_NAME
                "card": "/dev/dri/card1",    // card1/dev: 226:1
                "vram_bytes": null,          // no mem_info_vram_total captured
                "uuid": null,                // no unique_id captured
            }),
        ),
        (
            "vega",
            captures::vega(),
            json!({
                "device_id": "687f",                // card0/device/device: 0x687f
                "pci": "0000:09:00.0",              // card0/device/uevent: PCI_SLOT_NAME
                "card": "/dev/dri/card0",           // the captured folder's name
                "vram_bytes": 8_573_157_376_u64,    // card0/device/mem_info_vram_total
                "uuid": "GPU-0123456789abcdef",     // card0/device/unique_id
                "numa_node": null,                  // card0/device/numa_node: -1
            }),
        ),
    ] {
        let answer = detect(&machine);
        let [gpu] = gpus(&answer) else { panic!("{name}: {answer:#}") };
        assert_fields(gpu, &expected);
        assert_fields(
            gpu,
            &json!({
                "index": 0, "vendor": "amd", "vendor_id": "1002", "driver": "amdgpu",
                "render": "/dev/dri/renderD128", "kfd_node": null, "gfx": null, "partition": null,
                "usable": false,
            }),
        );
        let problems = gpu["problems"].as_array().unwrap();
        assert!(problems.len() == 1 && problems[0].as_str().unwrap().contains("KFD"), "{name}: {gpu:#}");
        assert!(!reason(gpu, "gfx").is_empty(), "{name}: {gpu:#}");
        assert_eq!(answer["kfd"], Value::Null, "{name}");
        // product_name is absent, or empty (vega, rx6900xt): pci.ids knows each of the four.
        assert!(
            gpu["name"].as_str().is_some_and(|name| name.contains("Navi") || name.contains("Vega")),
            "{gpu:#}"
        );
    }
}

#[test]
fn an_intel_card_is_listed_and_a_machine_without_amd_has_no_index_at_all() {
    let answer = detect(&captures::a380());
    let [gpu] = gpus(&answer) else { panic!("{answer:#}") };
    assert_fields(
        gpu,
        &json!({
            "index": null,
            "vendor": "intel",
            "vendor_id": "8086",        // card1/device/vendor
            "device_id": "56a5",        // card1/device/uevent: PCI_ID=8086:56A5
            "pci": "0000:0b:00.0",      // card1/device/uevent: PCI_SLOT_NAME
            "driver": "i915",           // card1/device/uevent: DRIVER
            "card": "/dev/dri/card1",   // card1/uevent: DEVNAME=dri/card1
            "usable": false,
        }),
    );
    assert_eq!(answer["kfd"], Value::Null);
    assert_eq!(answer["amdgpu"], json!({"loaded": false, "version": null, "srcversion": null}));
}

/// The PCI address of each card, the first of its KFD nodes, and how many it has: read off
/// topology/nodes/*/properties. `location_id` of the first nodes, in hexadecimal: 500, 2700, 4700,
/// 6500, 8500, a700, c700, e500, all in `domain 0`; the bus is the upper byte.
const CARDS: [(&str, u32, u32); 8] = [
    ("0000:05:00.0", 2, 8),
    ("0000:27:00.0", 10, 8),
    ("0000:47:00.0", 18, 8),
    ("0000:65:00.0", 26, 8),
    ("0000:85:00.0", 34, 8),
    ("0000:a7:00.0", 42, 8),
    ("0000:c7:00.0", 50, 8),
    ("0000:e5:00.0", 58, 7),
];

#[test]
fn mi300x_in_cpx_is_63_gpus_in_kfd_order_in_eight_cards_under_either_spelling() {
    let expected: Vec<(&str, u32, u32)> = CARDS
        .iter()
        .flat_map(|(pci, first, parts)| (0..*parts).map(move |part| (*pci, first + part, part)))
        .collect();
    assert_eq!(expected.len(), 63);
    for names in [XcpNames::Dot, XcpNames::Underscore] {
        let answer = detect(&captures::mi300x(names));
        assert_eq!(gpus(&answer).len(), 63, "{names:?}");
        for (index, (gpu, (pci, node, part))) in gpus(&answer).iter().zip(&expected).enumerate() {
            assert_fields(
                gpu,
                &json!({
                    "index": index,
                    "vendor": "amd",
                    "device_id": "74a1",                        // device_id 29857
                    "pci": pci,
                    "driver": "amdgpu",
                    "gfx": "gfx942",                            // gfx_target_version 90402
                    "uuid": null,                               // eight nodes share each unique_id
                    "card": format!("/dev/dri/card{index}"),    // synthetic
                    // drm_render_minor 128 on node 2, and one more on each node after it
                    "render": format!("/dev/dri/renderD{}", 128 + index),
                    "kfd_node": node,
                    "vram_bytes": null,                         // no mem_banks folder in any GPU node
                    // No partition files were captured; the place among the card's nodes is known.
                    "partition": {"compute": null, "memory": null, "id": part},
                    "sriov": null,
                    "usable": true,
                    "problems": [],
                }),
            );
            assert!(reason(gpu, "vram_bytes").contains("mem_banks"), "{gpu:#}");
            assert!(reason(gpu, "uuid").contains("share"), "{gpu:#}");
            assert!(!reason(gpu, "partition.compute").is_empty(), "{gpu:#}");
        }
        assert_eq!(answer["problems"], json!([]));
    }
}

#[test]
fn a_capture_that_is_packed_is_named_with_the_command_that_lays_it_out() {
    let packed = captures::folder().join("phoenix");
    for path in [packed.clone(), packed.join(""), packed.with_extension("tar.gz")] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_rocworker")).arg("--root").arg(&path).arg("detect").output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{path:?}: {said}");
        assert!(said.contains("phoenix.tar.gz is packed") && said.contains("cargo xtask captures"), "{said}");
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_rocworker")).args(["--root", "/no/such", "detect"]).output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(said.contains("cannot open /no/such") && !said.contains("packed"), "{said}");
}

/// What `cargo xtask captures` lays out is each archive of a machine.
#[test]
fn every_archive_of_a_machine_can_be_laid_out_and_has_gpus() {
    let archives = std::fs::read_dir(captures::folder()).unwrap();
    let names = archives
        .filter_map(|it| it.unwrap().file_name().to_str()?.strip_suffix(".tar.gz").map(str::to_owned));
    let machines: BTreeSet<String> = names.filter(|name| name != "kernel-log-samples").collect();
    assert_eq!(machines, captures::ALL.iter().map(|(name, _)| (*name).to_owned()).collect());
    for (name, machine) in captures::ALL {
        assert!(!gpus(&detect(&machine())).is_empty(), "{name}");
    }
}
