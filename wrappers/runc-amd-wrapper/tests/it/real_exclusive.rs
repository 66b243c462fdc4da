//! Exclusive sharing: who gets which GPU, who is refused and why, and what a kill leaves.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{real, rootfs};

use crate::machine::creates::{holder, init_in, signal, sleeper, spawn, wait_for};
use crate::machine::{Like, Machine, Program};
use crate::stage::{self, Outcome, Stage, config, policy, renders};

fn exclusive(stage: &Stage, keys: &Value) {
    let mut policy = policy("all", "none");
    policy["sharing"] = json!("exclusive");
    policy.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    stage.write("wrapper.json", policy.to_string());
}

fn create(stage: &Stage, id: &str, env: &[&str]) -> Outcome {
    stage.bundle(config(env));
    stage.create_as_it_is(id)
}

/// Makes the container of a lease one that is long gone: a later process has its creator's number.
fn end(stage: &Stage, render: &str) {
    let age = |path: &Path| {
        let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        value["creator"]["start_time"] = json!(1);
        std::fs::write(path, value.to_string()).unwrap();
        value["id"].as_str().unwrap().to_owned()
    };
    let id = age(&stage.path("run/leases").join(render));
    age(&stage.record_path(&id));
}

fn reported(outcome: &Outcome) -> String {
    assert!(!outcome.runs(), "{outcome:?}");
    let errors = outcome.messages("error");
    assert_eq!(errors.len(), 1, "{outcome:?}");
    errors[0].to_owned()
}

#[test]
fn real_a_gpu_has_one_holder_until_that_is_dead() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    exclusive(&stage, &json!({}));
    for (id, render) in [("c1", "renderD128"), ("c2", "renderD129")] {
        let outcome = create(&stage, id, &["AMD_GPU_COUNT=1"]);
        assert!(outcome.runs() && renders(&stage.config()) == [render], "{id}: {outcome:?}");
    }
    let sentence = reported(&create(&stage, "c3", &["AMD_GPU_COUNT=1"]));
    for part in [
        "asks for 1 GPU by count, and 0 of 2 are free",
        "by the container c1 of",
        "container c2 of runc root /nowhere/runc since 2",
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
    let sentence = reported(&create(&stage, "c3", &["AMD_VISIBLE_DEVICES=1"]));
    assert!(
        sentence
            .contains("which is not free: the GPU 1 (0000:65:00.0, renderD129) is held by the container c2")
    );
    for (limit, expected) in [
        (
            0,
            "; AMD_GPU_WAIT=5 has no effect while wrapper.wait-limit-s is 0: set it in rocworker's configuration, to 60 at most",
        ),
        (1, "; it has waited for 1 s, and wrapper.wait-limit-s ends AMD_GPU_WAIT=5 there"),
    ] {
        exclusive(&stage, &json!({ "wait_limit_s": limit }));
        let sentence = reported(&create(&stage, "c3", &["AMD_GPU_COUNT=1", "AMD_GPU_WAIT=5"]));
        assert!(sentence.ends_with(expected), "{sentence}");
    }
    exclusive(&stage, &json!({}));
    // A second create with this id changes nothing.
    assert!(create(&stage, "c1", &["AMD_GPU_COUNT=1"]).runs());
    assert_eq!(renders(&stage.config()), Vec::<String>::new());

    end(&stage, "renderD128");
    let sentence = reported(&create(&stage, "c3", &["AMD_VISIBLE_DEVICES=all"]));
    assert!(sentence.contains("of which 1 of 2 are free"), "{sentence}");
    assert!(stage.record("c1").is_none(), "the dead leave nothing");
    assert!(!stage.path("run/leases/renderD128").exists());
    assert!(create(&stage, "c3", &["AMD_VISIBLE_DEVICES=renderD128"]).runs());
    let lease: Value =
        serde_json::from_slice(&std::fs::read(stage.path("run/leases/renderD128")).unwrap()).unwrap();
    assert_eq!((&lease["id"], &lease["kind"]), (&json!("c3"), &json!("named")));
}

#[test]
fn real_a_bundle_of_an_earlier_try_never_brings_a_gpu_that_is_anothers() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    exclusive(&stage, &json!({}));
    assert!(create(&stage, "c1", &["AMD_GPU_COUNT=1"]).runs());
    let first_try = stage.config();
    end(&stage, "renderD128");
    // The bundle gets its first GPU again while that is free, though another one comes first now.
    assert!(stage.create(first_try.clone()).runs());
    assert_eq!(renders(&stage.config()), ["renderD128"]);
    end(&stage, "renderD128");
    assert!(create(&stage, "c2", &["AMD_VISIBLE_DEVICES=0"]).runs());
    assert!(reported(&stage.create(first_try)).contains("held by the container c2"));
    let mut foreign: Value = serde_json::from_str(&config(&["AMD_VISIBLE_DEVICES=1"])).unwrap();
    foreign["linux"]["devices"] =
        json!([{"path": "/dev/dri/renderD128", "type": "c", "major": 1, "minor": 5}]);
    assert!(reported(&stage.create(foreign.to_string())).contains("make the bundle anew"));
}

