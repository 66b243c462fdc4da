//! The component `engines` beneath a Root: what stands in the files, before an apply, after it, and once somebody has
//! changed it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use layout::Machine;
use serde_json::Value;

use super::{PROGRAM, assert_check, doctor_beneath, find, laid_out};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_docker() -> tempfile::TempDir {
    let root = laid_out(&Machine::demo());
    put(root.path(), "usr/sbin/dockerd", "stands for dockerd\n");
    let package = "Package: docker.io\nStatus: install ok installed\nVersion: 26.1.5+dfsg1-9+b9\n";
    put(root.path(), "var/lib/dpkg/status", package);
    root
}

fn apply(root: &Path) {
    let output = Command::new(PROGRAM).arg("--root").arg(root).arg("apply").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn of_docker(answer: &Value) -> Vec<&Value> {
    let checks = answer["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["name"] == "engines" && check["subject"] == "docker").collect()
}

#[test]
fn docker_is_as_meant_after_an_apply_and_until_somebody_changes_it() {
    let root = with_docker();
    put(root.path(), "usr/lib/rocworker/runc-amd-wrapper", support::laid::WRAPPER);
    let (_, answer) = doctor_beneath(root.path());
    let [before, running] = of_docker(&answer)[..] else { panic!("{answer:#}") };
    assert_check(before, "failed", "/etc/docker/daemon.json is not as it was meant", "rocworker apply");
    assert_check(running, "skipped", "commands are not run with --root", "");

    apply(root.path());
    let (_, answer) = doctor_beneath(root.path());
    assert_check(of_docker(&answer)[0], "ok", "/etc/docker/daemon.json says what was meant", "");

    put(root.path(), "etc/docker/daemon.json", "{\"features\": {\"cdi\": false}}\n");
    let (code, answer) = doctor_beneath(root.path());
    let [off, changed, ..] = of_docker(&answer)[..] else { panic!("{answer:#}") };
    assert_check(off, "failed", "features.cdi is false", "put that right");
    assert_check(changed, "failed", "/etc/docker/daemon.json is not as it was meant", "rocworker apply");
    assert_eq!(code, 3);
}

#[test]
fn a_docker_that_has_not_been_started_since_it_was_told_of_cdi_is_told() {
    let root = with_docker();
    put(root.path(), "usr/lib/rocworker/runc-amd-wrapper", support::laid::WRAPPER);
    apply(root.path());
    // Beneath a Root nothing is pending.
    let receipt = root.path().join("var/lib/rocworker/receipt.json");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&receipt).unwrap()).unwrap();
    text["pending"] =
        serde_json::json!([{ "effect": "next-start", "unit": "docker.service", "since": 1_790_000_000_u64 }]);
    fs::write(&receipt, text.to_string()).unwrap();
    let (_, answer) = doctor_beneath(root.path());
    let [as_meant, owed, ..] = of_docker(&answer)[..] else { panic!("{answer:#}") };
    assert_check(as_meant, "ok", "says what was meant", "");
    assert_check(
        owed,
        "warning",
        "still runs with its old configuration",
        "systemctl restart docker.service when",
    );
}

