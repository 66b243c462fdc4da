//! What the wrapper writes into a bundle, from real device nodes, and what it says where it cannot.

use std::os::unix::fs::symlink;

use serde_json::json;
use support::real;

use crate::stage::{Outcome, Stage, config, policy, policy_of_schema_1, renders};

const ASKING: &[&str] = &["AMD_VISIBLE_DEVICES=0"];

#[test]
fn real_a_request_counts_however_its_letters_are_written() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    for (from, to) in [
        ("\"AMD_VISIBLE_DEVICES=0\"", r#""\u0041MD_VISIBLE_DEVICES=0""#),
        ("\"AMD_VISIBLE_DEVICES=0\"", r#""AMD\u005fVISIBLE_DEVICE\u0053=\u0030""#),
        ("\"process\"", r#""proces\u0073""#),
        ("\"env\"", r#""\u0065nv""#),
        ("\"env\"", "\"ENV\""),
        ("\"linux\"", r#""\u006cinux""#),
    ] {
        let text = config(ASKING);
        assert!(text.contains(from));
        let outcome = stage.create(text.replacen(from, to, 1));
        assert!(outcome.runs() && outcome.log.is_empty(), "{to}: {outcome:?}");
        let edited = String::from_utf8(stage.config()).unwrap();
        assert!(edited.contains("/dev/dri/renderD128") && edited.contains(to), "{to}: {edited}");
        std::fs::remove_file(stage.record_path("c1")).unwrap();
    }
}

#[test]
fn real_all_that_is_not_edited_stays_byte_for_byte() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    let odd = "{ \"x\\u0079\" : 1.000e+02 ,\n\t\"linux\":{ \"netDevices\" :{\"eth0\":{ }}, \"memoryPolicy\":null},\
               \"process\": {\"env\":[\"AMD_VISIBLE_DEVICES=0\"] , \"new\":18446744073709551617 } }\n";
    let outcome = stage.create(odd);
    assert!(outcome.runs(), "{outcome:?}");
    let edited = String::from_utf8(stage.config()).unwrap();
    assert_eq!(renders(edited.as_bytes()), ["renderD128"]);
    for part in
        ["{ \"x\\u0079\" : 1.000e+02 ,\n\t", "\"netDevices\" :{\"eth0\":{ }}", "\"new\":18446744073709551617"]
    {
        assert!(edited.contains(part), "{part} in {edited}");
    }
}

#[test]
fn real_a_path_that_is_another_device_already_is_refused_by_name() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    let with = |major: u32, minor: u32| {
        let device = format!(
            r#""linux":{{"devices":[{{"path":"/dev/dri/../dri/renderD128","type":"c","major":{major},"minor":{minor}}}],"#
        );
        config(ASKING).replacen("\"linux\":{", &device, 1)
    };
    let outcome = stage.create(with(226, 7));
    let reported = outcome.messages("error").concat();
    assert!(!outcome.runs() && reported.contains("renderD128") && reported.contains("226:7"), "{outcome:?}");
    let outcome = stage.create(with(1, 5));
    assert!(outcome.runs(), "{outcome:?}");
    assert_eq!(renders(&stage.config()), ["renderD128"], "the same device is kept, not doubled");
}

/// Render nodes stay when a card is divided otherwise: only its mode says that they are other partitions now.
#[test]
fn real_a_gpu_of_a_card_in_another_mode_is_never_given() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let modes = [
        (Some("CPX\n"), None),
        (Some("SPX\n"), Some("its card is in SPX, and the policy was written for CPX")),
        (None, Some("its card's mode is not known")),
    ];
    for (mode, problem) in modes {
        let stage = Stage::with_nodes();
        let mut policy = policy("all", "all");
        policy["gpus"][0]["compute"] = json!("CPX");
        stage.write("wrapper.json", policy.to_string());
        let folder = stage.path("sys/bus/pci/devices/0000:64:00.0");
        std::fs::create_dir_all(&folder).unwrap();
        if let Some(mode) = mode {
            std::fs::write(folder.join("current_compute_partition"), mode).unwrap();
        }
        let asking = stage.create(config(ASKING));
        match problem {
            None => assert!(asking.runs(), "{asking:?}"),
            Some(problem) => {
                assert!(failed_with(&asking, problem), "{mode:?}: {asking:?}");
                // The default gives the other card's GPU.
                let default = stage.create(config(&[]));
                assert!(
                    default.runs() && renders(&stage.config()) == ["renderD129"],
                    "{mode:?}: {default:?}"
                );
            }
        }
    }
}

fn failed_with(outcome: &Outcome, part: &str) -> bool {
    let reported = outcome.messages("error");
    !outcome.runs() && reported.len() == 1 && reported[0].contains(part)
}

#[test]
fn real_a_node_that_is_not_the_gpu_it_should_be_is_never_given() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    type Make = fn(&Stage, &std::path::Path);
    let states: [(&str, Make, &str); 6] = [
        ("gone", |_, node| std::fs::remove_file(node).unwrap(), "cannot be examined"),
        (
            "a plain file",
            |_, node| {
                std::fs::remove_file(node).unwrap();
                std::fs::write(node, "").unwrap();
            },
            "no character device",
        ),
        (
            "a link to a node",
            |_, node| {
                std::fs::remove_file(node).unwrap();
                std::os::unix::fs::symlink("/dev/zero", node).unwrap();
            },
            "no character device",
        ),
        ("0:0", |stage, _| stage.make_node("dri/renderD128", 0, 0), "0:0"),
        ("another card's", |stage, _| stage.make_node("dri/renderD128", 1, 7), "0000:65:00.0"),
        ("no GPU's", |stage, _| stage.make_node("dri/renderD128", 1, 8), "1:8"),
    ];
    for (kind, make, part) in states {
        let stage = Stage::with_nodes();
        make(&stage, &stage.path("dev/dri/renderD128"));
        stage.policy("all", "all");
        let asking = stage.create(config(ASKING));
        assert!(failed_with(&asking, part) && failed_with(&asking, "renderD128"), "{kind}: {asking:?}");
        assert!(stage.config() == config(ASKING).as_bytes() && stage.record("c1").is_none(), "{kind}");
        // The default leaves the one out, says so, and gives the other.
        let default = stage.create(config(&[]));
        assert!(default.runs(), "{kind}: {default:?}");
        let warnings = default.messages("warning");
        assert!(warnings.len() == 1 && warnings[0].contains("renderD128"), "{kind}: {warnings:?}");
        assert_eq!(renders(&stage.config()), ["renderD129"], "{kind}");
    }
}