#[test]
fn real_a_gpu_that_a_stranger_computes_on_is_not_given() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    exclusive(&stage, &json!({}));
    let own = std::process::id();
    for (file, text) in [
        ("topology/nodes/1/gpu_id".to_owned(), "4711\n"),
        ("topology/nodes/1/properties".to_owned(), "drm_render_minor 128\n"),
        (format!("proc/{own}/vram_4711"), "65536\n"),
    ] {
        let path = stage.path("sys/class/kfd/kfd").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let sentence = reported(&create(&stage, "c1", &["AMD_VISIBLE_DEVICES=0"]));
    assert!(sentence.contains(&format!("is in use by the process {own} ")), "{sentence}");
    assert!(create(&stage, "c1", &["AMD_GPU_COUNT=1"]).runs());
    assert_eq!(renders(&stage.config()), ["renderD129"]);
}

#[test]
fn real_what_was_given_while_gpus_were_shared_is_not_free() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    exclusive(&stage, &json!({}));
    stage.write_record("old", 0, &[], true);
    stage.write_record("gone", 1, &[], false);
    let sentence = reported(&create(&stage, "c1", &["AMD_VISIBLE_DEVICES=all"]));
    assert!(
        sentence.contains("container old of runc root /nowhere/runc while GPUs were shared"),
        "{sentence}"
    );
    assert!(create(&stage, "c1", &["AMD_GPU_COUNT=1"]).runs());
    assert_eq!(renders(&stage.config()), ["renderD129"]);
}

#[test]
fn real_what_was_leased_is_cleared_away_while_gpus_are_shared_once_its_container_is_dead() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let stage = Stage::with_nodes();
    exclusive(&stage, &json!({}));
    for (id, env) in [("lives", "AMD_VISIBLE_DEVICES=0"), ("dies", "AMD_VISIBLE_DEVICES=1")] {
        assert!(create(&stage, id, &[env]).runs());
    }
    end(&stage, "renderD129");
    stage.policy("all", "none");
    for env in ["AMD_VISIBLE_DEVICES=all", "AMD_GPU_COUNT=1"] {
        assert!(create(&stage, "shares", &[env]).runs(), "{env}");
        let leases = stage::names(&stage.path("run/leases"));
        assert_eq!(leases, ["renderD128"], "{env}");
        assert!(stage.record("lives").is_some() && stage.record("dies").is_none(), "{env}");
    }
}

