//! What doctor says of a Concourse worker on a running machine. Concourse is not to be had here: its programs are
//! stand-ins that tell a version, and so is `systemctl`, which says what systemd would read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use layout::Machine;
use serde_json::Value;
use support::real;
use support::stage::{Stage, stdout};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");
const ENV_FILE: &str = "/etc/rocworker/concourse.env";

fn program(path: &Path, says: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\ncat <<'END'\n{says}\nEND\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A worker of Concourse 7.14 with containerd 2.1.
fn with_worker(wrapper: &Path) -> Stage {
    let stage = Stage::set(&Machine::demo());
    // Programs that only root could have put there are believed; a temporary folder is not readable by others.
    fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let bin = stage.folder().join("bin");
    program(&bin.join("concourse"), "7.14.3");
    program(&bin.join("containerd"), "containerd github.com/containerd/containerd/v2 v2.1.9 x");
    program(&stage.folder().join("stand-in/systemctl"), "");
    // Copies of root's: the build may be an ordinary user's, whose programs are not believed.
    fs::copy(wrapper, stage.folder().join("runc-amd-wrapper")).unwrap();
    fs::copy(ROCWORKER, stage.folder().join("rocworker")).unwrap();
    stage.put(
        "etc/systemd/system/concourse-worker.service",
        &format!(
            "[Service]\nEnvironmentFile=/etc/worker-config.env\nExecStart={}/concourse worker\n",
            bin.display()
        ),
    );
    stage.put(
        "etc/worker-config.env",
        "CONCOURSE_RUNTIME=containerd\nCONCOURSE_WORK_DIR=/var/lib/work\nCONCOURSE_TAG=mine\n",
    );
    stage
}

/// Status and evidence of doctor's checks of the worker, after what the script does on the stage.
fn checks(stage: &Stage, script: &str) -> Vec<(String, String)> {
    let folder = stage.folder().display();
    // What apply writes beside /etc and /run is not to reach this machine.
    let private = "for at in /usr/local/lib /var/lib; do mount -t tmpfs none $at; done";
    let said = stage.shell(&format!(
        "{private}\nPATH={folder}/stand-in:$PATH\n\
         install -D {folder}/runc-amd-wrapper /usr/local/lib/rocworker/runc-amd-wrapper\n\
         apply() {{ {folder}/rocworker apply >&2 || [ $? = 1 ]; }}\n{script}\n\
         {folder}/rocworker --output json doctor || [ $? = 3 ]"
    ));
    let answer: Value = serde_json::from_str(&stdout(&said)).unwrap();
    let checks = answer["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == "engines" && check["subject"] == "concourse");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks.map(|check| (text(&check["status"]), text(&check["evidence"]))).collect()
}

fn check(status: &str, evidence: &str) -> (String, String) {
    (status.to_owned(), evidence.to_owned())
}

#[test]
fn real_doctor_says_whether_a_worker_reads_our_environment_last() {
    let Some(wrapper) = real::require_root_and_built("ROCWORKER_WRAPPER", &["unshare"]) else { return };
    let unset = |what: &str| check("failed", &format!("{what} is not as it was meant"));
    let stage = with_worker(&wrapper);
    let before = checks(&stage, "");
    assert!(before.contains(&unset(ENV_FILE)), "{before:?}");

    let right = check(
        "ok",
        &format!("{ENV_FILE} says what was meant, and comes last by concourse-worker.service's files"),
    );
    let silent = check("skipped", "systemd does not run here: what it would read is not asked");
    assert_eq!(checks(&stage, "apply"), [right.clone(), silent.clone()]);
    assert_eq!(
        checks(&stage, &format!("apply; echo CONCOURSE_TAG=x >{ENV_FILE}")),
        [unset(ENV_FILE), silent]
    );

    for (last, expected) in [
        (ENV_FILE, check("ok", &format!("systemd reads {ENV_FILE} last"))),
        (
            "/etc/worker-config.env",
            check(
                "failed",
                &format!("systemd reads /etc/worker-config.env last, and what it says wins over {ENV_FILE}"),
            ),
        ),
    ] {
        let stage = with_worker(&wrapper);
        let says = format!(
            "EnvironmentFiles=/etc/x (ignore_errors=yes)\nEnvironmentFiles={last} (ignore_errors=no)"
        );
        program(&stage.folder().join("stand-in/systemctl"), &says);
        let found = checks(&stage, "apply\nmkdir -p /run/systemd/system");
        assert_eq!(found, [right.clone(), expected]);
    }
}
