//! `doctor --canary` with this machine's podman: what it says of a container is what the container can do, and nothing
//! of it stays, however it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use layout::Machine;
use serde_json::Value;
use support::real;
use support::stage::{Stage, stdout};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

/// runc, which does not come to an end while there is a file `hang`, once it is to start a container. It says by a file
/// that it hangs, with the pid of podman in it.
const SLOW: &str = r#"#!/bin/sh
for word in "$@"; do
    if [ "$word" = start ] && [ -e FOLDER/hang ]; then
        echo $PPID >FOLDER/pid && mv FOLDER/pid FOLDER/hanging
        exec sleep 600
    fi
done
exec runc "$@"
"#;

/// podman kept to the stage's folder, and without what needs a user's session or a netlink of its own.
fn with_podman() -> Stage {
    let stage = Stage::set(&Machine::demo());
    let folder = stage.folder().display();
    stage.put(
        "etc/containers/storage.conf",
        &format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{folder}/podman\"\nrunroot = \"{folder}/podman-run\"\n"
        ),
    );
    stage.put(
        "etc/containers/containers.conf",
        &format!(
            "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_backend = \"none\"\nruntime = \"slow\"\n\
             [engine.runtimes]\nslow = [\"{folder}/slow\"]\n"
        ),
    );
    let slow = stage.folder().join("slow");
    fs::write(&slow, SLOW.replace("FOLDER", stage.folder().to_str().unwrap())).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    stage
}

