//! `detect` on the shapes that machines come in. All machines here are synthetic; the two sorts of
//! card are a Radeon PRO W7900 (0x7448, gfx1100) and an MI300X (0x74a1, gfx942).

use std::path::Path;

use layout::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use serde_json::{Value, json};
use support::detect::{assert_fields, reason};

fn detect_with(machine: &Machine, nodes: Nodes) -> Value {
    support::detect::detect_with(Path::new(env!("CARGO_BIN_EXE_rocworker")), machine, nodes)
}

fn detect(machine: &Machine) -> Value {
    detect_with(machine, Nodes::Recorded)
}

fn gpus(answer: &Value) -> &[Value] {
    answer["gpus"].as_array().unwrap()
}

/// One field of each GPU, in the order of the list.
fn each<'a>(answer: &'a Value, field: &str) -> Vec<&'a Value> {
    gpus(answer).iter().map(|gpu| &gpu[field]).collect()
}

fn problem(gpu: &Value) -> &str {
    gpu["problems"][0].as_str().unwrap_or_else(|| panic!("no problem in {gpu:#}"))
}

fn w7900(address: &str, card: u32, render: u32) -> Gpu {
    Gpu::amd(address, 0x7448).card(card).render(render)
}

fn w7900_node(address: &str, render: u32) -> KfdNode {
    KfdNode::gpu(7000 + render, 0x7448, 110_000).at(address).render(render)
}

fn instinct_node(address: &str, partition: u8, render: u32) -> KfdNode {
    KfdNode::gpu(9000 + render, 0x74a1, 90_402).at(address).partition(partition).render(render)
}

fn machine() -> Machine {
    Machine::new().module(Module::new("amdgpu"))
}

fn kfd() -> Kfd {
    Kfd::new(511).node(KfdNode::cpu(16))
}

fn one_card() -> Machine {
    machine().gpu(w7900("0000:03:00.0", 0, 128)).kfd(kfd().node(w7900_node("0000:03:00.0", 128)))
}

#[test]
fn eight_whole_cards_are_eight_gpus_with_render_minors_as_they_are_and_a_bmc_is_only_listed() {
    let answer = detect(&Machine::instinct(8, 1));
    assert_eq!(gpus(&answer).len(), 9);
    for (card, gpu) in gpus(&answer).iter().take(8).enumerate() {
        assert_fields(
            gpu,
            &json!({
                "index": card,
                "pci": format!("0000:{:02x}:00.0", 0x05 + 0x10 * card),
                "render": format!("/dev/dri/renderD{}", 128 + 16 * card),
                "card": format!("/dev/dri/card{}", card + 1),
                "name": "AMD Instinct MI300X OAM",
                "kfd_node": card + 2,
                "numa_node": 0,
                "vram_bytes": 206_158_430_208_u64,
                "uuid": format!("GPU-5ca1ab1e{:08x}", 0x0001_0000 + card),
                "partition": {"compute": "SPX", "memory": "NPS1", "id": 0},
                "usable": true,
            }),
        );
    }
    assert_fields(
        &gpus(&answer)[8],
        &json!({"index": null, "vendor": "other", "device_id": "2000", "usable": false}),
    );
}

#[test]
fn eight_cards_in_cpx_are_sixty_four_gpus_that_share_memory_and_own_no_uuid() {
    let answer = detect(&Machine::instinct(8, 8));
    let amd: Vec<_> = gpus(&answer).iter().filter(|gpu| gpu["vendor"] == "amd").collect();
    assert_eq!(amd.len(), 64);
    for (index, gpu) in amd.into_iter().enumerate() {
        let (card, part) = (index / 8, index % 8);
        assert_fields(
            gpu,
            &json!({
                "index": index,
                "pci": format!("0000:{:02x}:00.0", 0x05 + 0x10 * card),
                "render": format!("/dev/dri/renderD{}", 128 + 16 * card + part),
                "card": format!("/dev/dri/card{}", index + 1),
                "vram_bytes": 25_769_803_776_u64, // 192 GiB / 8
                "uuid": null,
                "partition": {"compute": "CPX", "memory": "NPS1", "id": part},
                "usable": true,
            }),
        );
    }
}