fn command(root: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(PROGRAM).arg("--root").arg(root).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn crio_is_as_meant_after_an_apply_and_undo_takes_its_drop_in_out_unless_a_default_names_it() {
    let root = laid_out(&Machine::demo());
    put(root.path(), "usr/bin/crio", "stands for crio\n");
    put(root.path(), "usr/libexec/crio/runc", "stands for CRI-O's own\n");
    put(root.path(), "usr/lib/rocworker/runc-amd-wrapper", support::laid::WRAPPER);
    let package = "Package: cri-o\nStatus: install ok installed\nVersion: 1.34.2-1.1\n";
    put(root.path(), "var/lib/dpkg/status", package);
    let own = "[crio.runtime]\ndefault_runtime = \"crun\"\n\
        [crio.runtime.runtimes.runc]\nruntime_path = \"/usr/libexec/crio/runc\"\n";
    put(root.path(), "etc/crio/crio.conf.d/10-crio.conf", own);
    let drop_in = root.path().join("etc/crio/crio.conf.d/99-rocworker.conf");

    apply(root.path());
    let written = fs::read(&drop_in).unwrap();
    let policy = fs::read_to_string(root.path().join("etc/rocworker/wrapper.json")).unwrap();
    assert!(policy.contains("\"/usr/libexec/crio/runc\""), "no runc is on PATH: {policy}");
    assert_eq!(command(root.path(), &["plan", "--exit-code"]).0, 0, "a second apply does nothing");
    let (_, answer) = doctor_beneath(root.path());
    let of_crio = |answer: &Value| -> Vec<Value> {
        let checks = answer["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["name"] == "engines" && check["subject"] == "crio").cloned().collect()
    };
    let [as_meant, running] = &of_crio(&answer)[..] else { panic!("{answer:#}") };
    assert_check(as_meant, "ok", "99-rocworker.conf says what was meant", "");
    assert_check(running, "skipped", "commands are not run with --root", "");
    fs::write(&drop_in, "[crio.runtime]\n").unwrap();
    let (_, answer) = doctor_beneath(root.path());
    assert_check(
        &of_crio(&answer)[0],
        "failed",
        "99-rocworker.conf is not as it was meant",
        "rocworker apply",
    );
    apply(root.path());
    assert_eq!(fs::read(&drop_in).unwrap(), written);

    put(root.path(), "etc/crio/crio.conf.d/10-crio.conf", &own.replace("\"crun\"", "\"amd\""));
    let (code, said) = command(root.path(), &["undo"]);
    assert!(code != 0 && said.contains("10-crio.conf"), "{said}");
    assert_eq!(fs::read(&drop_in).unwrap(), written, "without it CRI-O would not start");
    put(root.path(), "etc/crio/crio.conf.d/10-crio.conf", own);
    let (code, said) = command(root.path(), &["undo"]);
    assert!(code == 0 && !drop_in.exists(), "{said}");
    assert_eq!(fs::read_to_string(root.path().join("etc/crio/crio.conf.d/10-crio.conf")).unwrap(), own);
}

#[test]
fn an_engine_that_is_not_there_or_left_alone_is_skipped_with_the_reason() {
    let root = laid_out(&Machine::demo());
    let (_, answer) = doctor_beneath(root.path());
    assert_check(find(&answer, "engines", "docker"), "skipped", "not installed", "");
    assert_check(find(&answer, "engines", "concourse"), "skipped", "no worker", "");
    assert_check(find(&answer, "engines", "containerd"), "skipped", "not installed", "");
    assert_check(find(&answer, "engines", "crio"), "skipped", "not installed", "");
    let never = "docker: {configure: never}\ncontainerd: {configure: never}\nconcourse: {configure: never}\n\
        crio: {configure: never}\n";
    fs::create_dir_all(root.path().join("etc/rocworker")).unwrap();
    fs::write(root.path().join("etc/rocworker/config.yaml"), never).unwrap();
    let (_, answer) = doctor_beneath(root.path());
    for engine in ["docker", "containerd", "concourse", "crio"] {
        let why = format!("leaves it alone ({engine}.configure: never)");
        assert_check(find(&answer, "engines", engine), "skipped", &why, "");
    }
}

#[test]
fn podman_is_an_engine_that_reads_specs_where_containers_conf_lets_it() {
    let root = laid_out(&Machine::demo());
    let of_podman = || {
        let (_, answer) = doctor_beneath(root.path());
        let checks = answer["checks"].as_array().unwrap().iter();
        let mut of_podman = checks.filter(|it| it["name"] == "engines" && it["subject"] == "podman");
        let check = of_podman.next().unwrap().clone();
        assert!(of_podman.next().is_none(), "{answer:#}");
        check
    };
    assert_check(&of_podman(), "skipped", "not installed", "");
    put(root.path(), "usr/bin/podman", "stands for podman\n");
    assert_check(&of_podman(), "ok", "podman reads CDI specs from /etc/cdi: podman run --device", "");

    let conf = "etc/containers/containers.conf";
    put(root.path(), conf, "[engine]\ncdi_spec_dirs = [\"/srv/cdi\"]\n");
    let remedy = "add /etc/cdi to cdi_spec_dirs in /etc/containers/containers.conf, or remove that key";
    assert_check(&of_podman(), "failed", "podman reads no CDI specs from /etc/cdi", remedy);
    put(root.path(), conf, "[engine]\ncdi_spec_dirs = [\"/srv/cdi\", {append=true}]\n");
    assert_check(&of_podman(), "ok", "podman reads CDI specs from /etc/cdi", "");
    put(root.path(), conf, "[engine\n");
    assert_check(&of_podman(), "skipped", "/etc/containers/containers.conf", "");

    fs::remove_file(root.path().join(conf)).unwrap();
    put(root.path(), "etc/rocworker/config.yaml", "cdi: {path: /srv/cdi/amd.json}\n");
    assert_check(&of_podman(), "failed", "podman reads no CDI specs from /srv/cdi", "{append=true}");
}