#[test]
fn real_leases_that_cannot_be_believed_stop_what_asks_and_nothing_else() {
    type Make = fn(&Path);
    if !real::require_root(&["mknod"]) {
        return;
    }
    let cases: [(&str, Make, &str); 4] = [
        (
            "a link",
            |leases| {
                std::fs::create_dir(leases.with_file_name("else")).unwrap();
                symlink("else", leases).unwrap();
            },
            "/leases",
        ),
        (
            "anybody's",
            |leases| {
                std::fs::create_dir(leases).unwrap();
                std::fs::set_permissions(leases, std::fs::Permissions::from_mode(0o777)).unwrap();
            },
            "lets others write",
        ),
        ("a file", |leases| std::fs::write(leases, "").unwrap(), "/leases"),
        (
            "half a lease",
            |leases| {
                std::fs::create_dir(leases).unwrap();
                std::fs::set_permissions(leases, std::fs::Permissions::from_mode(0o700)).unwrap();
                std::fs::write(leases.join("renderD128"), "{\"schema_ver").unwrap();
            },
            "the holder of the GPU 0 (0000:64:00.0, renderD128) is unknown",
        ),
    ];
    for (what, make, part) in cases {
        let stage = Stage::with_nodes();
        exclusive(&stage, &json!({}));
        std::fs::create_dir(stage.path("run")).unwrap();
        std::fs::set_permissions(stage.path("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
        make(&stage.path("run/leases"));
        let sentence = reported(&create(&stage, "c1", &["AMD_VISIBLE_DEVICES=0"]));
        assert!(sentence.contains(part), "{what}: {sentence}");
        assert!(
            create(&stage, "c1", &[]).runs() && create(&stage, "c2", &["AMD_GPU_COUNT=0"]).runs(),
            "{what}"
        );
    }
}

fn tickets(machine: &Machine) -> usize {
    std::fs::read_dir(machine.path("run/rocworker/waiting")).map_or(0, |entries| entries.flatten().count())
}

#[test]
fn real_who_waits_gets_it_in_the_order_of_arrival_and_the_dead_wait_for_nothing() {
    if !real::require_root(&["runc", "unshare", "nsenter", "busybox"]) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({"wait_limit_s": 30}));
    let env: &[&str] = &["AMD_VISIBLE_DEVICES=2", "AMD_GPU_WAIT=30"];
    machine.start_sleeping(Program::Wrapper, &machine.bundle("first", sleeper(env)), "first");
    let mut waiting = Vec::new();
    for (n, id) in ["killed", "second", "third"].into_iter().enumerate() {
        let child = spawn(&machine, &machine.bundle(id, sleeper(env)), id);
        wait_for("its ticket", || tickets(&machine) == n + 1);
        waiting.push(child);
    }
    // A count is not held up by those who wait for another GPU, and what cannot wait says who does.
    machine.start_sleeping(
        Program::Wrapper,
        &machine.bundle("other", sleeper(&["AMD_GPU_COUNT=7"])),
        "other",
    );
    let bundle = machine.bundle("hasty", sleeper(&["AMD_VISIBLE_DEVICES=2"]));
    assert!(!spawn(&machine, &bundle, "hasty").wait().unwrap().success());
    let reported = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(reported.contains("the container second waits for renderD130 since"), "{reported}");

    waiting[0].kill().unwrap();
    waiting[0].wait().unwrap();
    machine.wrapper(&["delete", "--force", "first"]);
    assert!(waiting[1].wait().unwrap().success());
    assert_eq!(holder(&machine, 130).as_deref(), Some("second"));
    assert_eq!(tickets(&machine), 1);
    machine.wrapper(&["delete", "--force", "second"]);
    assert!(waiting[2].wait().unwrap().success());
    assert_eq!((holder(&machine, 130).as_deref(), tickets(&machine)), (Some("third"), 0));
}

#[test]
fn real_a_create_that_waits_ends_with_its_ticket_and_with_its_caller() {
    if !real::require_root(&["runc", "unshare", "nsenter", "busybox"]) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({"wait_limit_s": 60}));
    let env: &[&str] = &["AMD_VISIBLE_DEVICES=2", "AMD_GPU_WAIT=60"];
    machine.start_sleeping(Program::Wrapper, &machine.bundle("first", sleeper(env)), "first");
    let started = Instant::now();

    let bundle = machine.bundle("cancelled", sleeper(env));
    let mut cancelled = spawn(&machine, &bundle, "cancelled");
    let waiting = machine.path("run/rocworker/waiting");
    // Not the temporary file that becomes the ticket.
    let is_ticket = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    wait_for("its ticket", || tickets(&machine) == 1 && stage::names(&waiting).iter().all(is_ticket));
    let ticket = waiting.join(stage::names(&waiting).pop().unwrap());
    std::fs::remove_file(&ticket).unwrap();
    // The next one gets its number.
    let mut other = spawn(&machine, &machine.bundle("other", sleeper(env)), "other");
    assert!(!cancelled.wait().unwrap().success());
    let reported = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(
        reported.contains("the create of the container cancelled was cancelled while it waited"),
        "{reported}"
    );
    let waits = |id: &str| std::fs::read_to_string(&ticket).is_ok_and(|text| text.contains(id));
    wait_for("the other's ticket", || waits("other"));
    other.kill().unwrap();
    other.wait().unwrap();

    let bundle = machine.bundle("orphan", sleeper(env));
    let wrapper = Program::Wrapper.path();
    // A second command keeps the shell from becoming the wrapper.
    let line = format!("{wrapper} --root R create --bundle {} orphan 2>{0}/stderr; exit 7", bundle.display());
    let mut caller = machine.inside(&["sh", "-c", &line]).spawn().unwrap();
    wait_for("its ticket", || waits("orphan"));
    caller.kill().unwrap();
    caller.wait().unwrap();
    wait_for("its end", || tickets(&machine) == 0);
    let reported = || std::fs::read_to_string(bundle.join("stderr")).unwrap();
    wait_for("its sentence", || {
        reported().contains(&format!("the process {}, for which it waited", caller.id()))
    });
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(holder(&machine, 130).as_deref(), Some("first"));
}