#[test]
fn the_demo_machine_has_nine_usable_gpus_in_two_cards_and_an_nvidia_card_beside_them() {
    let answer = detect(&Machine::demo());
    let indexes: Vec<Value> = (0..9).map(Value::from).chain([Value::Null]).collect();
    assert_eq!(each(&answer, "index"), indexes.iter().collect::<Vec<_>>());
    assert_fields(
        &gpus(&answer)[0],
        &json!({"gfx": "gfx1100", "partition": null, "uuid": "GPU-5ca1ab1e00000001"}),
    );
    assert_fields(
        &gpus(&answer)[8],
        &json!({"gfx": "gfx942", "pci": "0000:c1:00.0", "vram_bytes": 25_769_803_776_u64}),
    );
    assert_fields(&gpus(&answer)[9], &json!({"vendor": "nvidia", "usable": false}));
    assert!(gpus(&answer).iter().take(9).all(|gpu| gpu["usable"] == true), "{answer:#}");
}

#[test]
fn the_order_is_kfds_and_neither_the_buses_nor_the_render_minors() {
    let answer = detect(
        &machine()
            .gpu(w7900("0000:03:00.0", 0, 144))
            .gpu(w7900("0000:83:00.0", 1, 128))
            .kfd(kfd().node(w7900_node("0000:83:00.0", 128)).node(w7900_node("0000:03:00.0", 144))),
    );
    assert_eq!(each(&answer, "pci"), ["0000:83:00.0", "0000:03:00.0"]);
    assert_eq!(each(&answer, "render"), ["/dev/dri/renderD128", "/dev/dri/renderD144"]);
    assert_eq!(each(&answer, "index"), [0, 1]);
}

#[test]
fn an_unusable_gpu_has_the_index_after_those_that_kfd_knows() {
    let answer = detect(
        &machine()
            .gpu(Gpu::amd("0000:0a:00.0", 0x164e).card(2).render(130))
            .gpu(w7900("0000:03:00.0", 0, 128).unbound())
            .gpu(w7900("0000:83:00.0", 1, 129))
            .gpu(Gpu::nvidia("0000:01:00.0", 0x2704).card(3).render(131))
            .kfd(kfd().node(w7900_node("0000:83:00.0", 129))),
    );
    assert_eq!(each(&answer, "pci"), ["0000:83:00.0", "0000:03:00.0", "0000:0a:00.0", "0000:01:00.0"]);
    assert_eq!(each(&answer, "index"), [&json!(0), &json!(1), &json!(2), &Value::Null]);
    assert_eq!(each(&answer, "usable"), [true, false, false, false]);
    assert!(problem(&gpus(&answer)[2]).contains("KFD does not know render minor 130"), "{answer:#}");
}

/// An MI300A host repeats a location_id in each PCI domain.
#[test]
fn cards_at_one_place_in_several_pci_domains_keep_their_own_partitions() {
    for (domain_known, ids) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut machine = machine();
        let mut kfd = kfd();
        for card in 0..3_u32 {
            let address = format!("{card:04x}:01:00.0");
            let render = 128 + 8 * card;
            let gpu = Gpu::amd(&address, 0x74a0).class(0x12_0000).card(2 * card).render(render);
            machine = machine.gpu(gpu.partition(2 * card + 1, render + 1));
            for part in 0..2 {
                let node = instinct_node(&address, part, render + u32::from(part));
                let node = if domain_known { node } else { node.without("domain") };
                kfd = kfd.node(if ids { node.property("unique_id", 0x100 + u64::from(card)) } else { node });
            }
        }
        let answer = detect(&machine.kfd(kfd));
        let pci =
            ["0000:01:00.0", "0000:01:00.0", "0001:01:00.0", "0001:01:00.0", "0002:01:00.0", "0002:01:00.0"];
        assert_eq!(each(&answer, "pci"), pci, "domain known: {domain_known}, unique ids: {ids}");
        let parts: Vec<_> = gpus(&answer).iter().map(|gpu| &gpu["partition"]["id"]).collect();
        assert_eq!(parts, [0, 1, 0, 1, 0, 1], "domain known: {domain_known}, unique ids: {ids}");
        assert_eq!(each(&answer, "usable"), [true; 6]);
    }
}

