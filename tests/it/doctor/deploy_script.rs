//! deploy/deploy-test.sh, with stand-ins for juju, fly and lxc that record their calls and know nothing of what the real
//! ones do. What it asks for LXD's commands is the real rocworker, which asks the stand-in of lxc.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use support::real;
use tempfile::TempDir;

/// What a stand-in is: it writes down its arguments, and says what a file beside it has for their first words.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>FOLDER/called
for words in "$name-$1" "$name-$1-$2" "$name-$1-$2-$3"; do
    if [ -f "FOLDER/$words" ]; then cat "FOLDER/$words"; fi
    if [ -e "FOLDER/$words.fails" ]; then exit 7; fi
done
exit 0
"#;

/// What `lxc query /1.0/resources` answers, as far as rocworker reads it: AMD's card beside NVIDIA's.
const RESOURCES: &str = r#"{"gpu": {"cards": [
    {"driver": "nvidia", "vendor": "NVIDIA Corporation", "vendor_id": "10de", "product_id": "2704",
     "pci_address": "0000:01:00.0", "drm": {"id": 0, "card_name": "card0", "render_name": "renderD128"}},
    {"driver": "amdgpu", "vendor": "Advanced Micro Devices, Inc. [AMD/ATI]", "vendor_id": "1002", "product_id": "744c",
     "pci_address": "0000:03:00.0", "drm": {"id": 1, "card_name": "card1", "render_name": "renderD129"}}]}}"#;

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// Where everything goes well. Neither the worker nor rocworker's charm is deployed yet, and of the worker's two units
    /// the second is no container of this host.
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { folder };
        for name in ["juju", "fly", "lxc"] {
            desk.put(name, &STAND_IN.replace("FOLDER", desk.folder.path().to_str().unwrap()));
            fs::set_permissions(desk.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_rocworker"), desk.path("rocworker")).unwrap();
        desk.put("rocworker.charm", "");
        desk.put(
            "juju-status-worker",
            "worker/0*  active  idle  0  10.0.0.7\nworker/3  active  idle  3  10.0.0.8\n",
        );
        desk.put(
            "juju-status-rocworker",
            "rocworker/0*  active  idle  Worker ready (v7.14.2) (GPU: 2x AMD)\n",
        );
        desk.put("juju-show-application.fails", "");
        for (unit, name) in [("0", "juju-c0-0"), ("3", "juju-c0-3")] {
            // A terminal ends its lines like this.
            desk.put(&format!("juju-ssh-worker/{unit}"), &format!("{name}\r\n"));
        }
        desk.put("lxc-query-/1.0/resources", RESOURCES);
        desk.put("lxc-file-pull-juju-c0-0/etc/group", "root:x:0:\nrender:x:104:\n");
        desk.put("lxc-info-juju-c0-3.fails", "");
        desk.put("fly---target-ci-status.fails", "");
        desk.put("fly---target-ci-workers", "w1  2  linux  gpu,compute-runtime=rocm  none\n");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    fn called(&self) -> String {
        let called = fs::read_to_string(self.path("called")).unwrap_or_default();
        self.without_folders(&called)
    }

    fn without_folders(&self, text: &str) -> String {
        let text = text.replace(self.folder.path().to_str().unwrap(), "DESK");
        text.replace(top().join("deploy").to_str().unwrap(), "DEPLOY")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut script = Command::new(top().join("deploy/deploy-test.sh"));
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        script.env("PATH", path).current_dir(self.folder.path()).args(arguments).output().unwrap()
    }

    fn run_all(&self, more: &[&str]) -> Output {
        let names = ["--worker", "worker", "--web", "web", "--target", "ci", "--charm", "rocworker.charm"];
        self.run(&[&["--url", "https://ci.example"], &names[..], more].concat())
    }

    /// What a first run has left there.
    fn deployed(&self) {
        self.remove("juju-show-application.fails");
        self.remove("fly---target-ci-status.fails");
        self.put("juju-status-worker---relations", "web:tsa  worker:flight  concourse-ci_tsa  regular\n");
        self.put(
            "juju-status-rocworker---relations",
            "Integration provider  Requirer        Interface  Type         Message\nworker:juju-info      \
             rocworker:host  juju-info  subordinate\n",
        );
        self.put("lxc-config-device-list", "eth0\ngpu0\nkfd\n");
    }
}

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn yaml(file: &str) -> yaml_serde::Value {
    yaml_serde::from_str(&fs::read_to_string(top().join(file)).unwrap()).unwrap()
}

#[test]
fn the_script_explains_each_step_and_a_dry_run_runs_none() {
    let desk = Desk::set();
    let output = desk.run_all(&["--dry-run", "--rocm-tools"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(desk.called(), "");
    insta::assert_snapshot!(desk.without_folders(&text(&output.stdout)));
}

#[test]
fn the_worker_its_devices_and_the_charm_come_in_their_order_and_the_task_last() {
    let desk = Desk::set();
    let output = desk.run_all(&["--rocm-tools"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.ends_with("\nTasks on worker can use its AMD GPUs.\n"), "{said}");
    assert!(said.contains("juju-c0-3 is no container of this host"), "{said}");
    insta::assert_snapshot!(desk.called());
    // Juju relates an endpoint that is required with one that is provided: `juju-info` is what every application provides.
    let host = &yaml("charm/charmcraft.yaml")["requires"]["host"]["interface"];
    assert_eq!(host.as_str(), Some("juju-info"));
}

#[test]
fn a_second_run_deploys_adds_and_relates_nothing_again() {
    let desk = Desk::set();
    desk.deployed();
    let output = desk.run_all(&[]);
    assert!(output.status.success(), "{output:?}");
    let called = desk.called();
    assert!(called.contains("juju refresh rocworker --path ./rocworker.charm\n"), "{called}");
    for words in ["juju deploy ", "juju integrate ", " login ", "device add ", "verify-rocm-tools"] {
        assert!(!called.contains(words), "{words}: {called}");
    }
    // One that ended between two steps is gone on with.
    desk.put(
        "juju-status-rocworker---relations",
        "worker-2:juju-info  rocworker:host  juju-info  subordinate\n",
    );
    desk.put("lxc-config-device-list", "kfd-2\ngpu0\n");
    assert!(desk.run_all(&[]).status.success());
    let called = desk.called();
    assert!(called.contains("juju integrate rocworker:host worker:juju-info\n"), "{called}");
    assert!(called.contains("lxc config device add juju-c0-0 kfd unix-char "), "{called}");
    assert!(!called.contains("lxc config device add juju-c0-0 gpu0"), "{called}");
}

#[test]
fn a_step_that_fails_ends_it_with_its_number_and_what_to_do() {
    for (file, content, said) in [
        ("juju-status-worker", "Model\n", "step 2 failed: nothing in its output is like"),
        ("juju-deploy-concourse-ci-machine.fails", "", "step 2 failed: juju ended with 7: juju debug-log"),
        ("juju-ssh-worker/0.fails", "", "step 3 failed: juju ended with 7: is worker/0 reached"),
        ("juju-ssh-worker/0", "a;reboot\n", "step 3 failed: nothing in its output is like"),
        (
            "lxc-query-/1.0/resources",
            "{\"gpu\": {}}",
            "step 3 failed: rocworker ended with 1: the lines with #",
        ),
        (
            "lxc-config-device-add.fails",
            "",
            "step 3 failed: lxc ended with 7: lxc config device show juju-c0-0",
        ),
        ("juju-deploy-./rocworker.charm.fails", "", "step 4 failed: juju ended with 7: juju debug-log"),
        ("juju-status-rocworker", "rocworker/0*  blocked\n", "step 5 failed: nothing in its output is like"),
        ("fly---target-ci-workers", "w1  2  linux  none\n", "step 6 failed: nothing in its output is like"),
        ("fly---target-ci-execute.fails", "", "step 7 failed: timeout ended with 7: the lines with a cross"),
    ] {
        let desk = Desk::set();
        desk.put(file, content);
        let output = desk.run_all(&[]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(said), "{file}: {output:?}");
        assert!(!text(&output.stdout).contains("can use its AMD GPUs"), "{file}");
    }
    let desk = Desk::set();
    let output = desk.run(&["--url", "http://c", "--worker", "worker", "--charm", "rocworker.charm"]);
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.contains("--web names the web"), "{output:?}");
    assert!(!desk.called().contains("juju deploy"), "{}", desk.called());
}

#[test]
fn without_an_option_the_charm_is_the_one_that_charmcraft_packs_where_dist_has_it_pack() {
    let charmcraft = yaml("charm/charmcraft.yaml");
    let platforms = charmcraft["platforms"].as_mapping().unwrap();
    let newest = platforms.keys().filter_map(yaml_serde::Value::as_str).max().unwrap();
    let file = format!("{}_{}.charm", charmcraft["name"].as_str().unwrap(), newest.replace(':', "-"));
    let packed = format!("target/dist/charm/{file}");
    for (document, words) in [
        ("deploy/deploy-test.sh", &format!("\ncharm=$here/../{packed}\n")),
        ("charm/examples/README.md", &packed),
        ("docs/charm.md", &file),
    ] {
        let said = fs::read_to_string(top().join(document)).unwrap();
        assert!(said.contains(words), "{document} does not name {words}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_two_before_anything_is_called() {
    let desk = Desk::set();
    for (arguments, said) in [
        (&[][..], "--url has to be"),
        (&["--url", "ci.example"], "--url has to be"),
        (&["--url", "http://c", "--worker", "w.*"], "--worker and --web have to be"),
        (&["--web", "--dry-run"], "--web needs a value"),
        (&["--url"], "--url needs a value"),
        (&["--force"], "there is no '--force'"),
    ] {
        let output = desk.run(arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(said), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert_eq!(desk.called(), "");
}

#[test]
fn real_shellcheck_finds_nothing_in_the_scripts() {
    if !real::require(&["shellcheck"]) {
        return;
    }
    let shellcheck = real::program("shellcheck").unwrap();
    let scripts = [
        "deploy/deploy-test.sh",
        "deploy/install_rocm_tarball.sh",
        "deploy/install-rocm-exporter.sh",
        "deploy/tensorfusion/test-amd-cluster.sh",
        "deploy/tensorfusion/test-amd-remote-gpu.sh",
        "deploy/tensorfusion/inject-hip.sh",
        "deploy/tensorfusion/tensor-fusion-worker.sh",
        "charm/dispatch",
    ]
    .map(|name| top().join(name));
    let output = Command::new(shellcheck)
        .args(["--enable=all", "--severity=style", "--external-sources", "--check-sourced"])
        // Of the optional checks: that a function's failure is handled where it is called, and braces around each variable.
        .arg("--exclude=SC2250,SC2310,SC2311,SC2312")
        .args(scripts)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
}
