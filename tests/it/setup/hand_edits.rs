//! What somebody does by hand to rocworker's runtime in an engine's file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use edit::Format;
use serde_json::{Value, json};

use crate::setup::laid::Laid;

const MAIN: &str = "etc/containerd/config.toml";
const DAEMON: &str = "etc/docker/daemon.json";
const CRI: &str = "io.containerd.grpc.v1.cri";
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";
const PROGRAM: &str = "BinaryName = \"/usr/lib/rocworker/runc-amd-wrapper\"\n";

/// containerd 1.7, whose file our keys go into, and docker.
fn engines() -> Laid {
    let laid = Laid::demo("");
    let package = |name: &str, version: &str| {
        format!("Package: {name}\nStatus: install ok installed\nVersion: {version}\n\n")
    };
    laid.put("var/lib/dpkg/status", &(package("containerd", "1.7.24-1") + &package("docker.io", "26.1.5-1")));
    for program in ["usr/bin/containerd", "usr/sbin/dockerd"] {
        laid.put(program, "");
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let runc = format!(
        "version = 2\n\n[plugins.\"{CRI}\".containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n\n\
         [plugins.\"{CRI}\".containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
    );
    laid.put(MAIN, &runc);
    laid.put(DAEMON, "{\"debug\": true}\n");
    laid
}

fn applied() -> (Laid, String, String) {
    let laid = engines();
    laid.run(&["apply"]).success();
    let (main, daemon) = (laid.text(MAIN), laid.text(DAEMON));
    assert!(main.contains(PROGRAM) && daemon.contains(WRAPPER), "{main}{daemon}");
    (laid, main, daemon)
}

fn runtime(laid: &Laid, name: &str) -> (Value, Value) {
    let main = Format::Toml.read(&laid.text(MAIN)).unwrap();
    let daemon = Format::Json.read(&laid.text(DAEMON)).unwrap();
    (main["plugins"][CRI]["containerd"]["runtimes"][name].clone(), daemon["runtimes"][name].clone())
}

/// What a change of this file is for.
#[track_caller]
fn reason(said: &Value, file: &str) -> String {
    let changes = said["changes"].as_array().unwrap();
    let change = changes.iter().find(|it| it["path"] == format!("/{file}").as_str());
    change.unwrap_or_else(|| panic!("{said:#}"))["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_runtime_of_ours_without_its_program_is_noticed_and_repaired() {
    let (laid, main, daemon) = applied();
    let ours = runtime(&laid, "amd");
    let path = format!("\"path\": \"{WRAPPER}\"");
    for (main, daemon) in [
        (main.replace(PROGRAM, ""), daemon.replace(&path, "")),
        (main.replace(WRAPPER, ""), daemon.replace(&path, "\"path\": \"\"")),
    ] {
        laid.put(MAIN, &main);
        laid.put(DAEMON, &daemon);
        let (code, said) = laid.fails(&["status"]);
        assert_eq!(code, 3, "{said}");
        assert_eq!(said.matches("\ndiffers ").count(), 2, "{said}");
        assert!(!said.contains("another program") && !said.contains("somebody else's"), "{said}");
        let repaired = laid.json(&["apply"]);
        for change in repaired["changes"].as_array().unwrap() {
            assert_eq!(change["change"], "repair", "{repaired:#}");
        }
        assert_eq!(runtime(&laid, "amd"), ours);
        laid.run(&["status"]).success();
    }
}

#[test]
fn undo_takes_a_runtime_of_ours_without_its_program_away_as_one() {
    let (laid, main, daemon) = applied();
    laid.put(MAIN, &main.replace(PROGRAM, ""));
    laid.put(DAEMON, &daemon.replace(&format!("\"path\": \"{WRAPPER}\""), ""));
    laid.run(&["undo"]).success();
    let before = engines();
    assert_eq!((laid.text(MAIN), laid.text(DAEMON)), (before.text(MAIN), before.text(DAEMON)));
}

#[test]
fn a_runtime_that_runs_no_program_of_its_own_and_is_not_ours_is_left_alone() {
    let laid = engines();
    let main = format!("{}\n[plugins.\"{CRI}\".containerd.runtimes.amd]\n", laid.text(MAIN))
        + "runtime_type = \"io.containerd.runc.v2\"\n";
    let daemon = "{\"runtimes\": {\"amd\": {\"runtimeArgs\": []}}}\n";
    laid.put(MAIN, &main);
    laid.put(DAEMON, daemon);
    let (code, said) = laid.fails(&["apply"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(
        said.matches("amd is there already, rocworker did not write it, and it names no program").count(),
        2,
        "{said}"
    );
    assert_eq!((laid.text(MAIN).as_str(), laid.text(DAEMON).as_str()), (main.as_str(), daemon));
    laid.run(&["undo"]).success();
    assert_eq!((laid.text(MAIN).as_str(), laid.text(DAEMON).as_str()), (main.as_str(), daemon));
}

#[test]
fn a_runtime_that_somebody_points_elsewhere_is_theirs_as_one() {
    for config in ["", "containerd: {runtime: gpu}\ndocker: {runtime: gpu}\n"] {
        let (laid, main, daemon) = applied();
        laid.put(MAIN, &main.replace(WRAPPER, "/opt/mine"));
        laid.put(DAEMON, &daemon.replace(WRAPPER, "/opt/mine"));
        let theirs = runtime(&laid, "amd");
        assert_eq!(theirs.0["options"], json!({"BinaryName": "/opt/mine", "SystemdCgroup": true}));
        laid.put("etc/rocworker/config.yaml", config);
        let said = laid.json(&["apply"]);
        if !config.is_empty() {
            for file in [MAIN, DAEMON] {
                let reason = reason(&said, file);
                assert!(reason.contains("rocworker keeps what was changed since: "), "{reason}");
                assert!(reason.contains("runtimes.amd"), "{reason}");
            }
        }
        assert_eq!(runtime(&laid, "amd"), theirs);
        let said = laid.json(&["undo"]);
        if config.is_empty() {
            let reason = reason(&said, MAIN);
            assert!(
                reason.contains("runtimes.amd") && reason.contains("keeps what was changed since: "),
                "{reason}"
            );
        }
        assert_eq!(runtime(&laid, "amd"), theirs);
        assert_eq!(runtime(&laid, "gpu"), (Value::Null, Value::Null));
    }
}

#[test]
fn what_somebody_added_to_a_runtime_of_ours_goes_with_it_and_that_is_told() {
    for config in ["", "containerd: {runtime: gpu}\ndocker: {runtime: gpu}\n"] {
        let (laid, main, daemon) = applied();
        laid.put(MAIN, &main.replace(PROGRAM, &format!("{PROGRAM}Root = \"/run/mine\"\n")));
        laid.put(DAEMON, &daemon.replace("\"path\"", "\"runtimeArgs\": [\"--debug\"], \"path\""));
        assert_eq!(laid.json(&["apply"])["changes"], json!([]), "they may tune it");
        laid.put("etc/rocworker/config.yaml", config);
        let command = if config.is_empty() { "undo" } else { "apply" };
        let planned = if config.is_empty() { None } else { Some(laid.json(&["plan"])) };
        let said = laid.json(&[command]);
        for said in planned.iter().chain([&said]) {
            let main = reason(said, MAIN);
            let went = "runtimes.amd (with options.Root)";
            assert!(main.contains(went), "{main}");
            let daemon = reason(said, DAEMON);
            assert!(
                daemon.contains("rocworker also removes what was added: runtimes.amd (with runtimeArgs)"),
                "{daemon}"
            );
        }
        assert_eq!(runtime(&laid, "amd"), (Value::Null, Value::Null));
    }
}

#[test]
fn undo_tells_what_goes_also_where_an_apply_has_come_after_it() {
    let (laid, _, daemon) = applied();
    let tuned = daemon.replace("\"path\"", "\"runtimeArgs\": [\"--debug\"], \"path\"");
    laid.put(DAEMON, &tuned.replace("\"cdi\": true", "\"cdi\": null"));
    laid.run(&["apply"]).success();
    assert!(laid.text(DAEMON).contains("--debug") && laid.text(DAEMON).contains("\"cdi\": true"));
    let reason = reason(&laid.json(&["undo"]), DAEMON);
    assert!(
        reason.contains("rocworker also removes what was added: runtimes.amd (with runtimeArgs)"),
        "{reason}"
    );
}