#[test]
fn real_without_kfd_no_gpu_is_given() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    stage.policy("all", "all");
    std::fs::remove_file(stage.path("dev/kfd")).unwrap();
    let asking = stage.create(config(ASKING));
    assert!(failed_with(&asking, "/dev/kfd"), "{asking:?}");
    let default = stage.create(config(&[]));
    assert!(default.runs() && default.messages("warning")[0].contains("/dev/kfd"), "{default:?}");
    assert_eq!(stage.config(), config(&[]).as_bytes());
}

/// Only pods whose RuntimeClass names the wrapper come to it.
#[test]
fn real_a_pod_gets_what_it_asks_for_where_the_policy_says_so_and_nothing_unasked() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    let pod = |env: &[&str]| {
        let annotations = r#"{"annotations":{"io.kubernetes.cri.container-type":"container"},"#;
        config(env).replacen('{', annotations, 1)
    };
    for (pods, refused) in [
        (None, Some("or set wrapper.pods")),
        (Some("deny"), Some("or set wrapper.pods")),
        (Some("count"), Some("only a number in AMD_GPU_COUNT")),
        (Some("named"), None),
    ] {
        let mut policy = policy("deny", "all");
        if let Some(pods) = pods {
            policy["pods"] = pods.into();
        }
        stage.write("wrapper.json", policy.to_string());
        let outcome = stage.create(pod(ASKING));
        if let Some(part) = refused {
            assert!(failed_with(&outcome, part), "{pods:?}: {outcome:?}");
            assert_eq!(stage.config(), pod(ASKING).as_bytes(), "{pods:?}");
        } else {
            assert!(outcome.runs() && outcome.log.is_empty(), "{pods:?}: {outcome:?}");
            assert_eq!(renders(&stage.config()), ["renderD128"]);
        }
        // The pod's pause container, for one, asks for nothing.
        let silent = stage.create(pod(&[]));
        assert!(silent.runs() && silent.log.is_empty(), "{pods:?}: {silent:?}");
        assert_eq!(stage.config(), pod(&[]).as_bytes(), "{pods:?}");
        assert!(failed_with(&stage.create(config(ASKING)), "requests: deny"), "{pods:?}");
    }
}

