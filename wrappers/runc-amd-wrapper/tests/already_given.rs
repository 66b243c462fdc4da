//! A container keeps what its engine or an earlier policy gave it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test lays out files")]

mod stage;

use serde_json::{Value, json};
use stage::{Stage, config};

/// A bundle's config with these devices, as a scheduler or a CDI name brings them.
fn with_devices(env: &[&str], kubernetes: bool, paths: &[&str]) -> String {
    let mut config: Value = serde_json::from_str(&config(env)).unwrap();
    let device = |path: &&str| json!({"path": path, "type": "c", "major": 1, "minor": 3});
    config["linux"]["devices"] = paths.iter().map(device).collect();
    if kubernetes {
        config["annotations"] = json!({"io.kubernetes.cri.container-type": "container"});
    }
    config.to_string()
}

#[test]
fn a_request_that_is_not_honoured_stops_no_container_that_has_a_gpu_already() {
    let gpu: &[&str] = &["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128"];
    let all: &[&str] = &["AMD_VISIBLE_DEVICES=all"];
    let count: &[&str] = &["AMD_GPU_COUNT=1"];
    for (requests, kubernetes, env, paths, starts) in [
        ("deny", false, all, gpu, true),
        ("deny", false, count, gpu, true),
        ("deny", true, all, gpu, true),
        ("all", true, count, gpu, true),
        ("named", false, all, gpu, true),
        ("deny", false, all, &[][..], false),
        ("all", true, all, &[], false),
        // Another vendor's card, or one that nothing computes on.
        ("all", true, all, &["/dev/dri/renderD128"], false),
        ("all", true, all, &["/dev/kfd"], false),
        // What is no request at all.
        ("deny", false, &["AMD_VISIBLE_DEVICES=../.."], gpu, false),
    ] {
        let stage = Stage::new();
        stage.policy(requests, "none");
        let config = with_devices(env, kubernetes, paths);
        let outcome = stage.create(&config);
        let what = format!("{requests} {kubernetes} {env:?} {paths:?}: {outcome:?}");
        assert_eq!(outcome.runs(), starts, "{what}");
        assert_eq!(what.contains("it starts with the GPUs that its bundle has"), starts, "{what}");
        assert!(stage.config() == config.as_bytes() && stage.record("c1").is_none(), "{what}");
    }
}

#[test]
fn a_container_keeps_its_groups_when_the_policy_is_gone_and_its_record_goes_with_it() {
    let stage = Stage::new();
    stage.write_record("c1", 0, &[992], true);
    let process = json!({"args": ["x"], "cwd": "/", "user": {"uid": 1000, "gid": 1000}}).to_string();
    let path = stage.path("process");
    for policy in ["absent", "others may write it"] {
        stage.write("process", &process);
        if policy != "absent" {
            stage.policy("all", "none");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            std::fs::set_permissions(stage.path("wrapper.json"), mode).unwrap();
        }
        let exec = |id| stage.call(&["exec", "--process", path.to_str().unwrap(), id]);
        assert!(exec("c2").runs() && std::fs::read_to_string(&path).unwrap() == process, "{policy}");
        let outcome = exec("c1");
        assert!(outcome.runs() && outcome.log.is_empty(), "{policy}: {outcome:?}");
        let edited: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(edited["user"]["additionalGids"], json!([992]), "{policy}");
    }
    std::fs::remove_file(stage.path("wrapper.json")).unwrap();
    assert!(stage.call(&["delete", "--force", "c1"]).runs() && stage.record("c1").is_none());
}

#[test]
fn a_bundle_that_cannot_be_edited_ends_the_record_of_an_earlier_container_with_its_id() {
    let stage = Stage::new();
    stage.policy("all", "all");
    stage.write_record("c1", 0, &[992], false);
    let twice = config(&[]).replacen('{', r#"{"process":{},"#, 1);
    let outcome = stage.create(&twice);
    assert!(outcome.runs() && stage.record("c1").is_none(), "{outcome:?}");
}
