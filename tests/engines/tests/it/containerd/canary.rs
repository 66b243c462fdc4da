//! `doctor --canary` through real containerd: 1.6, 1.7 and 2.1, the wrapper in front of their runc, and without it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use real_engines::containerd::Containerd;
use real_engines::engine::{CONTAINERD_2_1, Engine, Unpacked, older, releases};
use real_engines::machine::{self, ASKED};
use serde_json::Value;
use support::real;

/// Where the package puts it (crates/engines/src/program.rs).
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";
const PATH: &str = "/usr/sbin:/usr/bin";
/// A policy under which no container may ask, and none gets anything by default.
const DENIED: &str = r#"{"schema_version":1,"requests":"deny","default":"none","sharing":"shared"}"#;

/// A policy under which each GPU has one holder.
const EXCLUSIVE: &str = r#"{"schema_version":1,"requests":"all","default":"none","sharing":"exclusive"}"#;

/// The engines with what is needed of this repository, and rocworker itself; none where the calling test is
/// to be skipped.
#[track_caller]
fn every(engines: &[Engine]) -> Vec<(Engine, Unpacked, std::path::PathBuf)> {
    let found = engines.iter().map(|engine| {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"])?;
        Some((*engine, engine.unpacked()?, program))
    });
    found.collect::<Option<_>>().unwrap_or_default()
}

/// containerd on the demo machine, with rocworker in it, and this as the wrapper's program.
fn with_rocworker(
    engine: &Engine,
    unpacked: &Unpacked,
    program: &Path,
    policy: &str,
    wrapper: &str,
) -> Containerd {
    let containerd = Containerd::without_wrapper(engine, unpacked, policy);
    fs::copy(program, containerd.outside("/stage/rocworker")).unwrap();
    let host = containerd.host();
    host.busybox(&["mkdir", "-p", "/usr/lib/rocworker"]).well();
    host.busybox(&["cp", wrapper, WRAPPER]).well();
    containerd
}

