//! `partition show`. Expected values of the capture were worked out by hand: see support::captures.

use layout::{Nodes, XcpNames};
use serde_json::{Value, json};
use support::captures;
use support::detect::scratch;
use support::fuse;

use super::machine::{answer, served, text};

const GIB: u64 = 1 << 30;

#[test]
fn a_captured_server_in_cpx_has_24_gib_a_device_and_lacks_one_for_a_reason() {
    let root = scratch();
    captures::mi300x(XcpNames::Dot).lay_out(root.path(), Nodes::Recorded).unwrap();
    let answer = answer(root.path(), "partition show");
    let cards = answer["cards"].as_array().unwrap();
    assert_eq!(cards.len(), 8);
    for (number, card) in cards.iter().enumerate() {
        assert_eq!((&card["model"], &card["xcds"]), (&json!("MI300X"), &json!(8)));
        assert_eq!(card["compute"]["current"], "CPX");
        assert_eq!(card["memory"]["current"], Value::Null);
        assert_eq!(card["computed"], json!(["compute.current", "memory_bytes"]));
        assert_eq!(card["expected_devices"], 8);
        let devices = card["devices"].as_array().unwrap();
        assert_eq!(devices.len(), if number == 7 { 7 } else { 8 });
        for device in devices {
            assert_eq!(
                (&device["memory_bytes"], &device["memory_computed"]),
                (&json!(24 * GIB), &json!(true))
            );
        }
    }
    let notes = answer["notes"].as_array().unwrap();
    let notes: Vec<&str> = notes.iter().map(|note| note.as_str().unwrap()).collect();
    assert!(
        matches!(&*notes, [note] if note.starts_with("0000:e5:00.0 has 7 of 8 devices: the kernel's DRM has 64 minors")),
        "{notes:?}"
    );
    insta::assert_snapshot!("captured", text(root.path(), "partition show"));
}

/// Synthetic, as amdgpu_xcp.c and pci-sysfs lay the files out: a physical function, and one of its virtual ones.
#[test]
fn physical_and_virtual_functions_are_told_apart_and_a_guests_mode_is_its_hosts() {
    let root = scratch();
    let gpu = |address: &str, number: u32| {
        layout::Gpu::amd(address, 0x74a1)
            .card(number)
            .render(128 + number)
            .attribute("current_compute_partition", "SPX")
            .attribute("current_memory_partition", "NPS1")
    };
    let physical = gpu("0000:05:00.0", 0).virtual_functions(8, &["0000:05:02.0"]);
    let of_host = gpu("0000:05:02.0", 1).virtual_function_of("0000:05:00.0");
    let of_guest = gpu("0000:07:00.0", 2);
    let machine = layout::Machine::new().module(layout::Module::new("amdgpu"));
    let machine = [physical, of_host, of_guest].into_iter().fold(machine, layout::Machine::gpu);
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    // The driver makes the file of a virtual function read-only.
    let file = root.path().join("sys/bus/pci/devices/0000:07:00.0/current_compute_partition");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o444);
    std::fs::set_permissions(file, mode).unwrap();
    let answer = answer(root.path(), "partition show");
    let notes = answer["notes"].to_string();
    for note in [
        "0000:05:00.0 is a physical function with 1 virtual functions",
        "0000:05:02.0 is a virtual function of 0000:05:00.0",
        "the driver lets no mode of a virtual function be written: its host sets the modes, which may differ",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    let writable: Vec<_> =
        answer["cards"].as_array().unwrap().iter().map(|card| card["writable"].clone()).collect();
    assert_eq!(writable, [json!(true), json!(true), json!(false)]);
}

#[test]
fn real_a_driver_with_partition_files_is_believed_and_what_its_kernel_allows_is_beside_what_amd_validated() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let shown = answer(machine.root(), "partition show");
    let card = &shown["cards"][0];
    assert_eq!((&card["computed"], &card["unknown"]), (&json!([]), &json!({})));
    let rows: Vec<(String, u64, u64, bool, bool, bool)> = card["combinations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap();
            let is = |key: &str| row[key].as_bool().unwrap();
            (
                format!("{}/{}", text("compute"), text("memory")),
                row["devices"].as_u64().unwrap(),
                row["memory_bytes"].as_u64().unwrap() / GIB,
                is("kernel_allows"),
                is("amd_validated"),
                is("current"),
            )
        })
        .collect();
    let expected = [
        ("SPX/NPS1", 1, 192, true, true, true),
        ("SPX/NPS4", 1, 48, false, false, false),
        ("DPX/NPS1", 2, 96, true, true, false),
        ("DPX/NPS4", 2, 48, false, false, false),
        ("QPX/NPS1", 4, 48, true, true, false),
        ("QPX/NPS4", 4, 48, true, true, false),
        ("CPX/NPS1", 8, 24, true, true, false),
        ("CPX/NPS4", 8, 24, true, true, false),
    ];
    assert_eq!(rows, expected.map(|(modes, a, b, c, d, e)| (modes.to_owned(), a, b, c, d, e)));
    insta::assert_snapshot!("served", text(machine.root(), "partition show"));
}