#[test]
fn real_an_engines_idle_holder_makes_way_after_the_grace_and_one_that_may_work_never() {
    if !real::require_root(&["runc", "unshare", "nsenter", "busybox", "cc"]) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    let start = |id: &str, args: &[&str], env: &[&str]| {
        let bundle = machine.bundle(id, Like { args, env, ..Like::default() });
        rootfs::put_waiting(&bundle.join("rootfs"));
        machine.start_sleeping(Program::Wrapper, &bundle, id);
    };
    let refused = |grace: &Value, id: &str, env: &[&str]| {
        machine.policy_of_eight(grace);
        let bundle = machine.bundle(id, sleeper(env));
        let succeeded = spawn(&machine, &bundle, id).wait().unwrap().success();
        (!succeeded).then(|| std::fs::read_to_string(bundle.join("stderr")).unwrap())
    };
    let one: &[&str] = &["AMD_VISIBLE_DEVICES=5"];
    machine.policy_of_eight(&json!({}));
    start("idle", &[rootfs::WAITING], one);
    start("busy", &[rootfs::WAITING], &["AMD_VISIBLE_DEVICES=6"]);
    let mut exec = machine.command(&Program::Wrapper.path(), &["exec", "busy", "sleep", "1000"]);
    let mut work = exec.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // docker and podman start a container so: the first process is the work.
    start("works", &["sleep", "1000"], &["AMD_VISIBLE_DEVICES=7"]);
    let cgroup = |id: &str| {
        let state = std::fs::read(machine.path(&format!("R/{id}/state.json"))).unwrap();
        let state: Value = serde_json::from_slice(&state).unwrap();
        state["cgroup_paths"].as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned()
    };
    let processes = std::path::PathBuf::from(cgroup("busy")).join("cgroup.procs");
    wait_for("the work", || std::fs::read_to_string(&processes).unwrap().lines().count() == 2);

    for grace in [json!({}), json!({"idle_grace_s": 600})] {
        assert!(
            refused(&grace, "next", one)
                .is_some_and(|reported| reported.contains("held by the container idle"))
        );
    }
    let now = json!({"idle_grace_s": 0});
    for (gpu, id) in [(6, "busy"), (7, "works")] {
        let reported = refused(&now, "next", &[&format!("AMD_VISIBLE_DEVICES={gpu}")]);
        assert!(reported.is_some_and(|reported| reported.contains(&format!("container {id}"))), "{id}");
    }
    // All or nothing: what is idle is not killed for a request that the busy one fails anyhow.
    assert!(refused(&now, "next", &["AMD_VISIBLE_DEVICES=5,6"]).is_some());
    assert_eq!(holder(&machine, 133).as_deref(), Some("idle"));
    assert_eq!(refused(&now, "next", one), None);
    assert_eq!(holder(&machine, 133).as_deref(), Some("next"));
    assert_eq!(holder(&machine, 134).as_deref(), Some("busy"));
    assert_eq!(holder(&machine, 135).as_deref(), Some("works"));
    // Once its work has ended, an engine's container is idle.
    machine.wrapper(&["exec", "busy", "busybox", "killall", "sleep"]);
    work.wait().unwrap();
    assert_eq!(refused(&now, "after", &["AMD_VISIBLE_DEVICES=6"]), None);
    assert_eq!(holder(&machine, 134).as_deref(), Some("after"));
}

#[test]
fn real_the_process_that_a_killed_create_left_keeps_the_gpu_until_it_ends() {
    if !real::require_root(&["runc", "unshare", "nsenter", "busybox"]) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({}));
    let env: &[&str] = &["AMD_VISIBLE_DEVICES=4"];
    let bundle = machine.bundle("killed", sleeper(env));
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    // While this hook runs, the first process is there and runc has not written its state yet.
    config["hooks"] = json!({"createRuntime": [{"path": "/bin/sleep", "args": ["sleep", "2"]}]});
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let cgroup = config["linux"]["cgroupsPath"].as_str().unwrap().to_owned();
    let mut create = spawn(&machine, &bundle, "killed");
    wait_for("init", || init_in(&cgroup).is_some());
    let init = init_in(&cgroup).unwrap();
    signal("-STOP", init);
    create.kill().unwrap();
    create.wait().unwrap();
    assert!(!machine.path("R/killed/state.json").exists());

    let second = machine.bundle("second", sleeper(env));
    assert!(!spawn(&machine, &second, "second").wait().unwrap().success());
    let reported = std::fs::read_to_string(second.join("stderr")).unwrap();
    assert!(reported.contains("held by the container killed"), "{reported}");
    // Neither does its own id get another one.
    assert!(!spawn(&machine, &bundle, "killed").wait().unwrap().success());
    let reported = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(
        reported.contains("processes of an earlier container killed are left in its cgroup"),
        "{reported}"
    );
    signal("-KILL", init);
    wait_for("its end", || init_in(&cgroup).is_none());
    assert!(spawn(&machine, &second, "second").wait().unwrap().success());
    for folder in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        // runc does not know of it any more.
        let _ = std::fs::remove_dir(folder.path().join(cgroup.trim_start_matches('/')));
    }
    let _ = std::fs::remove_dir(Path::new("/sys/fs/cgroup").join(cgroup.trim_start_matches('/')));
}
