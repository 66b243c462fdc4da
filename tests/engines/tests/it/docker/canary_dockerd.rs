//! `doctor --canary` through real dockerd, and what doctor says of its configuration.

use std::fs;

use layout::Machine;
use real_engines::dockerd::{Dockerd, SOCKET};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, Engine, releases};
use real_engines::host::Host;
use real_engines::machine::{self, ASKED};
use serde_json::Value;
use support::real;
use support::said::Said;

const PATH: &str = "/usr/sbin:/usr/bin";
/// Where the package puts it (crates/engines/src/program.rs).
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";

struct Docker(Dockerd);

impl Docker {
    /// The dockerd of the suite that this containerd is of, with our runtime in its daemon.json, and a policy.
    fn start(engine: &Engine, runtime: &str, policy: &str) -> Option<Self> {
        let config = format!("{{\"runtimes\": {{\"amd\": {{\"path\": \"{runtime}\"}}}}}}\n");
        Self::start_with(engine, &config, policy)
    }

    fn start_with(engine: &Engine, daemon_json: &str, policy: &str) -> Option<Self> {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"])?;
        let unpacked = engine.unpacked()?;
        let stage = machine::stage(&Machine::demo(), policy);
        fs::copy(program, stage.folder().join("rocworker")).unwrap();
        fs::write(stage.folder().join("daemon.json"), daemon_json).unwrap();
        let host = Host::set(stage, &unpacked);
        host.busybox(&["mkdir", "-p", "/usr/lib/rocworker", "/etc/docker"]).well();
        host.busybox(&["cp", "/opt/rocworker/shim/runc", WRAPPER]).well();
        host.busybox(&["cp", "/stage/daemon.json", "/etc/docker/daemon.json"]).well();
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        let options = ["--data-root=/stage/docker", &cgroup];
        Some(Self(Dockerd::start(host, &options)))
    }

    fn call(&self, argv: &[&str]) -> Said {
        self.0.host.command(PATH, argv).env("DOCKER_HOST", SOCKET).output().unwrap().into()
    }

    /// Status, evidence and remedy of a component's checks of docker.
    #[track_caller]
    fn checks(&self, component: &str) -> Vec<[String; 3]> {
        let said = self.call(&["/stage/rocworker", "--output", "json", "doctor", "--canary"]);
        let answer: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let checks = answer["checks"].as_array().unwrap().iter();
        let checks = checks.filter(|check| check["name"] == component && check["subject"] == "docker");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        checks.map(|check| ["status", "evidence", "remedy"].map(|key| text(&check[key]))).collect()
    }

    #[track_caller]
    fn assert_nothing_is_left(&self) {
        for argv in
            [&["ps", "--all", "--quiet"][..], &["images", "--all", "--quiet"], &["volume", "ls", "-q"]]
        {
            assert_eq!(self.call(&[&["/usr/bin/docker"], argv].concat()).well(), "", "{argv:?}");
        }
        let left = self.0.host.names_in("/run/rocworker");
        assert!(!left.iter().any(|name| name.contains("canary")), "{left:?}");
        assert_eq!(self.0.host.records(), [""; 0]);
    }

