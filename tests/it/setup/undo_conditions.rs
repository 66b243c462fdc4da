//! What is reverted is reverted by how the machine is then, and not by how it was when it came.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use layout::Nodes;
use root::Root;
use serde_json::{Value, json};

use crate::setup::in_process::by;
use crate::setup::laid::Laid;
use crate::setup::late_driver::machine;
use crate::setup::program::Program;

const RECEIPT: &str = "var/lib/rocworker/receipt.json";
const DAEMON: &str = "etc/docker/daemon.json";

/// With containerd and docker of these releases, and their units.
pub(crate) fn with(containerd: &str, docker: &str) -> Laid {
    let laid = Laid::demo("");
    let package = |name: &str, version: &str| {
        format!("Package: {name}\nStatus: install ok installed\nVersion: {version}-1\n\n")
    };
    laid.put("var/lib/dpkg/status", &(package("containerd", containerd) + &package("docker.io", docker)));
    for (program, unit) in [("usr/bin/containerd", "containerd"), ("usr/sbin/dockerd", "docker")] {
        laid.put(program, "");
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!("[Service]\nExecStart=/{program}\n");
        laid.put(&format!("usr/lib/systemd/system/{unit}.service"), &text);
    }
    laid.put("etc/containerd/config.toml", "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n");
    laid.put(DAEMON, "{}\n");
    laid
}

/// What an answer says is done with a unit.
pub(crate) fn effects(answer: &Value, unit: &str) -> Vec<String> {
    let all = answer["effects"].as_array().unwrap().iter().filter(|effect| effect["unit"] == unit);
    all.map(|effect| effect["effect"].as_str().unwrap().to_owned()).collect()
}

/// The entry of a path in the receipt.
fn entry(laid: &Laid, path: &str) -> Value {
    let receipt: Value = serde_json::from_str(&laid.text(RECEIPT)).unwrap();
    let entries = receipt["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["path"] == path).unwrap().clone()
}

#[test]
fn a_default_in_a_file_that_came_after_apply_keeps_our_runtime() {
    for off in ["", "containerd: {configure: never}\n", "compute-runtime: none\n"] {
        let laid = with("2.1.9", "28.5.2");
        laid.run(&["apply"]).success();
        let theirs = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'amd'\n";
        laid.put("etc/containerd/conf.d/50-default.toml", theirs);
        laid.put("etc/rocworker/config.yaml", off);
        let command = if off.is_empty() { "undo" } else { "apply" };
        let (code, said) = laid.fails(&[command]);
        assert!(
            code <= 1
                && said.contains(
                    "50-default.toml says default_runtime_name = \"amd\", which would name nothing"
                ),
            "{command}: {said}"
        );
        assert!(laid.path("etc/containerd/conf.d/rocworker.toml").exists());
        fs::remove_file(laid.path("etc/containerd/conf.d/50-default.toml")).unwrap();
        laid.run(&[command]).success();
        assert!(!laid.path("etc/containerd/conf.d/rocworker.toml").exists());
    }
}

#[test]
fn whether_containers_outlive_docker_is_read_when_things_are_taken_back() {
    let laid = with("2.1.9", "26.1.5");
    laid.put(DAEMON, "{\"live-restore\": true}\n");
    laid.run(&["apply"]).success();
    laid.put(
        DAEMON,
        &laid.text(DAEMON).replace("true}", "false}").replace("restore\": true", "restore\": false"),
    );
    assert!(laid.text(DAEMON).contains("\"live-restore\": false"));
    let undone = laid.json(&["undo"]);
    assert_eq!(effects(&undone, "docker.service"), ["reload", "next-start"], "{undone:#}");
}

#[test]
fn what_came_by_several_applies_leaves_with_all_that_it_takes() {
    let laid = with("2.1.9", "26.1.5");
    laid.run(&["apply"]).success();
    laid.put("etc/rocworker/config.yaml", "docker: {runtime: gpu}\n");
    // The runtime alone is new.
    let applied = laid.json(&["apply"]);
    let docker = applied["changes"].as_array().unwrap().iter().find(|it| it["path"] == format!("/{DAEMON}"));
    assert_eq!(docker.unwrap()["effects"], json!([{"effect": "reload", "unit": "docker.service"}]));
    let undone = laid.json(&["undo"]);
    assert_eq!(effects(&undone, "docker.service"), ["reload", "next-start"], "{undone:#}");
}

#[test]
fn devices_that_came_after_the_rules_are_in_the_receipt_once_something_applies() {
    const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";
    let laid = Laid::out(&machine([0xa1, 0xa2], false), "permissions: open\n");
    laid.run(&["apply"]).success();
    assert_eq!(entry(&laid, RULES)["effects"][0]["devices"], json!(["/sys/class/kfd/kfd"]));
    for top in ["sys", "dev", "proc", "capture.json"] {
        let path = laid.path(top);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).ok();
        }
    }
    machine([0xa1, 0xa2], true).lay_out(laid.top(), Nodes::Recorded).unwrap();
    laid.run(&["apply"]).success();
    let devices = json!(["/sys/class/kfd/kfd", "/sys/class/drm/renderD128", "/sys/class/drm/renderD129"]);
    assert_eq!(entry(&laid, RULES)["effects"][0]["devices"], devices);
    let times = laid.times();
    laid.run(&["apply"]).success();
    assert_eq!(laid.times(), times, "a second one writes nothing");
    assert_eq!(laid.json(&["undo"])["effects"][0]["devices"], devices);
}