/// Status, evidence and remedy of an engine's checks, and the exit code.
#[track_caller]
fn canary(containerd: &Containerd, engine: &str) -> (i32, Vec<[String; 3]>) {
    let said = containerd.host().call(PATH, &["/stage/rocworker", "--output", "json", "doctor", "--canary"]);
    let answer: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = answer["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == "canary" && check["subject"] == engine);
    let checks = checks.map(|check| ["status", "evidence", "remedy"].map(|key| text(&check[key])));
    (said.status.code().unwrap(), checks.collect())
}

/// Holds what is left of a canary against what was there before it.
#[track_caller]
fn assert_nothing_is_left(containerd: &Containerd) {
    assert_eq!(containerd.host().records(), [""; 0], "{}", containerd.name());
    assert_only_the_wrappers_own_is_left(containerd);
}

/// Checks as [`assert_nothing_is_left`] does; the wrapper's record of a leased container goes with its next
/// decision.
#[track_caller]
fn assert_only_the_wrappers_own_is_left(containerd: &Containerd) {
    let host = containerd.host();
    let namespaced = |arguments: &[&str]| {
        host.call(PATH, &[&["/usr/bin/ctr", "--namespace", "rocworker"], arguments].concat()).well()
    };
    assert_eq!(namespaced(&["containers", "list", "--quiet"]), "", "{}", containerd.name());
    let namespaces = namespaced(&["namespaces", "list", "--quiet"]);
    assert!(!namespaces.contains("rocworker"), "{}: {namespaces}", containerd.name());
    let names = host.names_in("/run/rocworker");
    assert!(!names.iter().any(|name| name.contains("canary")), "{}: {names:?}", containerd.name());
    let find = ["find", "/run/containerd", "/stage/containerd", "-path", "*/rocworker*"];
    assert_eq!(host.busybox(&find).well(), "", "{}", containerd.name());
    for mount in host.busybox(&["cat", "/proc/mounts"]).well().lines() {
        assert!(!mount.contains("rocworker-canary"), "{}: {mount}", containerd.name());
    }
}

/// What a container of the demo machine sees that was given GPU 0 (see doctor/real_canary.rs of rocworker's tests).
fn in_order(way: &str) -> Vec<[String; 2]> {
    let none = "no driver answers inside (ENXIO, No such device or address)";
    vec![
        ["warning".to_owned(), format!("/dev/kfd is let through, and {none}, {way}")],
        ["warning".to_owned(), format!("/dev/dri/renderD129 of GPU 0 is let through, and {none}")],
        ["ok".to_owned(), "the device 226:130, GPU 1's, was not given, and is refused inside".to_owned()],
    ]
}

fn without_remedies(checks: &[[String; 3]]) -> Vec<[String; 2]> {
    checks.iter().map(|[status, evidence, _]| [status.clone(), evidence.clone()]).collect()
}

#[test]
fn real_a_canary_through_containerd_and_the_wrapper_gets_the_gpu_that_it_asks_for_and_no_other() {
    for (engine, unpacked, program) in every(&releases()) {
        let containerd = with_rocworker(&engine, &unpacked, &program, ASKED, "/opt/rocworker/shim/runc");
        let (_, checks) = canary(&containerd, "containerd");
        let expected = in_order("asked for by AMD_VISIBLE_DEVICES=0");
        assert_eq!(without_remedies(&checks), expected, "{}", engine.name);
        assert_nothing_is_left(&containerd);
    }
}

#[test]
fn real_a_canary_takes_the_cdi_name_where_the_policy_lets_no_container_ask() {
    for (engine, unpacked, program) in every(&[CONTAINERD_2_1]) {
        let containerd = with_rocworker(&engine, &unpacked, &program, DENIED, "/opt/rocworker/shim/runc");
        let (_, checks) = canary(&containerd, "containerd");
        let way = "asked for by the CDI name amd.com/gpu=0, since the policy lets no container ask";
        assert_eq!(without_remedies(&checks), in_order(way), "{}", engine.name);
        assert_nothing_is_left(&containerd);
    }
    for (engine, unpacked, program) in every(&older()) {
        let containerd = with_rocworker(&engine, &unpacked, &program, DENIED, "/opt/rocworker/shim/runc");
        let (_, checks) = canary(&containerd, "containerd");
        let [[status, evidence, _]] = checks.as_slice() else { panic!("{checks:?}") };
        assert!(status == "skipped" && evidence.contains(", and the ctr of containerd 1."), "{evidence}");
    }
}

#[test]
fn real_a_canary_through_plain_runc_in_the_wrappers_place_fails_and_says_what_to_do() {
    for (engine, unpacked, program) in every(&releases()) {
        let containerd = with_rocworker(&engine, &unpacked, &program, ASKED, "/usr/sbin/runc");
        let (code, checks) = canary(&containerd, "containerd");
        assert_eq!(code, 3, "{checks:?}");
        let statuses: Vec<&str> = checks.iter().map(|[status, ..]| status.as_str()).collect();
        assert_eq!(statuses, ["failed", "failed", "ok"], "{}: {checks:?}", engine.name);
        for [_, evidence, remedy] in &checks[..2] {
            assert!(evidence.contains("does not open inside (ENOENT"), "{evidence}");
            assert!(remedy.contains(WRAPPER) && remedy.contains("rocworker apply"), "{remedy}");
        }
        assert_nothing_is_left(&containerd);
    }
}

#[test]
fn real_a_canary_notices_a_policy_that_gives_another_gpu() {
    // The policy's GPU 0 is the machine's GPU 2 (tests/layout/src/sample.rs).
    const ANOTHER: &str = r#"{"schema_version":1,"requests":"all","default":"none","sharing":"shared","gpus":[
        {"index":0,"pci":"0000:c1:00.0","render":"/dev/dri/renderD130","uuid":null,"card":"0000:c1:00.0","hive":null}]}"#;
    for (engine, unpacked, program) in every(&[CONTAINERD_2_1]) {
        let containerd = with_rocworker(&engine, &unpacked, &program, ANOTHER, "/opt/rocworker/shim/runc");
        let (code, checks) = canary(&containerd, "containerd");
        let told = without_remedies(&checks);
        assert_eq!((code, told[1][0].as_str(), told[2][0].as_str()), (3, "failed", "failed"), "{checks:?}");
        assert!(told[1][1].contains("/dev/dri/renderD129 of GPU 0 does not open inside (ENOENT"), "{told:?}");
        assert!(told[2][1].contains("226:130, GPU 1's, was not given, and is let through"), "{told:?}");
        assert!(checks[2][2].contains("/etc/rocworker/wrapper.json"), "{checks:?}");
        assert_nothing_is_left(&containerd);
    }
}

