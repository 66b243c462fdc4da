//! `detect` where sysfs, KFD or /dev are not what they should be: it always answers, every GPU is
//! listed once, what cannot be known is null with a reason that names the file, and nothing that is
//! in doubt is offered. Root reads everything, so that a file that cannot be read is a folder here.

use std::path::Path;

use layout::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module};
use serde_json::{Value, json};
use support::detect::{assert_fields, reason};

const PCI: &str = "/sys/bus/pci/devices/0000:03:00.0";
const RENDER: &str = "/sys/class/drm/renderD128";
const KFD: &str = "/sys/class/kfd/kfd";

fn detect(machine: &Machine) -> Value {
    let answer = support::detect::detect(Path::new(env!("CARGO_BIN_EXE_rocworker")), machine);
    assert_no_node_is_0_0(&answer);
    answer
}

fn assert_no_node_is_0_0(answer: &Value) {
    let kfd = &answer["kfd"];
    assert!(kfd.is_null() || (&kfd["major"], &kfd["minor"]) != (&json!(0), &json!(0)), "{answer:#}");
}

/// The entry of the machine's one GPU.
fn only(answer: &Value) -> &Value {
    let [gpu] = answer["gpus"].as_array().unwrap().as_slice() else { panic!("not one GPU: {answer:#}") };
    gpu
}

fn problems(gpu: &Value) -> String {
    gpu["problems"].to_string()
}

/// A W7900 that is usable until something is done to it.
fn good() -> Machine {
    let gpu = Gpu::amd("0000:03:00.0", 0x7448)
        .numa_node(1)
        .card(0)
        .render(128)
        .attribute("product_name", "AMD Radeon PRO W7900")
        .attribute("unique_id", "5ca1ab1e00000001")
        .attribute("mem_info_vram_total", "51539607552")
        .attribute("current_compute_partition", "SPX")
        .attribute("current_memory_partition", "NPS1");
    Machine::new().module(Module::new("amdgpu")).gpu(gpu).kfd(
        Kfd::new(511)
            .node(KfdNode::cpu(16))
            .node(KfdNode::gpu(7001, 0x7448, 110_000).at("0000:03:00.0").render(128).memory(51_539_607_552)),
    )
}

/// A file gone bad, in each way that it can.
fn ruined() -> Vec<(&'static str, Option<Entry>)> {
    vec![
        ("gone", None),
        ("empty", Some("".into())),
        ("only a line's end", Some("\n".into())),
        ("a folder", Some(Entry::Directory)),
        ("binary", Some(vec![0xff, 0xfe, 0x00, 0x01, 0x80, b'1', b'\n'].into())),
        ("control characters", Some("\u{1b}[2J0x1002\n".into())),
        ("a megabyte", Some(vec![b'1'; 1 << 20].into())),
        ("words", Some("not for you\n".into())),
        ("a dangling link", Some(Entry::Link("../nowhere".to_owned()))),
        ("a link to itself", Some(Entry::Link("itself".to_owned()))),
    ]
}

fn with(machine: Machine, path: &str, entry: Option<&Entry>) -> Machine {
    match entry {
        Some(entry) => machine.put(path, entry.clone()),
        None => machine.remove(path),
    }
}

#[test]
fn the_machine_that_the_others_ruin_is_good() {
    assert_fields(
        only(&detect(&good())),
        &json!({
            "name": "AMD Radeon PRO W7900", "numa_node": 1, "vram_bytes": 51_539_607_552_u64,
            "uuid": "GPU-5ca1ab1e00000001", "usable": true, "unknown": {},
            "partition": {"compute": "SPX", "memory": "NPS1", "id": 0},
        }),
    );
}

#[test]
fn an_attribute_gone_bad_is_null_with_a_reason_that_names_its_file_and_costs_nothing_else() {
    for (file, field) in
        [("mem_info_vram_total", "vram_bytes"), ("numa_node", "numa_node"), ("unique_id", "uuid")]
    {
        for (how, entry) in ruined() {
            let answer = detect(&with(good(), &format!("{PCI}/{file}"), entry.as_ref()));
            let gpu = only(&answer);
            assert_fields(gpu, &json!({ field: null, "usable": true, "problems": [] }));
            let reason = reason(gpu, field);
            assert!(reason.len() < 600, "{file} {how}: the reason has {} bytes", reason.len());
            assert!(file == "unique_id" || reason.contains(file), "{file} {how}: {reason}");
        }
    }
}