#[test]
fn a_kfd_tree_without_domain_costs_no_gpu() {
    let node = w7900_node("0000:03:00.0", 128).without("domain").without("unique_id");
    let answer = detect(&machine().gpu(w7900("0000:03:00.0", 0, 128)).kfd(kfd().node(node)));
    assert_eq!(each(&answer, "usable"), [true]);
    assert_eq!(each(&answer, "pci"), ["0000:03:00.0"]);
}

#[test]
fn partitions_with_unique_ids_of_their_own_have_uuids_of_their_own_and_one_card() {
    let gpu = Gpu::amd("0000:05:00.0", 0x74a1).class(0x12_0000).card(0).render(128).partition(1, 129);
    let node =
        |part: u8, id| instinct_node("0000:05:00.0", part, 128 + u32::from(part)).property("unique_id", id);
    let answer = detect(&machine().gpu(gpu).kfd(kfd().node(node(0, 0xa)).node(node(1, 0xb))));
    assert_eq!(each(&answer, "uuid"), ["GPU-000000000000000a", "GPU-000000000000000b"]);
    assert_eq!(each(&answer, "pci"), ["0000:05:00.0", "0000:05:00.0"]);
}

/// The virtual functions 05:00.1 and .2 have the location_ids that the second and third partition of 05:00.0
/// have: 0x501 and 0x502. The first of them is cut in two as well, which leaves its location_id at 0x501.
#[test]
fn virtual_functions_are_not_taken_for_partitions_nor_partitions_for_virtual_functions() {
    let physical = "0000:05:00.0";
    let function = |address: &str| Gpu::amd(address, 0x74b5).class(0x12_0000).virtual_function_of(physical);
    let pf = Gpu::amd(physical, 0x74a1).class(0x12_0000).card(0).render(128);
    let pf = pf.partition(1, 129).partition(2, 130).virtual_functions(8, &["0000:05:00.1", "0000:05:00.2"]);
    let machine = machine()
        .gpu(pf)
        .gpu(function("0000:05:00.1").card(3).render(136).partition(4, 137))
        .gpu(function("0000:05:00.2").driver("vfio-pci"));
    for ids in [true, false] {
        let own = |node: KfdNode, id| if ids { node.property("unique_id", id) } else { node };
        let kfd = (0..3).fold(kfd(), |kfd, part| {
            kfd.node(own(instinct_node(physical, part, 128 + u32::from(part)), 0xa))
        });
        let kfd = kfd
            .node(own(instinct_node("0000:05:00.1", 0, 136), 0xb))
            .node(own(instinct_node("0000:05:00.1", 1, 137), 0xb));
        let answer = detect(&machine.clone().kfd(kfd));
        let pf = json!({"role": "pf", "vfs": 2});
        let vf = json!({"role": "vf", "of": physical});
        let expected = [
            (physical, "/dev/dri/renderD128", &pf, 0),
            (physical, "/dev/dri/renderD129", &pf, 1),
            (physical, "/dev/dri/renderD130", &pf, 2),
            ("0000:05:00.1", "/dev/dri/renderD136", &vf, 0),
            ("0000:05:00.1", "/dev/dri/renderD137", &vf, 1),
        ];
        assert_eq!(gpus(&answer).len(), 6, "unique ids: {ids}: {answer:#}");
        for (gpu, (pci, render, sriov, part)) in gpus(&answer).iter().zip(expected) {
            assert_fields(
                gpu,
                &json!({
                    "pci": pci, "render": render, "sriov": sriov, "usable": true,
                    "partition": {"compute": null, "memory": null, "id": part},
                }),
            );
        }
        assert_fields(
            &gpus(&answer)[5],
            &json!({"pci": "0000:05:00.2", "sriov": vf, "driver": "vfio-pci", "usable": false, "render": null}),
        );
        assert!(problem(&gpus(&answer)[5]).contains("vfio-pci"), "{answer:#}");
    }
}

