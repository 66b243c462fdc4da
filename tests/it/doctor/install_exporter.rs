//! deploy/install-rocm-exporter.sh, with stand-ins for systemctl, apt-get, rocworker and curl that record their calls.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::doctor::{Nodes, PROGRAM, good, scratch};

/// A stand-in that writes down its arguments, and prints what a file beside it has for its first argument.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>FOLDER/called
if [ -f "FOLDER/$name-$1" ]; then cat "FOLDER/$name-$1"; fi
if [ -e "FOLDER/$name.fails" ] || [ -e "FOLDER/$name-$1.fails" ]; then exit 3; fi
"#;

/// rocworker's apply writes the unit, and systemd starts it.
const ROCWORKER: &str = r#"#!/bin/sh
echo "rocworker $*" >>FOLDER/called
case $1 in
plan) echo "create the unit"; exit 3 ;;
apply)
    if [ ! -e FOLDER/starts-nothing ]; then rm -f FOLDER/systemctl-is-active.fails; fi
    cp FOLDER/own FOLDER/systemctl-cat ;;
esac
"#;

const OWN: &str = "# Written by rocworker: docs/monitoring.md.\n[Service]\nExecStart=/usr/bin/rocworker-exporter --listen 127.0.0.1:9401\n";
const FOREIGN: &str = "[Service]\nExecStart=/usr/local/bin/rocm_smi_exporter --web.listen-address=:9401\n";

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// root's, with rocworker installed and no exporter yet.
    fn set() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["id", "systemctl", "apt-get", "curl", "journalctl", "sleep"] {
            desk.program(name, STAND_IN);
        }
        desk.program("rocworker", ROCWORKER);
        for (file, text) in [
            ("id--u", "0\n"),
            ("own", OWN),
            ("systemctl-is-active.fails", ""),
            ("curl---silent", "200"),
            ("journalctl--u", "rocworker-exporter: cannot listen\n"),
        ] {
            desk.put(file, text);
        }
        desk
    }

    /// Where an exporter runs by this unit.
    fn running(unit: &str) -> Self {
        let desk = Self::set();
        fs::remove_file(desk.path("systemctl-is-active.fails")).unwrap();
        desk.put("systemctl-cat", unit);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path("bin")).unwrap();
        let path = self.path("bin").join(name);
        fs::write(&path, text.replace("FOLDER", self.folder.path().to_str().unwrap())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, answers: &str, arguments: &[&str]) -> Output {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/install-rocm-exporter.sh");
        let mut stdin = tempfile::tempfile().unwrap();
        stdin.write_all(answers.as_bytes()).unwrap();
        stdin.rewind().unwrap();
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        Command::new(script).args(arguments).env("PATH", path).stdin(stdin).output().unwrap()
    }

    fn called(&self) -> String {
        let called = fs::read_to_string(self.path("called")).unwrap_or_default();
        called.replace(self.folder.path().to_str().unwrap(), "DESK")
    }

    fn has_applied(&self) -> bool {
        self.called().contains("rocworker apply ")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_first_installation_shows_the_plan_applies_it_by_consent_and_checks_that_the_exporter_answers() {
    let desk = Desk::set();
    let output = desk.run("y\n", &[]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("create the unit\nApply them? [y/N] "), "{said}");
    assert!(
        said.ends_with(
            "=== Installation Complete ===\nROCm exporter running on port 9401\n\
             Metrics available at: http://127.0.0.1:9401/metrics\n\
             Test with: curl http://127.0.0.1:9401/metrics\n"
        ),
        "{said}"
    );
    let called = desk.called();
    let rocworker: Vec<_> = called.lines().filter(|call| call.starts_with("rocworker ")).collect();
    assert_eq!(rocworker, ["rocworker plan --exit-code --only exporter", "rocworker apply --only exporter"]);
    assert!(!called.contains("apt-get"), "{called}");
}

#[test]
fn a_no_changes_nothing_and_a_question_without_an_answer_fails() {
    for (answers, code) in [("n\n", 0), ("\n", 0), ("nay\n", 0), ("", 1)] {
        for desk in [Desk::set(), Desk::running(OWN)] {
            let output = desk.run(answers, &[]);
            assert_eq!(output.status.code(), Some(code), "{answers:?}: {output:?}");
            if code == 0 {
                assert!(text(&output.stdout).ends_with("Nothing was changed.\n"), "{output:?}");
            } else {
                assert!(text(&output.stderr).starts_with("ERROR: nobody answered: "), "{output:?}");
            }
            assert!(!desk.has_applied(), "{answers:?}");
        }
    }
}

#[test]
fn one_that_runs_is_installed_again_with_a_restart_and_anothers_is_left_alone() {
    let desk = Desk::running(OWN);
    let output = desk.run("y\ny\n", &[]);
    let said = text(&output.stdout);
    assert!(said.contains("ROCm exporter is already running\nReinstall? [y/N] "), "{said}");
    assert!(output.status.success(), "{output:?}");
    assert!(desk.called().contains("systemctl restart rocm-exporter\n"), "{}", desk.called());

    let desk = Desk::running(FOREIGN);
    let output = desk.run("", &["--yes"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && !desk.has_applied(), "{output:?}");
    let (_, line) = said.split_once("write '").unwrap();
    let line = line.split('\'').next().unwrap();
    config::Config::parse(&PathBuf::from("/etc/rocworker/config.yaml"), line).unwrap();
    assert!(
        said.contains("rocm-exporter.service is not rocworker's: ") && line.contains("replace"),
        "{said}"
    );
}

#[test]
fn an_exporter_that_does_not_come_up_ends_with_its_journal() {
    for (file, content) in [("starts-nothing", ""), ("curl.fails", ""), ("curl---silent", "404")] {
        let desk = Desk::set();
        desk.put("curl---silent", "000");
        desk.put(file, content);
        let output = desk.run("", &["--yes"]);
        assert_eq!(output.status.code(), Some(1), "{file}: {output:?}");
        let said = text(&output.stderr);
        assert_eq!(
            said, "ERROR: Failed to start ROCm exporter\nrocworker-exporter: cannot listen\n",
            "{file}"
        );
    }
}

#[test]
fn the_package_comes_by_apt_from_a_file_or_by_its_name() {
    let desk = Desk::set();
    desk.put("rocworker_1_amd64.deb", "");
    let file = desk.path("rocworker_1_amd64.deb");
    assert!(desk.run("", &["--yes", "--package", file.to_str().unwrap()]).status.success());
    let call = format!("apt-get install --yes {}\n", fs::canonicalize(file).unwrap().display());
    assert!(fs::read_to_string(desk.path("called")).unwrap().contains(&call), "{}", desk.called());

    let desk = Desk::set();
    desk.put("apt-get.fails", "");
    fs::remove_file(desk.path("bin/rocworker")).unwrap();
    let output = desk.run("", &["--yes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("name its file with --package"), "{output:?}");
    assert!(desk.called().contains("apt-get install --yes rocworker\n"));
}

#[test]
fn wrong_arguments_and_another_user_than_root_end_with_a_sentence_and_nothing_is_done() {
    let desk = Desk::set();
    desk.put("id--u", "1000\n");
    for (arguments, code, said) in [
        (&["--force"][..], 2, "there is no '--force'"),
        (&["--package"], 2, "--package: there is no file ''"),
        (&["--package", "/none.deb"], 2, "--package: there is no file '/none.deb'"),
        (&["--yes"], 1, "ERROR: This script must be run as root\n"),
    ] {
        let output = desk.run("", arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(said), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert_eq!(desk.called(), "id -u\n");
}

#[test]
fn the_real_rocworker_leaves_docker_and_the_rest_of_the_machine_alone() {
    let root = scratch();
    let machine = good().put("/run/systemd/system/x", "").put("/usr/bin/rocworker", "");
    let machine = machine.put("/usr/bin/dockerd", "").put("/etc/docker/daemon.json", "{}\n");
    machine.put("/usr/bin/rocworker-exporter", "").lay_out(root.path(), Nodes::Recorded).unwrap();
    for name in ["rocworker", "rocworker-exporter", "dockerd"] {
        let program = root.path().join("usr/bin").join(name);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let etc = |path: &str| root.path().join("etc").join(path);
    let rocworker = format!("#!/bin/sh\nexec {PROGRAM} --root {} \"$@\"\n", root.path().display());
    let desk = Desk::set();
    desk.program("rocworker", &rocworker);
    let output = desk.run("", &["--yes"]);
    assert!(etc("systemd/system/rocm-exporter.service").exists(), "{output:?}");
    assert!(text(&output.stdout).contains("Apply them? [y/N] y"), "{output:?}");
    assert_eq!(fs::read_to_string(etc("docker/daemon.json")).unwrap(), "{}\n");
    for other in ["rocworker/wrapper.json", "cdi/amd.json"] {
        assert!(!etc(other).exists(), "{other}: {output:?}");
    }
}