#[test]
fn real_a_count_prefers_what_the_fewest_have_and_gives_a_second_try_the_same() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    stage.policy("count", "none");
    stage.write_record("other", 0, &[], true);
    stage.write_record("gone", 1, &[], false);
    stage.bundle(config(&["AMD_GPU_COUNT=1"]));
    assert!(stage.create_as_it_is("c1").runs());
    assert_eq!(renders(&stage.config()), ["renderD129"]);
    assert!(stage.record("gone").is_none() && stage.record("other").is_some());
    let once = stage.config();

    // runc failed, its process is gone, and the other GPU has come free meanwhile.
    stage.write_record("c1", 1, &[992], false);
    std::fs::remove_file(stage.record_path("other")).unwrap();
    stage.write_record("third", 1, &[], true);
    assert!(stage.create_as_it_is("c1").runs());
    assert_eq!(stage.config(), once, "not a second GPU besides the first");
    assert_eq!(stage.record("c1").unwrap()["gpus"][0]["index"], 1);
}

#[test]
fn real_what_is_given_is_what_the_node_and_the_policy_say() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    let mut of_the_machine = policy_of_schema_1("all", "none");
    of_the_machine["gpus"] = json!(null);
    for (number, minor) in [(0, 0), (1, 128), (2, 129)] {
        let node = stage.path(&format!("sys/class/kfd/kfd/topology/nodes/{number}"));
        std::fs::create_dir_all(&node).unwrap();
        std::fs::write(node.join("properties"), format!("drm_render_minor {minor}\n")).unwrap();
    }
    for policy in [policy("all", "none"), policy_of_schema_1("all", "none"), of_the_machine.clone()] {
        stage.write("wrapper.json", policy.to_string());
        let driver = stage.path("sys/devices/pci0000:00/0000:64:00.0/driver");
        let drive = |name: &str| {
            std::fs::remove_file(&driver).unwrap();
            symlink(format!("../../../bus/pci/drivers/{name}"), &driver).unwrap();
        };
        drive("nvidia");
        let foreign = stage.create(config(ASKING));
        let why = match policy == of_the_machine {
            true => "the policy has no GPU \"0\"",
            false => "is driven by nvidia, not by amdgpu",
        };
        assert!(failed_with(&foreign, why), "{foreign:?}");
        drive("amdgpu");
        let outcome = stage.create(config(ASKING));
        assert!(outcome.runs() && outcome.log.is_empty(), "{outcome:?}");
        let given: serde_json::Value = serde_json::from_slice(&stage.config()).unwrap();
        let device = |path: &str, minor: u32| {
            serde_json::json!({"path": path, "type": "c", "major": 1, "minor": minor,
                               "fileMode": 0o660, "uid": 0, "gid": 992})
        };
        let rule = |minor: u32| serde_json::json!({"allow": true, "type": "c", "major": 1, "minor": minor, "access": "rw"});
        let mut devices = given["linux"]["devices"].as_array().unwrap().clone();
        devices.sort_by_key(|device| device["minor"].as_u64());
        assert_eq!(devices, [device("/dev/kfd", 3), device("/dev/dri/renderD128", 5)]);
        let rules = given["linux"]["resources"]["devices"].as_array().unwrap();
        assert_eq!(rules[0]["allow"], false, "the deny-all stays first");
        assert!(rules.len() == 3 && rules.contains(&rule(3)) && rules.contains(&rule(5)), "{rules:?}");
        assert_eq!(given["process"]["user"]["additionalGids"], serde_json::json!([992]));
        let record = stage.record("c1").unwrap();
        assert_eq!(
            (&record["gids"], &record["creator"]["pid"]),
            (&serde_json::json!([992]), &std::process::id().into())
        );
        std::fs::remove_file(stage.record_path("c1")).unwrap();
    }
}