#[test]
fn a_card_that_could_have_virtual_functions_and_has_none_is_a_plain_card() {
    let gpu = w7900("0000:03:00.0", 0, 128).virtual_functions(16, &[]);
    let answer = detect(&machine().gpu(gpu).kfd(kfd().node(w7900_node("0000:03:00.0", 128))));
    assert_eq!(each(&answer, "sriov"), [&Value::Null]);
}

/// amdgpu makes the platform devices of all partitions at once; in SPX they stand there without a use.
#[test]
fn render_nodes_of_partitions_that_kfd_does_not_name_are_no_gpus() {
    let gpu = Gpu::amd("0000:05:00.0", 0x74a1)
        .class(0x12_0000)
        .card(0)
        .render(128)
        .attribute("current_compute_partition", "SPX")
        .attribute("current_memory_partition", "NPS1");
    let gpu = (1..8).fold(gpu, |gpu, nth| gpu.partition(nth, 128 + nth));
    let answer = detect(&machine().gpu(gpu).kfd(kfd().node(instinct_node("0000:05:00.0", 0, 128))));
    assert_eq!(each(&answer, "render"), ["/dev/dri/renderD128"]);
    assert_eq!(each(&answer, "partition"), [&json!({"compute": "SPX", "memory": "NPS1", "id": 0})]);
    assert_eq!(answer["problems"], json!([]));
}

#[test]
fn without_kfd_a_card_is_listed_and_the_reason_is_kfd() {
    let answer = detect(&machine().gpu(w7900("0000:03:00.0", 0, 128)));
    let [gpu] = gpus(&answer) else { panic!("{answer:#}") };
    assert_fields(gpu, &json!({"index": 0, "gfx": null, "kfd_node": null, "usable": false}));
    assert!(problem(gpu).contains("no KFD"), "{gpu:#}");
    assert!(reason(gpu, "gfx").contains("KFD"), "{gpu:#}");
    assert_eq!(answer["kfd"], Value::Null);
}

#[test]
fn a_card_without_amdgpu_is_listed_with_what_is_bound_instead() {
    let card = || w7900("0000:03:00.0", 0, 128);
    for (gpu, driver, words) in [
        (card().unbound(), Value::Null, "no driver is bound"),
        (card().unbound().driver("vfio-pci"), json!("vfio-pci"), "vfio-pci is bound"),
        (card().driver("radeon"), json!("radeon"), "radeon is bound"),
    ] {
        let answer = detect(&Machine::new().gpu(gpu));
        let [gpu] = gpus(&answer) else { panic!("{answer:#}") };
        assert_fields(gpu, &json!({"index": 0, "driver": driver, "usable": false}));
        assert!(problem(gpu).contains(words), "{gpu:#}");
        assert_eq!(answer["amdgpu"]["loaded"], false);
    }
}

#[test]
fn a_driver_that_did_not_finish_leaves_a_card_without_render_node() {
    let answer = detect(&machine().gpu(Gpu::amd("0000:03:00.0", 0x7448)).kfd(kfd()));
    let [gpu] = gpus(&answer) else { panic!("{answer:#}") };
    assert_fields(gpu, &json!({"card": null, "render": null, "driver": "amdgpu", "usable": false}));
    assert!(problem(gpu).contains("no render node"), "{gpu:#}");
}