#[test]
fn a_unique_id_that_cannot_be_read_is_not_said_to_be_none() {
    for (how, entry) in ruined() {
        if ["gone", "empty", "only a line's end"].contains(&how) {
            continue;
        }
        let answer = detect(&with(good(), &format!("{PCI}/unique_id"), entry.as_ref()));
        let reason = reason(only(&answer), "uuid");
        assert!(reason.contains("unique_id"), "{how}: {reason}");
    }
}

#[test]
fn a_partition_file_gone_bad_leaves_the_other_one_and_the_gpu() {
    for (how, entry) in ruined() {
        // Words are words: the kernel may learn a mode that nobody here knows.
        if how == "words" || how == "a megabyte" {
            continue;
        }
        let answer = detect(&with(good(), &format!("{PCI}/current_compute_partition"), entry.as_ref()));
        let gpu = only(&answer);
        let partition = json!({"compute": null, "memory": "NPS1", "id": 0});
        assert_fields(gpu, &json!({ "partition": partition, "usable": true }));
        assert!(reason(gpu, "partition.compute").contains("current_compute_partition"), "{how}: {gpu:#}");
    }
}

#[test]
fn a_product_name_gone_bad_gives_way_to_the_chips_name() {
    for (how, entry) in ruined() {
        if how == "words" {
            continue;
        }
        let answer = detect(&with(good(), &format!("{PCI}/product_name"), entry.as_ref()));
        let name = only(&answer)["name"].as_str().unwrap().to_owned();
        assert!(name.contains("Navi 31") && name.len() < 100, "{how}: {name}");
    }
}

#[test]
fn any_one_of_the_files_that_identify_a_function_may_be_bad() {
    for file in ["uevent", "vendor", "device", "class", "driver", "modalias", "config"] {
        for (how, entry) in ruined() {
            let answer = detect(&with(good(), &format!("{PCI}/{file}"), entry.as_ref()));
            let expected = json!({
                "index": 0, "vendor": "amd", "vendor_id": "1002", "device_id": "7448", "driver": "amdgpu",
                "pci": "0000:03:00.0", "usable": true,
            });
            let gpu = only(&answer);
            let same = expected.as_object().unwrap().iter().all(|(key, value)| gpu[key] == *value);
            assert!(same, "{file} {how}: {gpu:#}");
        }
    }
}

#[test]
fn a_function_that_cannot_be_identified_is_named_and_never_offered() {
    for file in ["vendor", "device", "class"] {
        for (how, entry) in ruined() {
            let machine =
                with(good().remove(&format!("{PCI}/uevent")), &format!("{PCI}/{file}"), entry.as_ref());
            let answer = detect(&machine);
            let usable = answer["gpus"].as_array().unwrap().iter().any(|gpu| gpu["usable"] == true);
            assert!(!usable, "{file} {how}: {answer:#}");
            let said = answer["problems"].to_string();
            assert!(said.contains("0000:03:00.0") && said.contains(file), "{file} {how}: {answer:#}");
        }
    }
}

#[test]
fn a_kfd_node_gone_bad_is_named_and_its_gpu_is_listed_and_not_usable() {
    for (how, entry) in ruined() {
        let answer = detect(&with(good(), &format!("{KFD}/topology/nodes/1/properties"), entry.as_ref()));
        assert_fields(only(&answer), &json!({"index": null, "usable": false, "gfx": null, "kfd_node": null}));
        let problems = problems(only(&answer));
        assert!(problems.contains("whether KFD knows it cannot be seen: KFD node 1: "), "{how}: {answer:#}");
        assert!(answer["problems"][0].as_str().unwrap().contains("KFD node 1"), "{how}: {answer:#}");
    }
}

#[test]
fn a_bad_cpu_node_costs_no_gpu() {
    for (_, entry) in ruined() {
        let answer = detect(&with(good(), &format!("{KFD}/topology/nodes/0/properties"), entry.as_ref()));
        assert_fields(only(&answer), &json!({"usable": true, "kfd_node": 1}));
    }
}

#[test]
fn a_kfd_whose_nodes_cannot_be_listed_is_no_kfd() {
    for (how, entry) in ruined() {
        if how == "a folder" {
            continue; // an empty topology: KFD is there and knows no GPU
        }
        let answer = detect(&with(good(), &format!("{KFD}/topology/nodes"), entry.as_ref()));
        assert_eq!(only(&answer)["usable"], false, "{how}: {answer:#}");
        assert!(problems(only(&answer)).contains("KFD"), "{how}: {answer:#}");
    }
}