#[test]
fn settings_that_can_name_our_runtime_are_in_the_receipt_once_something_applies() {
    let laid = with("2.1.9", "26.1.5");
    laid.run(&["apply"]).success();
    laid.put("etc/containerd/conf.d/10-theirs.toml", "version = 3\n");
    let plan = laid.json(&["plan"]);
    assert_eq!(plan["changes"], json!([]));
    laid.run(&["status"]).success();
    laid.run(&["apply"]).success();
    let uses = entry(&laid, "/etc/containerd/conf.d/rocworker.toml")["uses"].to_string();
    assert!(uses.contains("10-theirs.toml"), "{uses}");
    let times = laid.times();
    laid.run(&["apply"]).success();
    assert_eq!(laid.times(), times, "a second one writes nothing");
}

#[test]
fn a_default_on_dockers_command_line_keeps_our_runtime() {
    const UNIT: &str = "etc/systemd/system/docker.service";
    for (start, options) in [
        ("/usr/sbin/dockerd --default-runtime amd", ""),
        ("/usr/sbin/dockerd $DOCKER_OPTS", "DOCKER_OPTS=\"--default-runtime=amd\"\n"),
    ] {
        let laid = with("2.1.9", "28.5.2");
        laid.put(UNIT, &format!("[Service]\nEnvironmentFile=-/etc/default/docker\nExecStart={start}\n"));
        laid.put("etc/default/docker", options);
        laid.run(&["apply"]).success();
        let (code, said) = laid.fails(&["undo"]);
        let why = "docker.service starts dockerd with --default-runtime amd, which would name nothing";
        assert!(code == 1 && said.contains(why), "{said}");
        assert!(laid.text(DAEMON).contains("amd"));
        laid.put(UNIT, "[Service]\nExecStart=/usr/sbin/dockerd\n");
        laid.run(&["undo"]).success();
        assert_eq!(laid.text(DAEMON), "{}\n");
    }
}

#[test]
fn a_restart_of_containerd_is_one_of_docker_where_docker_ends_with_it() {
    const UNIT: &str = "usr/lib/systemd/system/docker.service";
    const DROP_IN: &str = "etc/systemd/system/docker.service.d/order.conf";
    let start = "[Service]\nExecStart=/usr/sbin/dockerd\n";
    for (unit, drop_in, live_restore, expected) in [
        // Debian's.
        (
            "[Unit]\nAfter=containerd.service\nWants=containerd.service\nRequires=docker.socket\n",
            "",
            false,
            "restart",
        ),
        // docker-ce's of 20.10.
        ("[Unit]\nRequires=docker.socket containerd.service\n", "", false, "next-start"),
        ("[Unit]\nBindsTo=containerd.service\n", "", false, "next-start"),
        ("", "[Unit]\nPartOf=containerd.service\n", true, "next-start"),
    ] {
        let laid = with("2.1.9", "28.5.2");
        laid.put(UNIT, &format!("{unit}{start}"));
        laid.put(DROP_IN, drop_in);
        laid.put(DAEMON, &format!("{{\"live-restore\": {live_restore}}}\n"));
        let applied = laid.json(&["apply"]);
        assert_eq!(effects(&applied, "containerd.service"), [expected], "{unit}: {applied:#}");
        let told =
            applied["notes"].to_string().contains("docker.service ends whenever containerd.service does");
        assert_eq!(told, expected == "next-start");
        let all = applied["effects"].as_array().unwrap();
        let of_containerd = all.iter().find(|effect| effect["unit"] == "containerd.service").unwrap();
        assert_eq!(of_containerd["ask"]["yes"] == "true", live_restore, "{of_containerd}");
        laid.run(&["apply"]).success();
        assert_eq!(effects(&laid.json(&["undo"]), "containerd.service"), [expected], "{unit}");
    }
    // By `restart: now` that was somebody's decision.
    let laid = with("2.1.9", "28.5.2");
    laid.put(UNIT, &format!("[Unit]\nRequires=containerd.service\n{start}"));
    laid.put("etc/rocworker/config.yaml", "restart: now\n");
    assert_eq!(effects(&laid.json(&["apply"]), "containerd.service"), ["restart"]);
}

