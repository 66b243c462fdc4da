//! The wrapper in front of real runc: what a container really sees and can open.

use std::path::Path;
use support::real;

use crate::machine::{CONCOURSE, Like, Machine, Program, RENDER, SHOW};

const NEEDS: &[&str] = &["runc", "unshare", "nsenter", "busybox"];

fn show<'a>(env: &'a [&'a str]) -> Like<'a> {
    Like { args: SHOW, env, ..Like::default() }
}

/// The output of `SHOW` when the nodes of these GPUs, and no others, exist and can be opened.
fn opens(gpus: &[u32]) -> String {
    if gpus.is_empty() {
        return "no dri\n".to_owned();
    }
    let cards = gpus.iter().map(|gpu| format!("/dev/dri/card{} opens\n", gpu + 1));
    let renders = gpus.iter().map(|gpu| format!("/dev/dri/renderD{} opens\n", gpu + 128));
    std::iter::once("/dev/kfd opens\n".to_owned()).chain(cards).chain(renders).collect()
}

fn config_of(bundle: &Path) -> String {
    std::fs::read_to_string(bundle.join("config.json")).unwrap()
}

#[test]
fn real_a_container_sees_the_nodes_of_its_request_and_no_others() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    for (n, (default, env, gpus)) in [
        ("none", &[][..], &[][..]),
        ("none", &["AMD_VISIBLE_DEVICES=0"], &[0]),
        ("none", &["AMD_VISIBLE_DEVICES=1-2"], &[1, 2]),
        ("none", &["AMD_VISIBLE_DEVICES=all"], &[0, 1, 2]),
        ("none", &["AMD_VISIBLE_DEVICES=0000:64:00.0"], &[0]),
        ("none", &["AMD_VISIBLE_DEVICES=renderD130"], &[2]),
        ("none", &["AMD_GPU_COUNT=1"], &[0]),
        (
            "none",
            &["AMD_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=none", "DOCKER_RESOURCE_NVIDIA_GPU=1"],
            &[0],
        ),
        ("all", &[], &[0, 1, 2]),
        ("all", &["AMD_VISIBLE_DEVICES=none"], &[]),
        ("all", &["AMD_GPU_COUNT=0"], &[]),
        ("all", &["BUILD_TEAM_NAME=main", "BUILD_ID=7"], &[]),
    ]
    .into_iter()
    .enumerate()
    {
        machine.policy("all", default);
        let bundle = machine.bundle(&format!("b{n}"), show(env));
        let id = format!("c{n}");
        let output = machine.wrapper(&["run", "--bundle", bundle.to_str().unwrap(), &id]);
        assert!(output.status.success() && output.stderr.is_empty(), "{env:?}: {output:?}");
        assert_eq!(output.stdout, opens(gpus), "run, {default}, {env:?}");
        let output = machine.create_and_start(Program::Wrapper, &bundle, &id);
        assert_eq!(output.stdout, opens(gpus), "create and start, {default}, {env:?}: {output:?}");
        assert_eq!(machine.record(&id).is_some(), !gpus.is_empty(), "{env:?}");
        let output = machine.wrapper(&["delete", "--force", &id]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(machine.record(&id), None, "{env:?}");
    }
}

#[test]
fn real_a_task_in_concourses_user_namespace_opens_a_node_of_group_render() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let like = Like { args: SHOW, mapping: CONCOURSE, ..Like::default() };
    let bundle = machine.bundle("concourse", like);

    let output = machine.create_and_start(Program::Wrapper, &bundle, "task");
    assert_eq!(output.stdout, opens(&[0, 1, 2]), "{output:?}");
    machine.wrapper(&["delete", "--force", "task"]);

    // Without the group the nodes are there, and the mode of the host's nodes keeps them shut.
    let mut config: serde_json::Value = serde_json::from_str(&config_of(&bundle)).unwrap();
    let gids = config["process"]["user"].as_object_mut().unwrap().remove("additionalGids").unwrap();
    assert_eq!(gids, serde_json::json!([RENDER]));
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let output = machine.create_and_start(Program::Runc, &bundle, "task");
    assert_eq!(output.stdout, opens(&[0, 1, 2]).replace("opens", "refuses"), "{output:?}");
    machine.runc(&["delete", "--force", "task"]);
}