#[test]
fn a_render_node_whose_number_sysfs_does_not_tell_is_not_offered() {
    for (how, entry) in ruined().into_iter().chain([("0:0", Some("0:0\n".into()))]) {
        let answer = detect(&with(good(), &format!("{RENDER}/dev"), entry.as_ref()));
        assert_eq!(only(&answer)["usable"], false, "{how}: {answer:#}");
        assert!(problems(only(&answer)).contains("renderD128"), "{how}: {answer:#}");
    }
}

#[test]
fn a_kfd_whose_number_sysfs_tells_wrong_is_not_offered() {
    for (how, entry) in ruined().into_iter().chain([("0:0", Some("0:0\n".into()))]) {
        // A file that is not there is no contradiction: see detect_shapes.rs, kfds_number_comes_from_….
        if how == "gone" {
            continue;
        }
        let answer = detect(&with(good(), &format!("{KFD}/dev"), entry.as_ref()));
        assert_eq!(only(&answer)["usable"], false, "{how}: {answer:#}");
        assert!(problems(only(&answer)).contains("/dev/kfd"), "{how}: {answer:#}");
        assert_eq!(answer["kfd"], Value::Null, "{how}");
    }
}

#[test]
fn a_drm_entry_that_leads_nowhere_leaves_its_card_listed_and_not_usable() {
    for path in [RENDER.to_owned(), format!("{RENDER}/device")] {
        for (how, entry) in ruined() {
            // Without a device link the entry's own link still leads into the device's folder; one that leads
            // elsewhere is believed.
            if path.ends_with("device") && !matches!(entry, Some(Entry::Link(_))) {
                continue;
            }
            let answer = detect(&with(good(), &path, entry.as_ref()));
            let gpus = answer["gpus"].as_array().unwrap();
            assert!(gpus.iter().all(|gpu| gpu["usable"] == false), "{path} {how}: {answer:#}");
            assert!(gpus.iter().any(|gpu| gpu["pci"] == "0000:03:00.0"), "{path} {how}: {answer:#}");
        }
    }
}

#[test]
fn what_stands_in_dev_must_be_the_device_that_sysfs_names() {
    for (node, entry, words) in [
        ("/dev/dri/renderD128", Entry::from("text"), "not a character device"),
        ("/dev/dri/renderD128", Entry::Directory, "not a character device"),
        ("/dev/dri/renderD128", Entry::Link("nowhere".to_owned()), "/dev/dri/renderD128"),
        ("/dev/dri/renderD128", Device::new(226, 129, 992).into(), "226:129, and the kernel says 226:128"),
        ("/dev/dri/renderD128", Device::new(0, 0, 992).into(), "0:0"),
        ("/dev/kfd", Entry::from(""), "not a character device"),
        ("/dev/kfd", Device::new(237, 0, 992).into(), "237:0, and the kernel says 511:0"),
        ("/dev/kfd", Device::new(0, 0, 992).into(), "0:0"),
    ] {
        let answer = detect(&good().put(node, entry));
        let gpu = only(&answer);
        assert_eq!(gpu["usable"], false, "{gpu:#}");
        assert!(problems(gpu).contains(node) && problems(gpu).contains(words), "{words}: {gpu:#}");
        assert_eq!(answer["kfd"].is_null(), node == "/dev/kfd");
    }
}

#[test]
fn a_missing_or_wrong_card_node_does_not_cost_the_gpu_its_compute() {
    for machine in [good().remove("/dev/dri/card0"), good().put("/dev/dri/card0", "text")] {
        assert_eq!(only(&detect(&machine))["usable"], true);
    }
}

#[test]
fn a_minor_that_two_kfd_nodes_name_is_offered_to_nobody() {
    let node = |id| KfdNode::gpu(id, 0x7448, 110_000).at("0000:03:00.0").render(128);
    let kfd = Kfd::new(511).node(KfdNode::cpu(16)).node(node(1)).node(node(2));
    let answer = detect(&good().kfd(kfd));
    assert_eq!(only(&answer)["usable"], false);
    assert!(problems(only(&answer)).contains("[1, 2]"), "{answer:#}");
    assert!(problems(only(&answer)).contains("128"), "{answer:#}");
}