#[test]
fn our_keys_of_an_older_containerd_are_not_taken_for_its_owners() {
    const MAIN: &str = "etc/containerd/config.toml";
    const DROP_IN: &str = "etc/containerd/conf.d/rocworker.toml";
    for (cri, config) in [
        ("sandbox_image = 'pause'", ""),
        ("enable_cdi = false", ""),
        ("sandbox_image = 'pause'", "cdi: {path: /srv/cdi/amd.json}\n"),
    ] {
        let theirs = format!("version = 2\n[plugins.'io.containerd.grpc.v1.cri']\n{cri}\n");
        let old = with("1.7.24", "28.5.2");
        let new = with("2.1.9", "28.5.2");
        for laid in [&old, &new] {
            laid.put(MAIN, &theirs);
            laid.put("etc/rocworker/config.yaml", config);
            laid.run(&["apply"]).success();
        }
        assert!(old.text(MAIN).contains("runtimes.amd"));
        old.put("var/lib/dpkg/status", &new.text("var/lib/dpkg/status"));
        // As on a machine that never had the older one, and at once.
        let upgraded = old.json(&["apply"]);
        assert_eq!(effects(&upgraded, "containerd.service"), ["restart"]);
        assert_eq!(old.text(DROP_IN), new.text(DROP_IN), "{cri}");
        assert_eq!(old.text(MAIN), new.text(MAIN), "{cri}");
        let again = old.json(&["apply"]);
        assert_eq!(again["changes"], json!([]), "{cri}: {again:#}");
        old.run(&["undo"]).success();
        assert_eq!(old.text(MAIN), theirs);
    }
}

#[test]
fn the_wrapper_stays_while_a_container_runs_by_it() {
    const WRAPPER: &str = "usr/local/lib/rocworker/runc-amd-wrapper";
    const PACKAGED: &str = "usr/lib/rocworker/runc-amd-wrapper";
    const TASKS: &str = "io.containerd.runtime.v2.task";
    let program = Program::new();
    for (how, bundle, file, text) in [
        (
            "undo",
            format!("run/containerd/{TASKS}/k8s.io/c1"),
            "options.json",
            format!("{{\"binary_name\":\"/{WRAPPER}\"}}"),
        ),
        ("off", format!("run/docker/containerd/daemon/{TASKS}/moby/c1"), "runtime", format!("/{WRAPPER}")),
        ("package", format!("run/containerd/{TASKS}/default/c1"), "runtime", format!("/{WRAPPER}")),
    ] {
        let laid = with("2.1.9", "28.5.2");
        fs::rename(laid.path(PACKAGED), laid.path("aside")).unwrap();
        assert_eq!(program.run(&laid, &["apply"]).0, 0);
        // Another container of the same namespace has another runtime.
        laid.put(&format!("{bundle}0/{file}"), "/usr/sbin/runc");
        laid.put(&format!("{bundle}/{file}"), &text);
        match how {
            "off" => laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n"),
            "package" => fs::rename(laid.path("aside"), laid.path(PACKAGED)).unwrap(),
            _ => {}
        }
        let command = if how == "undo" { "undo" } else { "apply" };
        let (code, said) = program.run(&laid, &[command]);
        assert_eq!(code, i32::from(how == "undo"), "{how}: {said}");
        let why = "container c1 runs by it and could not be stopped without it";
        assert!(said.contains(why), "{how}: {said}");
        assert!(laid.path(WRAPPER).exists(), "{how}");
        // The rest is gone, or goes by the package's.
        let daemon = laid.text(DAEMON);
        assert!(!daemon.contains(WRAPPER), "{how}: {daemon}");

        fs::remove_dir_all(laid.path(&bundle)).unwrap();
        let (code, said) = program.run(&laid, &[command]);
        assert!(code == 0 && !laid.path(WRAPPER).exists(), "{how}: {said}");
    }
}

#[test]
fn the_wrapper_stays_while_it_cannot_be_seen_whether_a_container_runs_by_it() {
    const WRAPPER: &str = "usr/local/lib/rocworker/runc-amd-wrapper";
    const BUNDLE: &str = "run/containerd/io.containerd.runtime.v2.task/k8s.io/c1";
    let program = Program::new();
    let laid = with("2.1.9", "28.5.2");
    fs::rename(laid.path("usr/lib/rocworker/runc-amd-wrapper"), laid.path("aside")).unwrap();
    assert_eq!(program.run(&laid, &["apply"]).0, 0);
    // No file that can be read: a folder is in its place.
    laid.put(&format!("{BUNDLE}/options.json/file"), "");
    let (code, said) = program.run(&laid, &["undo"]);
    let why = "whether a container runs by it is not known: ";
    assert!(code == 1 && said.contains(why) && said.contains("options.json"), "{said}");
    assert!(laid.path(WRAPPER).exists());

    fs::remove_dir_all(laid.path(BUNDLE)).unwrap();
    let (code, said) = program.run(&laid, &["undo"]);
    assert!(code == 0 && !laid.path(WRAPPER).exists(), "{said}");
}

#[test]
fn a_removal_names_a_file_that_came_to_name_the_wrapper_while_it_reverted() {
    const OWNERS: &str = "etc/containers/containers.conf";
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let outcome = by(&Root::open(laid.top()).unwrap(), &Program::new().path(), |run| {
        run.remove(&mut |_| laid.put(OWNERS, "runtimes = '/usr/lib/rocworker/runc-amd-wrapper'\n"))
    });
    let outcome = outcome.unwrap();
    let left: Vec<_> = outcome.left.iter().map(|it| it.path.display().to_string()).collect();
    assert!(!outcome.changes.is_empty() && left == [format!("/{OWNERS}")], "{outcome:#?}");
    assert!(outcome.falls_short());
}