#[test]
fn real_exec_with_a_process_file_has_what_create_gave() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let like = Like { args: &["sleep", "1000"], mapping: CONCOURSE, ..Like::default() };
    let bundle = machine.bundle("concourse", like);
    machine.start_sleeping(Program::Wrapper, &bundle, "task");
    let process = serde_json::json!({
        "user": {"uid": 0, "gid": 0}, "args": SHOW, "env": ["PATH=/bin"], "cwd": "/",
        "capabilities": {}, "noNewPrivileges": true,
    });
    let file = machine.path("process");
    let write = || std::fs::write(&file, process.to_string()).unwrap();
    let path = file.to_str().unwrap();

    write();
    let output = machine.runc(&["exec", "--process", path, "task"]);
    assert_eq!(output.stdout, opens(&[0, 1, 2]).replace("opens", "refuses"), "plain runc: {output:?}");
    for arguments in [["exec", "--process", path, "task"], ["exec", "-p", path, "task"]] {
        write();
        let output = machine.wrapper(&arguments);
        assert_eq!(output.stdout, opens(&[0, 1, 2]), "{arguments:?}: {output:?}");
        let once = std::fs::read(&file).unwrap();
        machine.wrapper(&arguments);
        assert_eq!(std::fs::read(&file).unwrap(), once, "a second pass changes nothing");
    }
    // Without a process file runc takes groups from the bundle.
    let mut plain = vec!["exec", "task"];
    plain.extend(SHOW);
    assert_eq!(machine.wrapper(&plain).stdout, opens(&[0, 1, 2]));

    write();
    std::fs::hard_link(&file, machine.path("planted")).unwrap();
    let output = machine.wrapper(&["exec", "--process", path, "task"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains("has another hard link"), "{output:?}");
    assert_eq!(std::fs::read(&file).unwrap(), process.to_string().as_bytes());
    let output = machine.wrapper(&["delete", "--force", "task"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn real_an_argument_named_create_is_none() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let bundle = machine.bundle("b", Like { args: &["sleep", "1000"], ..Like::default() });
    machine.start_sleeping(Program::Wrapper, &bundle, "c1");
    let before = config_of(&bundle);
    let output = machine.wrapper(&["exec", "c1", "mkdir", "create", "run", "--bundle"]);
    // busybox refuses `--bundle`; what matters is that it is mkdir that was run, and nothing edited.
    assert!(output.stderr.contains("mkdir"), "{output:?}");
    let output = machine.wrapper(&["exec", "c1", "mkdir", "create", "x"]);
    assert!(output.status.success(), "{output:?}");
    assert!(bundle.join("rootfs/create").is_dir() && bundle.join("rootfs/x").is_dir());
    assert_eq!(config_of(&bundle), before);
    machine.wrapper(&["delete", "--force", "c1"]);
}

#[test]
fn real_a_group_that_the_container_does_not_map_fails_a_request_and_not_the_default() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let mapping: &[(u32, u32, u32)] = &[(0, 65534, 1), (1, 1, 900)];
    let asking = Like { args: SHOW, env: &["AMD_VISIBLE_DEVICES=0"], mapping };
    let bundle = machine.bundle("asking", asking);
    let before = config_of(&bundle);
    let output = machine.create_and_start(Program::Wrapper, &bundle, "asking");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stderr.starts_with("runc-amd-wrapper: ") && output.stderr.contains("group 992"),
        "{output:?}"
    );
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert_eq!(config_of(&bundle), before);

    let bundle = machine.bundle("silent", Like { env: &[], ..asking });
    let before = config_of(&bundle);
    let output = machine.create_and_start(Program::Wrapper, &bundle, "silent");
    assert_eq!(output.stdout, opens(&[]), "{output:?}");
    assert!(output.stderr.contains("level=warning") && output.stderr.contains("group 992"), "{output:?}");
    assert_eq!(config_of(&bundle), before);
    machine.wrapper(&["delete", "--force", "silent"]);
}

#[test]
fn real_a_refusal_stands_on_stderr_and_in_runcs_log_in_its_format() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    let bundle = machine.bundle("b", show(&["AMD_VISIBLE_DEVICES=../.."]));
    let bundle = bundle.to_str().unwrap();
    let log = machine.path("log");
    let path = log.to_str().unwrap();

    let output =
        machine.wrapper(&["--log", path, "--log-format", "json", "create", "--bundle", bundle, "c1"]);
    assert_eq!((output.status.code(), output.stdout.as_str()), (Some(1), ""));
    let sentence = output.stderr.trim_end().to_owned();
    assert!(sentence.starts_with("runc-amd-wrapper: ") && sentence.contains("../.."), "{sentence}");
    let text = std::fs::read_to_string(&log).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!((&line["level"], &line["msg"]), (&"error".into(), &sentence.as_str().into()));

    std::fs::remove_file(&log).unwrap();
    let output = machine.wrapper(&[&format!("-log={path}"), "create", "c1", "--bundle", bundle]);
    assert_eq!(output.status.code(), Some(1));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        text.starts_with("time=\"20") && text.contains(" level=error msg=\"runc-amd-wrapper: "),
        "{text}"
    );
    assert!(text.contains("../.."), "{text}");
}