#[test]
fn without_nodes_in_dev_every_gpu_names_the_one_that_it_misses() {
    let answer = detect_with(&Machine::instinct(2, 2), Nodes::None);
    let amd: Vec<_> = gpus(&answer).iter().filter(|gpu| gpu["vendor"] == "amd").collect();
    assert_eq!(amd.len(), 4);
    for (gpu, render) in amd.into_iter().zip([128, 129, 144, 145]) {
        assert_eq!(gpu["usable"], false);
        let node = format!("/dev/dri/renderD{render} is not there");
        assert!(problem(gpu).contains(&node), "{node}: {gpu:#}");
        assert!(gpu["problems"].to_string().contains("/dev/kfd"), "{gpu:#}");
    }
    assert_eq!(answer["kfd"], Value::Null);
}

/// sysfs is the host's; /dev has what was passed in.
#[test]
fn inside_lxd_only_the_gpus_whose_nodes_were_passed_in_are_usable() {
    let answer = detect(
        &Machine::instinct(3, 1)
            .put("/dev/lxd/sock", "")
            .remove("/dev/dri")
            .put("/dev/dri/card2", Device::new(226, 2, 44))
            .put("/dev/dri/renderD144", Device::new(226, 144, 992)),
    );
    assert_eq!(answer["virtualization"], "lxd");
    assert_eq!(each(&answer, "usable"), [false, true, false, false]);
    assert_eq!(each(&answer, "index"), [&json!(0), &json!(1), &json!(2), &Value::Null]);
    for (place, render) in [(0, 128), (2, 160)] {
        assert!(problem(&gpus(&answer)[place]).contains(&format!("/dev/dri/renderD{render}")), "{answer:#}");
    }
}

#[test]
fn a_container_that_names_itself_is_believed() {
    for (path, text, expected) in [
        ("/run/systemd/container", "lxc\n", "lxc"),
        ("/run/systemd/container", "docker", "docker"),
        ("/proc/1/environ", "PATH=/bin\0container=podman\0TERM=linux\0", "podman"),
    ] {
        assert_eq!(detect(&one_card().put(path, text))["virtualization"], expected, "{path}");
    }
}

#[test]
fn functions_that_are_no_gpus_are_not_listed() {
    let answer = detect(
        &one_card()
            .gpu(Gpu::amd("0000:03:00.1", 0xab30).class(0x04_0300).driver("snd_hda_intel"))
            .gpu(Gpu::new("0000:00:14.0", 0x8086, 0x7ae0).class(0x0c_0330).driver("xhci_hcd"))
            // An NPU: signal processing, class 1180.
            .gpu(Gpu::amd("0000:65:00.1", 0x1502).class(0x11_8000).driver("amdxdna")),
    );
    assert_eq!(each(&answer, "pci"), ["0000:03:00.0"]);
}

#[test]
fn a_machine_with_nothing_has_nothing_to_say() {
    let answer = detect(&Machine::new());
    assert_fields(
        &answer,
        &json!({
            "schema_version": 1, "gpus": [], "kfd": null, "virtualization": null, "problems": [],
            "amdgpu": {"loaded": false, "version": null, "srcversion": null},
        }),
    );
}

#[test]
fn the_modules_version_is_told_where_it_has_one() {
    for (module, version) in [
        (Module::new("amdgpu").srcversion("ABCDEF"), Value::Null),
        (Module::new("amdgpu").srcversion("ABCDEF").version("6.12.12"), json!("6.12.12")),
    ] {
        let answer = detect(&Machine::new().module(module));
        assert_eq!(answer["amdgpu"], json!({"loaded": true, "version": version, "srcversion": "ABCDEF"}));
    }
    let going = Machine::new().module(Module::new("amdgpu")).put("/sys/module/amdgpu/initstate", "going\n");
    assert_eq!(detect(&going)["amdgpu"]["loaded"], false);
    let built_in = Machine::new().put("/sys/module/amdgpu/parameters", Entry::Directory);
    assert_eq!(detect(&built_in)["amdgpu"]["loaded"], true);
}