    /// The GPUs that living containers have, by `rocworker lease list`.
    fn leased(&self) -> Vec<Value> {
        let said = self.call(&["/stage/rocworker", "--output", "json", "lease", "list"]).well();
        let answer: Value = serde_json::from_str(&said).unwrap();
        let held = answer["leases"].as_array().unwrap().iter();
        held.filter(|held| !held["alive_by"].is_null()).map(|held| held["render"].clone()).collect()
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_through_docker_and_our_runtime_gets_the_gpu_that_it_asks_for_and_no_other() {
    let Some(docker) = Docker::start(&CONTAINERD_1_6, WRAPPER, ASKED) else { return };
    let told: Vec<[String; 2]> =
        docker.checks("canary").into_iter().map(|[status, evidence, _]| [status, evidence]).collect();
    let none = "no driver answers inside (ENXIO, No such device or address)";
    // As doctor/real_canary.rs of rocworker's tests has it of the same machine.
    let expected = [
        [
            "warning".to_owned(),
            format!(
                "/dev/kfd is let through, and {none}, asked for by AMD_VISIBLE_DEVICES=0 of the runtime amd"
            ),
        ],
        ["warning".to_owned(), format!("/dev/dri/renderD129 of GPU 0 is let through, and {none}")],
        ["ok".to_owned(), "the device 226:130, GPU 1's, was not given, and is refused inside".to_owned()],
    ];
    assert_eq!(told, expected);
    docker.assert_nothing_is_left();
    let effective = format!("dockerd runs {WRAPPER} for the runtime amd");
    let engines = docker.checks("engines");
    assert!(
        engines.iter().any(|[status, evidence, _]| status == "ok" && *evidence == effective),
        "{engines:?}"
    );
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_through_docker_with_plain_runc_for_our_runtime_fails_and_says_what_to_do() {
    let Some(docker) = Docker::start(&CONTAINERD_1_6, "/usr/sbin/runc", ASKED) else { return };
    let checks = docker.checks("canary");
    let statuses: Vec<&str> = checks.iter().map(|[status, ..]| status.as_str()).collect();
    assert_eq!(statuses, ["failed", "failed", "ok"], "{checks:?}");
    assert!(checks[0][1].contains("does not open inside (ENOENT"), "{checks:?}");
    assert!(checks[0][2].contains("rocworker apply"), "{checks:?}");
    docker.assert_nothing_is_left();
    let engines = docker.checks("engines");
    let another = format!("dockerd runs /usr/sbin/runc for the runtime amd, not {WRAPPER}");
    assert!(
        engines.iter().any(|[status, evidence, _]| status == "failed" && *evidence == another),
        "{engines:?}"
    );
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_through_docker_under_exclusive_sharing_takes_a_gpu_that_nobody_has_and_gives_it_back() {
    const EXCLUSIVE: &str = r#"{"schema_version":1,"requests":"all","default":"none","sharing":"exclusive"}"#;
    let Some(docker) = Docker::start(&CONTAINERD_1_6, WRAPPER, EXCLUSIVE) else { return };
    for turn in ["first", "second"] {
        let checks = docker.checks("canary");
        assert!(
            checks[0][1].ends_with("asked for by AMD_VISIBLE_DEVICES=0 of the runtime amd"),
            "{turn}: {checks:?}"
        );
        let statuses: Vec<&str> = checks.iter().map(|[status, ..]| status.as_str()).collect();
        assert_eq!(statuses, ["warning", "warning", "ok"], "{turn}: {checks:?}");
        assert_eq!(docker.leased(), [Value::Null; 0], "{turn}");
    }
}

/// docker 20.10 knows no CDI: nothing else than our runtime gives it a GPU.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_through_a_docker_without_our_runtime_and_without_cdi_fails_and_says_what_to_do() {
    let Some(docker) = Docker::start_with(&CONTAINERD_1_6, "{}\n", ASKED) else { return };
    let checks = docker.checks("canary");
    let [[status, evidence, remedy]] = checks.as_slice() else { panic!("{checks:?}") };
    let why = "dockerd 20.10.24 has no runtime amd, and knows no CDI, which came with 25.0.0";
    assert_eq!((status.as_str(), evidence.as_str()), ("failed", why));
    assert!(remedy.contains("rocworker apply"), "{remedy}");
    docker.assert_nothing_is_left();
}

/// docker 26.1 reads CDI specs because its configuration enables that, and 28.5 by default: with both a GPU
/// comes without rocworker's runtime.
#[test]
fn real_a_canary_through_a_docker_that_knows_cdi_gets_the_gpu_that_it_names_and_no_other() {
    for engine in releases().into_iter().filter(|engine| *engine != CONTAINERD_1_6) {
        let config = if engine == CONTAINERD_1_7 { "{\"features\": {\"cdi\": true}}\n" } else { "{}\n" };
        let Some(docker) = Docker::start_with(&engine, config, ASKED) else { return };
        let told: Vec<[String; 2]> =
            docker.checks("canary").into_iter().map(|[status, evidence, _]| [status, evidence]).collect();
        let none = "no driver answers inside (ENXIO, No such device or address)";
        let expected = [
            [
                "warning".to_owned(),
                format!("/dev/kfd is let through, and {none}, asked for by the CDI name amd.com/gpu=0"),
            ],
            ["warning".to_owned(), format!("/dev/dri/renderD129 of GPU 0 is let through, and {none}")],
            ["ok".to_owned(), "the device 226:130, GPU 1's, was not given, and is refused inside".to_owned()],
        ];
        assert_eq!(told, expected, "{config}");
        docker.assert_nothing_is_left();
    }
}

/// docker 26.1 has no driver for CDI names until its configuration enables CDI.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_through_a_docker_that_was_not_told_of_cdi_fails_and_says_what_to_do() {
    let Some(docker) = Docker::start_with(&CONTAINERD_1_7, "{}\n", ASKED) else { return };
    let checks = docker.checks("canary");
    let [[status, evidence, remedy]] = checks.as_slice() else { panic!("{checks:?}") };
    assert_eq!(status, "failed", "{checks:?}");
    assert!(evidence.contains("could not select device driver \"cdi\""), "{evidence}");
    assert!(remedy.contains("rocworker apply"), "{remedy}");
    docker.assert_nothing_is_left();
}