#[test]
fn real_without_a_policy_of_roots_it_is_plain_runc() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    let bundle = machine.bundle("b", show(&["AMD_VISIBLE_DEVICES=all"]));
    let before = config_of(&bundle);
    let mut warnings = Vec::new();
    for state in ["absent", "another user's", "writable by others", "empty object"] {
        let policy = machine.path("etc/rocworker/wrapper.json");
        if state != "absent" {
            machine.policy("all", "all");
        }
        match state {
            "another user's" => std::os::unix::fs::chown(&policy, Some(1234), None).unwrap(),
            "writable by others" => {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
                std::fs::set_permissions(&policy, mode).unwrap();
            }
            "empty object" => std::fs::write(&policy, "{}").unwrap(),
            _ => {}
        }
        let output = machine.wrapper(&["run", "--bundle", bundle.to_str().unwrap(), "c1"]);
        assert_eq!(
            (output.status.code(), output.stdout.as_str()),
            (Some(0), opens(&[]).as_str()),
            "{state}: {output:?}"
        );
        assert_eq!(config_of(&bundle), before, "{state}");
        warnings.push(output.stderr.lines().filter(|line| line.contains("level=warning")).count());
        let _ = std::fs::remove_file(&policy);
    }
    assert_eq!(warnings, [0, 1, 1, 0]);
    assert!(!machine.path("run/rocworker").exists());
    let (ours, runcs) = (machine.wrapper(&["--version"]), machine.runc(&["--version"]));
    assert_eq!(ours.stdout, runcs.stdout);
}

#[test]
fn real_a_second_create_adds_nothing_to_the_bundle_of_the_first() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    let bundle = machine.bundle("b", show(&["AMD_GPU_COUNT=2"]));
    let original = config_of(&bundle);
    machine.create_and_start(Program::Wrapper, &bundle, "c1");
    let once = config_of(&bundle);
    assert_ne!(once, original);
    // The container has ended and not been deleted: runc refuses, and the bundle stays.
    let output = machine.create_and_start(Program::Wrapper, &bundle, "c1");
    assert!(!output.status.success());
    assert_eq!(config_of(&bundle), once);
    machine.wrapper(&["delete", "--force", "c1"]);
    let output = machine.create_and_start(Program::Wrapper, &bundle, "c1");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(config_of(&bundle), once);
    let mode = std::os::unix::fs::MetadataExt::mode(&bundle.join("config.json").metadata().unwrap()) & 0o777;
    assert_eq!(mode, 0o644);
    let names: Vec<_> = std::fs::read_dir(&bundle).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside config.json and rootfs: {names:?}");
    machine.wrapper(&["delete", "--force", "c1"]);
}

#[test]
fn real_a_count_takes_the_gpus_that_the_fewest_living_containers_have() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    let sleeping = Like { args: &["sleep", "1000"], env: &["AMD_GPU_COUNT=1"], ..Like::default() };
    let mut given = Vec::new();
    for n in 0..3 {
        let bundle = machine.bundle(&format!("b{n}"), sleeping);
        machine.start_sleeping(Program::Wrapper, &bundle, &format!("c{n}"));
        given.push(machine.record(&format!("c{n}")).unwrap()["gpus"][0]["index"].clone());
    }
    given.sort_by_key(|index| index.as_u64());
    assert_eq!(given, [0, 1, 2]);
    // The GPU of the killed container is free again, though the wrapper had no call for it.
    let freed = machine.record("c1").unwrap()["gpus"][0]["index"].clone();
    machine.runc(&["delete", "--force", "c1"]);
    let bundle = machine.bundle("b3", sleeping);
    machine.start_sleeping(Program::Wrapper, &bundle, "c3");
    assert_eq!(machine.record("c3").unwrap()["gpus"][0]["index"], freed);
    assert_eq!(machine.record("c1"), None);
    for id in ["c0", "c2", "c3"] {
        machine.wrapper(&["delete", "--force", id]);
    }
}
