//! The program itself, beneath another root, where no version of the worker's is told.

use assert_cmd::Command;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::desired::concourse::worker::{ENVIRONMENT, ENVIRONMENT_FILE, Machine};
use crate::desired::concourse::{V8_1, machine};

const DROP_IN: &str = "etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf";
const POLICY: &str = "etc/rocworker/wrapper.json";

/// A machine with rocworker's package.
fn packaged() -> Machine {
    let machine = machine(V8_1);
    let wrapper = machine.put("usr/lib/rocworker/runc-amd-wrapper", support::laid::WRAPPER);
    fs::set_permissions(wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    machine.put("etc/rocworker/config.yaml", "concourse: {tags: true}\n");
    machine
}

fn run(machine: &Machine, command: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output = program.arg("--root").arg(machine.root()).arg(command).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// What a container gets that does not ask.
fn default(machine: &Machine) -> String {
    let text = fs::read_to_string(machine.root().join(POLICY)).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["default"].as_str().unwrap().to_owned()
}

#[test]
fn containers_keep_their_gpus_while_the_shared_storage_is_away() {
    let machine = packaged();
    run(&machine, "apply");
    assert_eq!(default(&machine), "all");
    let (bin, away) = (machine.root().join("var/lib/concourse"), machine.root().join("var/lib/away"));
    fs::rename(&bin, &away).unwrap();
    let said = run(&machine, "apply");
    assert!(said.contains("it may not be mounted yet"), "{said}");
    assert!(machine.root().join(DROP_IN).exists());
    assert_eq!(default(&machine), "all");
    let said = run(&machine, "doctor");
    assert!(said.contains("it may not be mounted yet"), "{said}");
    fs::rename(&away, &bin).unwrap();
    // A worker with guardian passes the wrapper by, and what else runs it is given nothing unasked.
    machine.set("CONCOURSE_RUNTIME=guardian");
    run(&machine, "apply");
    assert!(!machine.root().join(DROP_IN).exists());
    assert_eq!(default(&machine), "none");
}

#[test]
fn of_a_captured_worker_the_runtime_has_to_be_told() {
    let machine = packaged();
    machine.put(ENVIRONMENT_FILE, &ENVIRONMENT.replace("CONCOURSE_RUNTIME=containerd\n", ""));
    let said = run(&machine, "apply");
    let problem = "no file of Concourse's names its version";
    assert!(said.contains(problem) && said.contains("set CONCOURSE_RUNTIME=containerd in"), "{said}");
    assert!(!machine.root().join(DROP_IN).exists() && !machine.root().join(POLICY).exists());
}