#[test]
fn a_kfd_node_that_names_a_minor_that_is_not_there_is_told_and_makes_no_gpu() {
    let node = |render| KfdNode::gpu(render, 0x7448, 110_000).at("0000:03:00.0").render(render);
    let answer = detect(&good().kfd(Kfd::new(511).node(node(128)).node(node(200))));
    assert_eq!(only(&answer)["usable"], true);
    assert!(answer["problems"][0].as_str().unwrap().contains("renderD200"), "{answer:#}");
}

/// However it came to that: another vendor's node is never given out as AMD's.
#[test]
fn a_kfd_node_that_names_another_vendors_render_node_is_not_offered() {
    let kfd = Kfd::new(511).node(KfdNode::gpu(1, 0x7448, 110_000).at("0000:03:00.0").render(129));
    let nvidia = Gpu::nvidia("0000:01:00.0", 0x2704).card(1).render(129);
    let answer = detect(&good().gpu(nvidia).kfd(kfd));
    for gpu in answer["gpus"].as_array().unwrap() {
        assert_eq!(gpu["usable"], false, "{answer:#}");
        assert!(gpu["vendor"] != "amd" || gpu["pci"] != "0000:01:00.0", "{answer:#}");
    }
}

#[test]
fn a_partition_whose_cards_first_node_is_missing_still_has_its_card() {
    let gpu = Gpu::amd("0000:05:00.0", 0x74a1).class(0x12_0000).card(1).render(136).partition(2, 137);
    let node = KfdNode::gpu(2, 0x74a1, 90_402).at("0000:05:00.0").partition(1).render(137);
    let kfd = Kfd::new(511).node(KfdNode::cpu(1)).node(node);
    let answer = detect(&Machine::new().gpu(gpu).kfd(kfd));
    let [partition, card] = answer["gpus"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    assert_fields(
        partition,
        &json!({"render": "/dev/dri/renderD137", "pci": "0000:05:00.0", "usable": true}),
    );
    assert_fields(card, &json!({"render": "/dev/dri/renderD136", "pci": "0000:05:00.0", "usable": false}));
}

#[test]
fn names_that_no_kernel_gives_are_passed_over() {
    let answer = detect(
        &good()
            .put("/sys/bus/pci/devices/README", "")
            .put("/sys/bus/pci/devices/0000:ff:ff.f", Entry::Link("nowhere".to_owned()))
            .put("/sys/class/drm/card0-HDMI-A-1", Entry::Link("nowhere".to_owned()))
            .put("/sys/class/drm/renderDx", Entry::Link("nowhere".to_owned()))
            .put("/sys/class/drm/renderD99999999999", Entry::Link("nowhere".to_owned()))
            .put(&format!("{KFD}/topology/nodes/x/properties"), "simd_count 1\n"),
    );
    assert_fields(only(&answer), &json!({"usable": true, "render": "/dev/dri/renderD128"}));
}

#[test]
fn properties_with_numbers_beyond_every_type_make_no_wrong_gpu() {
    for (key, value) in [
        ("drm_render_minor", "99999999999999999999"),
        ("drm_render_minor", "-1"),
        ("drm_render_minor", "0"),
        ("gfx_target_version", "99999999999999999999"),
        ("location_id", "99999999999999999999"),
        ("domain", "-1"),
        ("unique_id", "99999999999999999999"),
    ] {
        let others = "simd_count 4\nvendor_id 4098\n";
        let minor = if key == "drm_render_minor" { "" } else { "drm_render_minor 128\n" };
        let properties = format!("cpu_cores_count 0\n{others}{minor}{key} {value}\n");
        let answer = detect(&good().put(&format!("{KFD}/topology/nodes/1/properties"), properties));
        let gpu = only(&answer);
        assert_eq!(gpu["usable"], key != "drm_render_minor", "{key} {value}: {answer:#}");
        assert_eq!(gpu["gfx"], Value::Null, "{key} {value}");
        assert_eq!(gpu["uuid"], "GPU-5ca1ab1e00000001", "{key} {value}");
    }
}

#[test]
fn an_empty_folder_is_a_machine_that_shows_no_pci_device() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_rocworker"));
    let answer = support::detect::detect_beneath(program, folder.path());
    assert_fields(&answer, &json!({"schema_version": 1, "gpus": [], "kfd": null}));
    assert!(answer["problems"][0].as_str().unwrap().contains("/sys/bus/pci/devices"), "{answer:#}");
}