#[test]
fn kfds_number_comes_from_sysfs_or_proc_and_a_capture_without_either_is_still_usable() {
    const DEV: &str = "/sys/class/kfd/kfd/dev";
    let kfd_is = |machine: &Machine| {
        let answer = detect(machine);
        (answer["gpus"][0]["usable"].clone(), answer["kfd"]["major"].clone())
    };
    let good = support::captures::phoenix; // kfd/dev: 237:0
    assert_eq!(kfd_is(&good()), (true.into(), 237.into()));
    assert_eq!(kfd_is(&good().remove(DEV)), (true.into(), 237.into()));
    assert_eq!(kfd_is(&good().remove(DEV).remove("/proc/devices")), (true.into(), 237.into()));
    let stale =
        good().remove(DEV).put("/proc/devices", "Character devices:\n  1 mem\n511 kfd\n\nBlock devices:\n");
    assert_eq!(kfd_is(&stale), (false.into(), Value::Null));
    let nothing = good().remove(DEV).remove("/proc/devices").put("/dev/kfd", Device::new(0, 0, 0));
    assert_eq!(kfd_is(&nothing), (false.into(), Value::Null));
}

#[test]
fn a_drm_entry_without_its_device_link_is_still_known_by_where_it_leads() {
    let mut machine = support::captures::phoenix();
    for entry in ["card1", "renderD128"] {
        machine = machine.remove(&format!("/sys/class/drm/{entry}/device"));
    }
    let answer = detect(&machine);
    assert_fields(
        &answer["gpus"][0],
        &json!({"usable": true, "pci": "0000:64:00.0", "card": "/dev/dri/card1", "render": "/dev/dri/renderD128"}),
    );
}

#[test]
fn the_one_visible_partition_of_a_card_does_not_take_the_cards_id_for_its_own() {
    // What a container sees that was given one partition of eight: KFD hides the others.
    let gpu = |unique_id: &str| {
        Gpu::amd("0000:05:00.0", 0x74a1)
            .class(0x12_0000)
            .card(1)
            .render(136)
            .attribute("unique_id", unique_id)
            .attribute("current_compute_partition", "CPX")
    };
    let node = KfdNode::gpu(2, 0x74a1, 90_402).at("0000:05:00.0").render(136);
    let uuid = |card: &str, partition: u64| {
        let kfd = Kfd::new(511).node(KfdNode::cpu(1)).node(node.clone().property("unique_id", partition));
        detect(&Machine::new().gpu(gpu(card)).kfd(kfd))["gpus"][0]["uuid"].clone()
    };
    assert_eq!(uuid("5ca1ab1e00010000", 0x5ca1_ab1e_0001_0000), Value::Null);
    // From ROCm 7.0.1 a partition may have an id of its own.
    assert_eq!(uuid("5ca1ab1e00010000", 0x5ca1_ab1e_0001_0007), "GPU-5ca1ab1e00010007");
}

#[test]
fn a_card_that_is_bound_proves_that_the_driver_is_loaded_and_an_unreadable_state_is_not_known() {
    const STATE: &str = "/sys/module/amdgpu/initstate";
    let bound = support::captures::phoenix;
    let loaded = |machine: &Machine| detect(machine)["amdgpu"]["loaded"].clone();
    assert_eq!(loaded(&bound().remove("/sys/module/amdgpu")), true);
    let alone = || Machine::new().module(Module::new("amdgpu"));
    assert_eq!(loaded(&alone()), true);
    assert_eq!(loaded(&alone().put(STATE, "going\n")), false);
    assert_eq!(loaded(&alone().put(STATE, Entry::Directory)), Value::Null);
    assert_eq!(loaded(&Machine::new()), false);
}