/// LXD passes card nodes in as root:root 0660, and Concourse's containers map no group 0.
#[test]
fn real_a_card_node_that_the_container_cannot_open_costs_no_gpu_and_a_render_node_does() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let in_a_user_namespace = |env: &[&str]| {
        let mut config: serde_json::Value = serde_json::from_str(&config(env)).unwrap();
        let mapping = serde_json::json!([{"containerID": 0, "hostID": 65534, "size": 1}, {"containerID": 1, "hostID": 1, "size": 65533}]);
        config["linux"]["uidMappings"] = mapping.clone();
        config["linux"]["gidMappings"] = mapping;
        config["linux"]["namespaces"] = serde_json::json!([{"type": "user"}]);
        config.to_string()
    };
    let mut with_card = policy("all", "none");
    with_card["gpus"][0]["nodes"] = json!([{"path": "/dev/dri/card1"}, {"path": "/dev/dri/renderD128"}]);
    for (of_group_root, is_given) in [("dri/card1", true), ("dri/renderD128", false)] {
        let stage = Stage::with_nodes();
        stage.write("wrapper.json", with_card.to_string());
        stage.make_node("dri/card1", 1, 9);
        let device = "../../devices/pci0000:00/0000:64:00.0/drm/card1";
        std::os::unix::fs::symlink(device, stage.path("sys/dev/char/1:9")).unwrap();
        std::os::unix::fs::chown(stage.path("dev").join(of_group_root), None, Some(0)).unwrap();
        let outcome = stage.create(in_a_user_namespace(ASKING));
        if is_given {
            assert!(
                outcome.runs() && outcome.messages("warning")[0].contains("/dev/dri/card1"),
                "{outcome:?}"
            );
            assert_eq!(renders(&stage.config()), ["renderD128"]);
        } else {
            let says = |part| failed_with(&outcome, part);
            assert!(says("/dev/dri/renderD128") && says("gidMappings"), "{outcome:?}");
        }
    }
}

#[test]
fn real_a_gpu_never_brings_the_render_node_of_another_that_may_be_kept_from_the_container() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let with_nodes = |gpu: usize, paths: &[&str]| {
        let mut policy = policy("all", "none");
        policy["gpus"][gpu]["nodes"] = paths.iter().map(|path| json!({"path": path})).collect();
        policy
    };
    // The node of the second GPU under a name of its own, and in a place where a card node should be.
    for (policy, same_card, reported) in [
        (
            with_nodes(0, &["/dev/dri/renderD140"]),
            true,
            "is renderD129 to the kernel, which is not the GPU's own",
        ),
        (
            with_nodes(0, &["/dev/dri/renderD140"]),
            false,
            "belongs to the card 0000:65:00.0, not to the card 0000:64",
        ),
        (with_nodes(0, &["/dev/dri/card1", "/dev/dri/renderD128"]), true, "is renderD129 to the kernel"),
        (with_nodes(0, &["/dev/dri/renderD129", "/dev/dri/renderD128"]), true, "needs one render node"),
    ] {
        let stage = Stage::with_nodes();
        stage.make_node("dri/renderD140", 1, 7);
        stage.make_node("dri/card1", 1, 7);
        if same_card {
            let number = stage.path("sys/dev/char/1:7");
            std::fs::remove_file(&number).unwrap();
            symlink("../../devices/pci0000:00/0000:64:00.0/drm/renderD129", number).unwrap();
        }
        stage.write("wrapper.json", policy.to_string());
        let outcome = stage.create(config(ASKING));
        assert!(failed_with(&outcome, reported), "{policy}: {outcome:?}");
        assert_eq!(stage.config(), config(ASKING).as_bytes(), "{policy}");
    }
    // `/dev/kfd` brings no GPU either.
    let stage = Stage::with_nodes();
    let mut policy = policy("all", "none");
    policy["kfd"] = json!({"path": "/dev/dri/renderD129"});
    stage.write("wrapper.json", policy.to_string());
    let outcome = stage.create(config(ASKING));
    assert!(failed_with(&outcome, "/dev/dri/renderD129 is renderD129 to the kernel"), "{outcome:?}");
}
