//! A Concourse worker. Concourse is not to be had here: its programs are stand-ins that tell a version, and its containerd
//! is a real one, started by the variables of the environment file that apply has written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use host::env_file::EnvFile;
use layout::Machine;
use real_engines::containerd::{Containerd, Start};
use real_engines::engine::CONTAINERD_2_1;
use real_engines::host::Host;
use real_engines::machine::seen_on_demo;
use real_engines::{look, machine};
use serde_json::Value;
use support::document::{blocks, quick_start, text};
use support::stage::Stage;

use crate::readme::operator::{DIST, PATH, line, put_source, with_debian};

const BIN: &str = "/var/lib/concourse/bin";
/// What the worker itself writes for its containerd, which has no CRI (worker/workercmd/containerd.go).
const OWN_CONFIG: &str = include_str!("../../../../../templates/concourse/default-3.toml");

/// The machine with a worker as the charm makes it, and no other engine.
fn worker() -> Option<Host> {
    let (unpacked, made) = with_debian(&CONTAINERD_2_1)?;
    let stage = Stage::set(&Machine::demo());
    put_source(&stage, &made);
    look::lay_out(&machine::rootfs(&stage));
    let seen = stage.folder().join("seen");
    fs::create_dir(&seen).unwrap();
    fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
    stage.put(
        "etc/systemd/system/concourse-worker.service",
        &format!("[Service]\nEnvironmentFile=/etc/worker.env\nExecStart={BIN}/concourse worker\n"),
    );
    stage.put("etc/worker.env", "CONCOURSE_RUNTIME=containerd\nCONCOURSE_WORK_DIR=/var/lib/work\n");
    let host = Host::set(stage, &unpacked);
    fs::write(host.folder().join("containerd.toml"), OWN_CONFIG).unwrap();
    let script = format!(
        "mkdir -p {BIN} /var/lib/work\n\
         for program in /usr/bin/containerd /usr/bin/containerd-shim-runc-v2 /usr/sbin/runc; do\n\
           mv $program {BIN}/\n\
         done\n\
         rm -f /usr/sbin/dockerd\n\
         printf '#!/bin/sh\\necho 7.14.3\\n' > {BIN}/concourse\n\
         chmod 755 {BIN}/concourse\n"
    );
    line(&host, &[], &script).well();
    Some(host)
}

/// containerd, started as the worker would.
fn start(host: Host) -> Containerd {
    let variables = EnvFile::parse(&host.busybox(&["cat", "/etc/rocworker/concourse.env"]).well());
    let or = |name: &str, default: &str| variables.get(name).unwrap_or(default).to_owned();
    let argv = vec![
        or("CONCOURSE_CONTAINERD_BIN", &format!("{BIN}/containerd")),
        "--address=/run/containerd/containerd.sock".to_owned(),
        "--root=/stage/containerd".to_owned(),
        format!("--config={}", or("CONCOURSE_CONTAINERD_CONFIG", "/stage/containerd.toml")),
    ];
    Containerd::begin(&CONTAINERD_2_1, host, Start { path: format!("{BIN}:{PATH}"), argv })
}

/// The step of a pipeline as data: its tags, and its variables as `ctr` takes them.
fn step(text: &str) -> (Vec<String>, Vec<String>) {
    let steps: Vec<Value> = yaml_serde::from_str(text).unwrap();
    let [step] = steps.as_slice() else { panic!("{text}") };
    assert!(step["task"].is_string() && step["file"].is_string(), "{text}");
    let tags = step["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned());
    let params = step["params"].as_object().unwrap().iter();
    let params = params.flat_map(|(name, value)| {
        ["--env".to_owned(), format!("{name}={}", value.as_str().expect("a variable's value is text"))]
    });
    (tags.collect(), params.collect())
}

#[test]
fn real_the_readmes_quick_start_gives_every_task_of_a_worker_every_gpu_and_a_step_one_of_its_own() {
    let Some(host) = worker() else { return };
    let (commands, rest) = quick_start("A Concourse worker");
    let (first, commands) = commands.split_first().unwrap();
    assert_eq!(first, DIST);
    let said: Vec<String> = commands.iter().map(|command| line(&host, &[], command).well()).collect();
    let [pipeline] = rest.as_slice() else { panic!("{rest:?}") };
    let (tags, params) = step(pipeline);
    let params: Vec<&str> = params.iter().map(String::as_str).collect();
    let of_worker: Vec<&str> = said.last().unwrap().trim().split(',').collect();
    assert!(tags.iter().all(|tag| of_worker.contains(&tag.as_str())), "{tags:?} of {of_worker:?}");
    let environment = host.busybox(&["cat", "/etc/rocworker/concourse.env"]).well();
    assert!(environment.contains(&format!("CONCOURSE_TAG={}", of_worker.join(","))), "{environment}");

    let containerd = start(host);
    assert_eq!(containerd.look(&[], "every"), seen_on_demo(0..9, "open"));
    assert_eq!(containerd.look(&params, "counted"), seen_on_demo(0..1, "open"));

    // docs/concourse.md has the line for GPUs that no two tasks share.
    let [config, asks] = blocks(&text("docs/concourse.md"), "## What a task gets").try_into().unwrap();
    assert!(pipeline.contains(asks.trim()), "{asks}");
    let config = format!("cat > /etc/rocworker/config.yaml <<'END'\n{config}END\nrocworker apply");
    line(containerd.host(), &[], &config).well();
    containerd.start_sleeping(&params, "first");
    assert_eq!(containerd.look(&params, "second"), seen_on_demo(1..2, "open"));
    assert_eq!(containerd.look(&[], "without"), "");
    containerd.remove("first");
}