/// The checks of the canary, in a run that ended with this code.
#[track_caller]
fn canary(said: &str) -> Vec<(String, String, String, String)> {
    let answer: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let checks = answer["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "canary");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks
        .map(|check| {
            (
                text(&check["subject"]),
                text(&check["status"]),
                text(&check["evidence"]),
                text(&check["remedy"]),
            )
        })
        .collect()
}

/// The canary checks of one engine: status, and evidence.
#[track_caller]
fn of(said: &str, engine: &str) -> Vec<(String, String)> {
    let checks = canary(said).into_iter().filter(|check| check.0 == engine);
    checks.map(|(_, status, evidence, _)| (status, evidence)).collect()
}

/// What is left of a canary on the stage: containers, folders, cgroups.
const LEFT: &str = "podman ps --all --quiet; ls -d /run/rocworker /run/rocworker/* 2>/dev/null || true; \
                    find /sys/fs/cgroup -maxdepth 3 -name '*rocworker-canary*' || true";

/// A stage of its own for the script, which has `$ROCWORKER`.
fn run(stage: &Stage, script: &str) -> Output {
    stage.shell(&format!("ROCWORKER={ROCWORKER}\n{script}"))
}

const DOCTOR: &str = "$ROCWORKER --output json doctor --canary || [ $? = 3 ]";

#[test]
fn real_a_canary_through_podman_tells_the_granted_gpu_from_another_and_leaves_nothing() {
    if !real::require_root(&["podman", "runc", "unshare"]) {
        return;
    }
    let stage = with_podman();
    let said = run(&stage, &format!("$ROCWORKER cdi generate >&2\n{DOCTOR}\necho LEFT\n{LEFT}"));
    let said = stdout(&said);
    let (answer, left) = said.split_once("\nLEFT\n").unwrap();
    // tests/layout/src/sample.rs: renderD129 is the W7900, 130 the first partition; KFD's major is 241. No driver of
    // this kernel answers to any of them: past the device cgroup the answer is ENXIO.
    let expected = [
        (
            "warning",
            "/dev/kfd is let through, and no driver answers inside (ENXIO, No such device or address), asked for by the CDI name amd.com/gpu=0",
        ),
        (
            "warning",
            "/dev/dri/renderD129 of GPU 0 is let through, and no driver answers inside (ENXIO, No such device or address)",
        ),
        ("ok", "the device 226:130, GPU 1's, was not given, and is refused inside"),
    ];
    let expected: Vec<_> = expected.map(|(status, text)| (status.to_owned(), text.to_owned())).into();
    assert_eq!(of(answer, "podman"), expected, "{answer}");
    assert_eq!(left, "", "left by the canary");
    for (engine, why) in [
        ("containerd", "does not run: nothing answers at /run/containerd/containerd.sock"),
        ("concourse", "no worker's containerd answers at /run/containerd/containerd.sock"),
    ] {
        assert_eq!(of(answer, engine), [("skipped".to_owned(), why.to_owned())], "{answer}");
    }
    let docker = of(answer, "docker");
    let [(status, why)] = docker.as_slice() else { panic!("{docker:?}") };
    assert!(
        status == "skipped" && (why.contains("dockerd does not answer") || why == "not installed"),
        "{why}"
    );
}

#[test]
fn real_a_canary_whose_podman_hangs_says_so_in_time_and_removes_its_container() {
    if !real::require_root(&["podman", "runc", "unshare"]) {
        return;
    }
    let stage = with_podman();
    fs::write(stage.folder().join("hang"), "").unwrap();
    let said = run(
        &stage,
        &format!(
            "$ROCWORKER cdi generate >&2\n\
         $ROCWORKER --output json doctor --canary --canary-limit 3 || [ $? = 3 ]\necho LEFT\n{LEFT}"
        ),
    );
    let said = stdout(&said);
    let (answer, left) = said.split_once("\nLEFT\n").unwrap();
    let killed = ("failed".to_owned(), "podman was killed: after 3 s it had not ended".to_owned());
    assert_eq!(of(answer, "podman"), [killed], "{answer}");
    assert_eq!(left, "", "left by the canary");
}

/// Starts a canary that hangs in `$doctor`, and ends it by this; what it says goes to `$FOLDER/said`.
fn hanging(stage: &Stage, end: &str) -> String {
    let folder = stage.folder().display();
    format!(
        "FOLDER={folder}\ntouch $FOLDER/hang\n$ROCWORKER cdi generate >&2\n\
         $ROCWORKER doctor --canary >$FOLDER/said 2>&1 & doctor=$!\n\
         until [ -e $FOLDER/hanging ]; do kill -0 $doctor; sleep 0.05; done\n\
         {end}\nstatus=0; wait $doctor || status=$?\nrm $FOLDER/hang\necho $status\n"
    )
}

#[test]
fn real_a_canary_that_is_interrupted_removes_what_it_has_started() {
    if !real::require_root(&["podman", "runc", "unshare"]) {
        return;
    }
    for signal in ["INT", "TERM"] {
        let stage = with_podman();
        let script = hanging(&stage, &format!("kill -{signal} $doctor"));
        let said = stdout(&run(&stage, &format!("{script}\n{LEFT}")));
        assert_eq!(said, "1\n", "the exit code, and what is left");
        let said = fs::read_to_string(stage.folder().join("said")).unwrap();
        assert_eq!(
            said,
            "a container is started through each engine: up to 60 s for each\n\
             rocworker: doctor --canary was interrupted: the containers that it had started are removed\n"
        );
    }
}

#[test]
fn real_a_canary_removes_what_a_killed_one_left() {
    if !real::require_root(&["podman", "runc", "unshare"]) {
        return;
    }
    let stage = with_podman();
    // podman goes on without its caller.
    let script = hanging(&stage, "kill -KILL $doctor $(cat $FOLDER/hanging)");
    let said = run(&stage, &format!("{script}\n{LEFT}\necho AGAIN\n{DOCTOR}\necho LEFT\n{LEFT}"));
    let said = stdout(&said);
    let (left, again) = said.split_once("AGAIN\n").unwrap();
    assert!(left.contains("/run/rocworker/rocworker-canary-"), "the kill left nothing to remove: {left}");
    assert!(left.lines().any(|line| line.len() == 12), "no container is left: {left}");
    let (answer, left) = again.split_once("\nLEFT\n").unwrap();
    assert_eq!(of(answer, "podman").len(), 3, "{answer}");
    assert_eq!(left, "", "left by the second canary");
}

#[test]
fn real_a_canary_of_an_ordinary_user_starts_nothing_and_says_why() {
    if !real::require_root(&["unshare", "setpriv"]) {
        return;
    }
    let stage = with_podman();
    fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(ROCWORKER, stage.folder().join("rocworker")).unwrap();
    let folder = stage.folder().display();
    let said = run(
        &stage,
        &format!(
            "setpriv --reuid 65534 --regid 65534 --clear-groups {folder}/rocworker --output json doctor --canary || \
             [ $? = 3 ]"
        ),
    );
    let checks = canary(&stdout(&said));
    let [(subject, status, why, _)] = checks.as_slice() else { panic!("{checks:?}") };
    let told = (subject.as_str(), status.as_str(), why.as_str());
    assert_eq!(told, ("", "skipped", "starting a container through the machine's engines needs root"));
}
