//! Real dockerd with the wrapper as a runtime: who holds a GPU, who waits for one, and what a container keeps.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use real_engines::dockerd::SOCKET;
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_2_1, Engine, releases};
use real_engines::machine::{ASKED, seen_on_demo};
use real_engines::{docker, look};
use serde_json::Value;
use support::real;
use support::said::Said;

const PATH: &str = "/usr/sbin:/usr/bin";
const PATIENCE: Duration = Duration::from_secs(20);
const DENY: &str = r#"{"schema_version":1,"requests":"deny","default":"none","sharing":"shared"}"#;

fn exclusive(keys: &str) -> String {
    format!(r#"{{"schema_version":1,"requests":"all","default":"none","sharing":"exclusive",{keys}}}"#)
}

/// The shared one, with rocworker's program on its stage.
struct Docker(docker::Docker);

impl Docker {
    /// dockerd of the suite that this containerd is of, with the wrapper as the runtime `amd`, and a policy.
    fn start(engine: &Engine, policy: &str) -> Option<Self> {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"])?;
        let cdi = if engine.name == CONTAINERD_1_6.name { "" } else { r#""features": {"cdi": true}, "# };
        let docker = docker::Docker::start(engine, policy, cdi)?;
        fs::copy(program, docker.host().folder().join("rocworker")).unwrap();
        Some(Self(docker))
    }

    fn call(&self, argv: &[&str]) -> Said {
        self.0.host().command(PATH, argv).env("DOCKER_HOST", SOCKET).output().unwrap().into()
    }

    fn docker(&self, arguments: &[&str]) -> Said {
        self.0.call(&[], arguments)
    }

    fn rocworker(&self, arguments: &[&str]) -> Said {
        self.call(&[&["/stage/rocworker"], arguments].concat())
    }

    /// `docker run` by the runtime `amd`, from the image that can look.
    fn run(&self, flags: &[&str], argv: &[&str]) -> Said {
        self.docker(&[RUN, flags, &["look"], argv].concat())
    }

    /// A container that only sleeps; its id.
    #[track_caller]
    fn sleeping(&self, flags: &[&str]) -> String {
        self.run(&[&["--detach"], flags].concat(), &["/bin/sleep", "1000"]).well().trim().to_owned()
    }

    /// Starts a container that waits for its GPU.
    fn waiting(&self, flags: &[&str]) -> Child {
        let argv =
            [&["/usr/bin/docker"], RUN, &["--detach"], flags, &["look", "/bin/sleep", "1000"]].concat();
        let child = self.spawn(&argv);
        self.until("a create waits", || self.tickets() == 1);
        child
    }

    fn spawn(&self, argv: &[&str]) -> Child {
        let mut command = self.0.host().command(PATH, argv);
        command.env("DOCKER_HOST", SOCKET).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn tickets(&self) -> usize {
        self.0.host().names_in("/run/rocworker/waiting").len()
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "not within 20 s: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn policy(&self, text: &str) {
        let write = format!("echo '{text}' >/etc/rocworker/wrapper.json");
        self.0.host().busybox(&["sh", "-c", &write]).well();
    }

    fn seen(&self, file: &str) -> String {
        fs::read_to_string(self.0.host().folder().join("seen").join(file)).unwrap()
    }

    /// The answer of `rocworker lease list`.
    fn list(&self) -> Value {
        serde_json::from_str(&self.rocworker(&["--output", "json", "lease", "list"]).well()).unwrap()
    }

    fn is_running(&self, id: &str) -> bool {
        self.docker(&["inspect", "--format", "{{.State.Running}}", id]).well().trim() == "true"
    }
}

const RUN: &[&str] = &["run", "--network", "none", "--runtime", "amd", "--volume", "/stage/seen:/seen"];
const FIRST: &[&str] = &["--env", "AMD_VISIBLE_DEVICES=0"];

#[test]
fn real_a_container_whose_gpus_came_by_cdi_starts_whatever_its_image_asks_for() {
    let Some(docker) = Docker::start(&CONTAINERD_2_1, DENY) else { return };
    let pod = "io.kubernetes.cri.container-type=container";
    for (file, policy, annotated) in [("denied", DENY, false), ("pod", ASKED, true)] {
        docker.policy(policy);
        let annotation: &[&str] = if annotated { &["--annotation", pod] } else { &[] };
        for variable in ["AMD_VISIBLE_DEVICES=all", "AMD_GPU_COUNT=1"] {
            let flags = [annotation, &["--env", variable]].concat();
            let with = [&flags[..], &["--device", "amd.com/gpu=1"]].concat();
            docker.run(&with, &look::look(file)).well();
            // What docker gives by CDI has no group (point 18): the nodes are there, and that is all that is asked here.
            let nodes = |seen: &str| {
                seen.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(nodes(&docker.seen(file)), nodes(&seen_on_demo([1], "open")), "{variable}");
            let without = docker.run(&flags, &look::look("none"));
            assert!(without.stderr.contains("runc-amd-wrapper: the container asks for"), "{without:?}");
        }
    }
}

#[test]
fn real_a_process_that_docker_starts_after_undo_has_the_groups_of_its_container() {
    for engine in &releases() {
        let Some(docker) = Docker::start(engine, ASKED) else { return };
        let id = docker.sleeping(FIRST);
        let groups = || docker.docker(&["exec", "--user", "1000", &id, "/bin/busybox", "id", "-G"]).well();
        let before = groups();
        assert!(before.split_whitespace().count() > 1, "{before}");
        docker.0.host().busybox(&["rm", "/etc/rocworker/wrapper.json"]).well();
        assert_eq!(groups(), before);
        docker.docker(&["rm", "--force", &id]).well();
        docker.until("the record is gone", || docker.0.host().records().is_empty());
    }
}

#[test]
fn real_a_container_of_docker_that_sleeps_is_not_idle() {
    let Some(docker) = Docker::start(&CONTAINERD_2_1, &exclusive(r#""idle_grace_s":0"#)) else { return };
    let id = docker.sleeping(FIRST);
    for _ in 0..2 {
        let refused = docker.run(FIRST, &["/bin/true"]);
        assert!(refused.stderr.contains(&format!("is held by the container {id}")), "{refused:?}");
        assert!(docker.is_running(&id));
    }
    docker.docker(&["rm", "--force", &id]).well();
}

#[test]
fn real_what_docker_gave_while_gpus_were_shared_is_listed_and_released() {
    let Some(docker) = Docker::start(&CONTAINERD_2_1, ASKED) else { return };
    let id = docker.sleeping(FIRST);
    docker.policy(&exclusive(r#""wait_limit_s":0"#));
    let refused = docker.run(FIRST, &["/bin/true"]);
    assert!(refused.stderr.contains(&format!("was given to the container {id}")), "{refused:?}");
    let listed = docker.list();
    let [held] = listed["leases"].as_array().unwrap().as_slice() else { panic!("{listed:#}") };
    assert_eq!(
        ["id", "render", "held_by", "alive_by"].map(|key| held[key].as_str().unwrap()),
        [id.as_str(), "renderD129", "record", "init"]
    );
    let lives = docker.rocworker(&["lease", "release", &id]);
    assert!(lives.stderr.contains("--force"), "{lives:?}");
    assert_eq!(docker.rocworker(&["lease", "release", "--force", &id]).well(), "released renderD129\n");
    assert_eq!(docker.list()["leases"], Value::Array(Vec::new()));
    docker.run(FIRST, &["/bin/true"]).well();
    // The container goes on, and its further processes have its groups.
    let groups = docker.docker(&["exec", "--user", "1000", &id, "/bin/busybox", "id", "-G"]).well();
    assert!(groups.split_whitespace().count() > 1, "{groups}");
    docker.docker(&["rm", "--force", &id]).well();
}

#[test]
fn real_a_create_that_waits_behind_docker_is_cancelled_by_its_id() {
    for engine in &releases() {
        let Some(docker) = Docker::start(engine, &exclusive(r#""wait_limit_s":60"#)) else { return };
        let holder = docker.sleeping(FIRST);
        let waiting = docker.waiting(&[FIRST, &["--env", "AMD_GPU_WAIT=60", "--name", "waits"]].concat());
        let listed = docker.list();
        let id = listed["waiting"][0]["id"].as_str().unwrap().to_owned();
        // docker itself cannot: its stop waits for the create.
        let mut stop = docker.spawn(&["/usr/bin/docker", "stop", "--time", "1", "waits"]);
        thread::sleep(Duration::from_millis(500));
        assert!(docker.tickets() == 1, "{}", engine.name);
        let begin = Instant::now();
        assert_eq!(docker.rocworker(&["lease", "cancel", &id]).well(), format!("cancelled {id}\n"));
        let ended = Said::from(waiting.wait_with_output().unwrap());
        assert!(ended.stderr.contains("was cancelled while it waited for GPUs"), "{ended:?}");
        stop.wait().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10) && docker.tickets() == 0);
        assert!(docker.is_running(&holder));
        let nobody = docker.rocworker(&["lease", "cancel", &id]);
        assert!(nobody.stderr.contains("waits"), "{nobody:?}");
        docker.docker(&["rm", "--force", "waits", &holder]).well();
    }
}
