//! A machine on disk has the shape that it has in a kernel's sysfs.
#![allow(clippy::disallowed_methods, reason = "the tests look at the files themselves")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use layout::{Device, Entry, Error, Gpu, Kfd, KfdNode, Machine, Module, Nodes, Tree, XcpNames};

fn laid_out(machine: &Machine) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

fn read(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn apu() -> Machine {
    Machine::new()
        .module(Module::new("amdgpu").srcversion("ABC").version("6.12.12"))
        .gpu(
            Gpu::amd("0000:64:00.0", 0x15bf)
                .behind("0000:00:08.1")
                .subsystem(0x17aa, 0x50da)
                .revision(0xdd)
                .card(1)
                .render(128)
                .attribute("unique_id", "0"),
        )
        .kfd(
            Kfd::new(237)
                .node(KfdNode::cpu(16))
                .node(KfdNode::gpu(35218, 0x15bf, 110_003).at("0000:64:00.0").render(128).memory(1 << 30)),
        )
}

/// Phoenix' captured uevent (tests/captures/phoenix.tar.gz, card1/device/uevent), byte for byte.
#[test]
fn a_uevent_is_the_one_that_the_kernel_wrote_for_the_same_function() {
    let root = laid_out(&apu());
    assert_eq!(
        read(root.path(), "sys/bus/pci/devices/0000:64:00.0/uevent"),
        "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:15BF\nPCI_SUBSYS_ID=17AA:50DA\n\
         PCI_SLOT_NAME=0000:64:00.0\nMODALIAS=pci:v00001002d000015BFsv000017AAsd000050DAbc03sc00i00\n"
    );
}

#[test]
fn every_way_to_a_gpu_ends_in_one_pci_folder() {
    let root = laid_out(&apu());
    let folder = root.path().join("sys/devices/pci0000:00/0000:00:08.1/0000:64:00.0");
    let folder = fs::canonicalize(folder).unwrap();
    for way in [
        "sys/bus/pci/devices/0000:64:00.0",
        "sys/bus/pci/drivers/amdgpu/0000:64:00.0",
        "sys/module/amdgpu/drivers/pci:amdgpu/0000:64:00.0",
        "sys/class/drm/card1/device",
        "sys/class/drm/renderD128/device",
        "sys/dev/char/226:1/device",
        "sys/dev/char/226:128/device",
    ] {
        assert_eq!(fs::canonicalize(root.path().join(way)).unwrap(), folder, "{way}");
    }
    for (file, text) in [
        ("vendor", "0x1002\n"),
        ("device", "0x15bf\n"),
        ("class", "0x030000\n"),
        ("revision", "0xdd\n"),
        ("numa_node", "-1\n"),
        ("unique_id", "0\n"),
        ("drm/card1/dev", "226:1\n"),
        ("drm/renderD128/uevent", "MAJOR=226\nMINOR=128\nDEVNAME=dri/renderD128\nDEVTYPE=drm_minor\n"),
    ] {
        assert_eq!(read(&folder, file), text, "{file}");
    }
    assert_eq!(read(root.path(), "sys/dev/char/237:0/topology/nodes/1/gpu_id"), "35218\n");
    assert!(read(root.path(), "proc/devices").contains("\n226 drm\n237 kfd\n"));
    assert!(read(root.path(), "proc/modules").starts_with("amdgpu "));
}

#[test]
fn no_link_of_a_machine_dangles() {
    for machine in [apu(), Machine::demo(), Machine::instinct(2, 8)] {
        let root = laid_out(&machine);
        for (path, entry) in machine.tree().unwrap().iter() {
            if matches!(entry, Entry::Link(_)) {
                assert!(root.path().join(path).exists(), "{path} dangles");
            }
        }
    }
}

#[test]
fn kfd_says_where_a_node_is_as_the_kernel_says_it() {
    let root = laid_out(&apu());
    let text = read(root.path(), "sys/class/kfd/kfd/topology/nodes/1/properties");
    // 25600 is what phoenix' own tree has for 0000:64:00.0 (kfd/topology/nodes/1/properties).
    for line in
        ["location_id 25600", "domain 0", "drm_render_minor 128", "mem_banks_count 1", "vendor_id 4098"]
    {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
}

#[test]
fn further_partitions_are_platform_devices_in_either_spelling() {
    for (names, second) in [(XcpNames::Dot, "amdgpu_xcp.1"), (XcpNames::Underscore, "amdgpu_xcp_1")] {
        let root = laid_out(&Machine::instinct(1, 4).xcp_names(names));
        let device = fs::canonicalize(root.path().join("sys/class/drm/renderD130/device")).unwrap();
        assert!(device.ends_with(format!("sys/devices/platform/{second}")), "{}", device.display());
    }
}

#[test]
fn recorded_nodes_are_listed_and_left_out_nodes_are_not() {
    let root = laid_out(&apu());
    let text: serde_json::Value = serde_json::from_str(&read(root.path(), "capture.json")).unwrap();
    let kfd = serde_json::json!(
        {"path":"/dev/kfd","type":"c","major":237,"minor":0,"mode":"0660","uid":0,"gid":992});
    assert_eq!(text["nodes"].as_array().unwrap().len(), 3);
    assert!(text["nodes"].as_array().unwrap().contains(&kfd), "{text:#}");
    let root = tempfile::tempdir().unwrap();
    apu().lay_out(root.path(), Nodes::None).unwrap();
    assert!(!root.path().join("capture.json").exists() && !root.path().join("dev").exists());
}

#[test]
fn what_is_put_through_a_link_changes_the_file_behind_it() {
    let mut captured = Tree::new();
    captured.put("vendor", vec![0xff, 0x00]);
    let machine = apu()
        .overlay("/sys/class/drm/card1/device", captured)
        .put("/sys/bus/pci/devices/0000:64:00.0/revision", "")
        .put("/sys/class/kfd/kfd/topology/nodes/1/properties", Entry::Directory)
        .remove("/sys/class/drm/renderD128")
        .remove("/dev/dri");
    let root = laid_out(&machine);
    let folder = root.path().join("sys/devices/pci0000:00/0000:00:08.1/0000:64:00.0");
    assert_eq!(fs::read(folder.join("vendor")).unwrap(), [0xff, 0x00]);
    assert_eq!(read(&folder, "revision"), "");
    assert!(root.path().join("sys/devices/virtual/kfd/kfd/topology/nodes/1/properties").is_dir());
    assert!(!root.path().join("sys/class/drm/renderD128").is_symlink());
    assert!(folder.join("drm/renderD128/dev").exists());
    assert!(!read(root.path(), "capture.json").contains("/dev/dri"));
}

#[test]
fn a_machine_that_cannot_be_is_refused_by_the_name_of_what_is_wrong() {
    let gpu = || Gpu::amd("0000:64:00.0", 0x15bf);
    for (machine, sentence) in [
        (
            Machine::new().gpu(Gpu::amd("64:00.0", 1)),
            "\"64:00.0\" is no PCI address: write it as 0000:64:00.0",
        ),
        (
            Machine::new().gpu(gpu().card(0)).gpu(Gpu::amd("0000:65:00.0", 1).card(0)),
            "/sys/class/drm/card0 is laid out twice: two GPUs of the machine claim it",
        ),
        (
            Machine::new().gpu(gpu()).gpu(gpu()),
            "/sys/bus/pci/devices/0000:64:00.0 is laid out twice: two GPUs of the machine claim it",
        ),
        (
            Machine::new().gpu(gpu().unbound().card(0)),
            "the GPU at 0000:64:00.0 has a DRM minor and no driver: bind one, or leave the minor out",
        ),
        (
            Machine::new().put("/../etc/passwd", ""),
            "\"/../etc/passwd\" does not lead to a place inside the machine",
        ),
    ] {
        assert_eq!(machine.tree().unwrap_err().to_string(), sentence);
    }
}

#[test]
fn captured_files_cannot_lead_out_of_the_directory() {
    let mut captured = Tree::new();
    captured.put("../../../outside", "");
    let root = tempfile::tempdir().unwrap();
    let machine = Machine::new().overlay("/sys/devices", captured);
    let error = machine.lay_out(&root.path().join("machine"), Nodes::Recorded).unwrap_err();
    assert!(matches!(error, Error::Path { .. }), "{error}");
    assert!(!root.path().join("outside").exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = apu().lay_out(file.path(), Nodes::Recorded).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path == file.path()), "{error}");
}

#[test]
fn a_device_keeps_the_mode_that_it_is_given() {
    let root = laid_out(&Machine::new().put("/dev/nvidia0", Device::new(195, 0, 0).mode(0o666)));
    assert!(read(root.path(), "capture.json").contains("\"mode\": \"0666\""));
}