/// Concourse's containerd is known by where its program stands, and takes the wrapper for its shims' runc.
#[test]
fn real_a_canary_knows_concourses_containerd_and_stays_out_of_its_namespace() {
    for (engine, unpacked, program) in every(&releases()) {
        let mut containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        fs::copy(&program, containerd.outside("/stage/rocworker")).unwrap();
        containerd.kill();
        let host = containerd.host();
        host.busybox(&["mkdir", "-p", "/var/lib/concourse/bin"]).well();
        for name in ["containerd", "ctr"] {
            host.busybox(&["cp", &format!("/usr/bin/{name}"), "/var/lib/concourse/bin"]).well();
        }
        // The system's own is not to be taken for it.
        host.busybox(&["rm", "/usr/bin/ctr"]).well();
        let argv = ["/var/lib/concourse/bin/containerd", "--config", "/stage/config.toml"];
        let mut worker = host.command(&engine.path(), &argv).stderr(Stdio::null()).spawn().unwrap();
        containerd.until("Concourse's containerd answers", || {
            host.call(PATH, &["/var/lib/concourse/bin/ctr", "version"]).status.success()
        });
        let (_, checks) = canary(&containerd, "containerd");
        let why = "Concourse's listens at /run/containerd/containerd.sock: see below";
        assert_eq!(without_remedies(&checks), [["skipped".to_owned(), why.to_owned()]], "{}", engine.name);
        let (_, checks) = canary(&containerd, "concourse");
        let way = "asked for by AMD_VISIBLE_DEVICES=0";
        assert_eq!(without_remedies(&checks), in_order(way), "{}", engine.name);
        host.busybox(&["cp", "/var/lib/concourse/bin/ctr", "/usr/bin"]).well();
        assert_nothing_is_left(&containerd);
        let namespaces = host.call(PATH, &["/usr/bin/ctr", "namespaces", "list", "--quiet"]).well();
        assert!(!namespaces.contains("concourse"), "{}: {namespaces}", engine.name);
        host.kill_all("containerd");
        worker.wait().unwrap();
    }
}

#[test]
fn real_a_canary_where_every_container_has_every_gpu_tries_one_that_none_has() {
    for (engine, unpacked, program) in every(&[CONTAINERD_2_1]) {
        let policy = machine::ALL.replace(r#""requests":"all""#, r#""requests":"deny""#);
        let containerd = with_rocworker(&engine, &unpacked, &program, &policy, "/opt/rocworker/shim/runc");
        let (_, checks) = canary(&containerd, "containerd");
        let told = without_remedies(&checks);
        assert!(told[0][1].ends_with("given by the policy's default"), "{told:?}");
        assert!(told[2][1].contains("226:128, the nvidia card's at 0000:01:00.0,"), "{told:?}");
        assert_eq!(told[2][0].as_str(), "ok", "{told:?}");
        assert_nothing_is_left(&containerd);
    }
}

#[test]
fn real_a_canary_under_exclusive_sharing_takes_a_gpu_that_nobody_has_and_gives_it_back() {
    for (engine, unpacked, program) in every(&releases()) {
        let containerd = Containerd::on_demo(&engine, &unpacked, EXCLUSIVE);
        fs::copy(&program, containerd.outside("/stage/rocworker")).unwrap();
        let host = containerd.host();
        host.busybox(&["mkdir", "-p", "/usr/lib/rocworker"]).well();
        host.busybox(&["cp", "/opt/rocworker/shim/runc", WRAPPER]).well();

        // The lease of the first one's container is in the folder still when the second one looks.
        for turn in ["first", "second"] {
            let (_, checks) = canary(&containerd, "containerd");
            let expected = in_order("asked for by AMD_VISIBLE_DEVICES=0");
            assert_eq!(without_remedies(&checks), expected, "{}: {turn}", engine.name);
            assert_only_the_wrappers_own_is_left(&containerd);
        }

        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=0"], "holds");
        let (_, checks) = canary(&containerd, "containerd");
        let told = without_remedies(&checks);
        assert!(told[0][1].ends_with("asked for by AMD_VISIBLE_DEVICES=1"), "{}: {told:?}", engine.name);
        assert!(told[1][1].starts_with("/dev/dri/renderD130 of GPU 1 is let through"), "{told:?}");
        let stranger = "the device 226:129, GPU 0's, was not given, and is refused inside";
        assert_eq!(told[2], ["ok", stranger], "{}", engine.name);
        // The holder has what it had.
        assert_eq!(
            containerd.look_in("holds", "look"),
            machine::seen_on_demo([0], "open"),
            "{}",
            engine.name
        );
        containerd.remove("holds");

        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=all"], "holds-all");
        let (_, checks) = canary(&containerd, "containerd");
        let why = "every GPU is leased to a container (rocworker lease list): try again when one is free";
        assert_eq!(without_remedies(&checks), [["skipped", why]], "{}", engine.name);
        containerd.remove("holds-all");
        assert_only_the_wrappers_own_is_left(&containerd);
    }
}
