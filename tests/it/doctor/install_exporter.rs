//! deploy/install-rocm-exporter.sh, with stand-ins for systemctl, apt-get, rocworker and curl that record their calls.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::doctor::{Nodes, PROGRAM, good, scratch};

/// A stand-in that writes down its arguments, and prints what a file beside it has for their first words.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>FOLDER/called
for words in "$name" "$name-$1"; do
    if [ -f "FOLDER/$words" ] && [ "$words" != "$name" ]; then cat "FOLDER/$words"; fi
    if [ -e "FOLDER/$words.fails" ]; then exit 3; fi
done
exit 0
"#;

/// rocworker's apply writes the unit, and systemd starts it.
const ROCWORKER: &str = r#"#!/bin/sh
echo "rocworker $*" >>FOLDER/called
case " $* " in
*" plan --save "*) for file; do :; done; cp FOLDER/plan "$file" ;;
*" plan "*) echo "create the unit"; exit 3 ;;
*" apply "*)
    rm -f FOLDER/systemctl-cat.fails
    if [ ! -e FOLDER/starts-nothing ]; then rm -f FOLDER/systemctl-is-active.fails; fi
    cp FOLDER/own FOLDER/systemctl-cat ;;
esac
"#;

const OWN: &str = "# Written by rocworker: docs/monitoring.md.\n[Service]\nExecStart=/usr/bin/rocworker-exporter --listen 127.0.0.1:9401\n";
const FOREIGN: &str = "[Service]\nExecStart=/usr/local/bin/rocm_smi_exporter --web.listen-address=:9401\n";

const CONFIG: &str = "tag: linux";

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// root's, with rocworker installed and no exporter yet.
    fn set() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        let programs =
            ["id", "systemctl", "apt-get", "rocworker-exporter", "curl", "journalctl", "hostname", "sleep"];
        programs.iter().for_each(|name| desk.program(name, STAND_IN));
        desk.program("rocworker", ROCWORKER);
        desk.put("id--u", "0\n");
        desk.put("own", OWN);
        desk.put("plan", "{}");
        desk.put("config.yaml", CONFIG);
        desk.put("systemctl-is-active.fails", "");
        desk.put("systemctl-cat.fails", "");
        desk.put("curl---silent", "rocm_gpu_info{gpu=\"0\"} 1\n");
        desk.put("journalctl--u", "rocworker-exporter: cannot listen\n");
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

    /// An exporter that is there and runs.
    fn runs(&self, unit: &str) {
        fs::remove_file(self.path("systemctl-is-active.fails")).unwrap();
        fs::remove_file(self.path("systemctl-cat.fails")).unwrap();
        self.put("systemctl-cat", unit);
    }

    fn run(&self, answers: &str, arguments: &[&str]) -> Output {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/install-rocm-exporter.sh");
        let answers = tempfile_with(answers);
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let config = format!("--config={}", self.path("config.yaml").display());
        let mut command = Command::new(script);
        command.arg(config).args(arguments).env("PATH", path);
        command.stdin(Stdio::from(answers)).output().unwrap()
    }

    fn called(&self) -> Vec<String> {
        let called = fs::read_to_string(self.path("called")).unwrap_or_default();
        called.replace(self.folder.path().to_str().unwrap(), "DESK").lines().map(str::to_owned).collect()
    }

    fn has_called(&self, words: &str) -> bool {
        self.called().iter().any(|call| call == words)
    }

    fn has_applied(&self) -> bool {
        self.called().iter().any(|call| call.contains(" apply "))
    }

    fn config(&self) -> String {
        fs::read_to_string(self.path("config.yaml")).unwrap()
    }
}

fn tempfile_with(text: &str) -> fs::File {
    use std::io::{Seek as _, Write as _};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn whoever_is_not_root_is_told_so_and_nothing_is_done() {
    let desk = Desk::set();
    desk.put("id--u", "1000\n");
    let output = desk.run("", &["--yes"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "ERROR: This script must be run as root\n");
    assert_eq!(desk.called(), ["id -u"]);
}

#[test]
fn a_first_installation_shows_the_plan_applies_it_by_consent_and_checks_that_the_exporter_answers() {
    let desk = Desk::set();
    let output = desk.run("y\n", &[]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("create the unit\nApply them? [y/N] "), "{said}");
    for line in [
        "No ROCm is needed: the exporter reads the kernel's files.",
        "=== Installation Complete ===",
        "ROCm exporter running on port 9401",
        "Metrics available at: http://127.0.0.1:9401/metrics",
        "Test with: curl http://127.0.0.1:9401/metrics",
    ] {
        assert!(said.lines().any(|it| it == line), "{line}: {said}");
    }
    let rocworker: Vec<_> = desk.called().into_iter().filter(|call| call.starts_with("rocworker ")).collect();
    let expected = ["plan --exit-code --only exporter", "apply --only exporter"]
        .map(|it| format!("rocworker --config DESK/config.yaml {it}"));
    assert_eq!(rocworker, expected);
    assert!(desk.has_called("curl --silent --fail --max-time 5 http://127.0.0.1:9401/metrics"));
    assert!(!desk.called().iter().any(|call| call.starts_with("apt-get")), "{:?}", desk.called());
    assert_eq!(desk.config(), CONFIG, "nothing foreign is there to replace");
}

#[test]
fn a_no_changes_nothing_and_a_question_without_an_answer_fails() {
    for (answers, code) in [("n\n", 0), ("\n", 0), ("nay\n", 0), ("", 1)] {
        let desk = Desk::set();
        let output = desk.run(answers, &[]);
        assert_eq!(output.status.code(), Some(code), "{answers:?}: {output:?}");
        if code == 0 {
            assert!(text(&output.stdout).ends_with("Nothing was applied.\n"), "{output:?}");
        } else {
            assert!(text(&output.stderr).starts_with("ERROR: nobody answered: "), "{output:?}");
        }
        assert!(!desk.has_applied(), "{answers:?}");
    }
}

#[test]
fn the_whole_configuration_is_applied_as_it_was_shown_by_an_option_alone() {
    for (answers, arguments) in [("", &["--apply-all"][..]), ("", &["--yes", "--apply-all"])] {
        let desk = Desk::set();
        let output = desk.run(answers, arguments);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains("create the unit\nApply them? [y/N] y\n"), "{output:?}");
        let rocworker: Vec<_> =
            desk.called().into_iter().filter(|call| call.starts_with("rocworker ")).collect();
        let [save, plan, apply] = &rocworker[..] else { panic!("{rocworker:?}") };
        let saved = save.strip_prefix("rocworker --config DESK/config.yaml plan --save ").unwrap();
        assert_eq!(plan, "rocworker --config DESK/config.yaml plan --exit-code");
        assert_eq!(*apply, format!("rocworker --config DESK/config.yaml apply {saved}"), "what was shown");
        assert!(!PathBuf::from(saved).parent().unwrap().exists(), "the saved plan is gone");
    }
}

#[test]
fn the_help_names_each_option() {
    let desk = Desk::set();
    for option in ["-h", "--help"] {
        let output = desk.run("", &[option]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        for name in ["--package FILE", "--config FILE", "--yes", "--apply-all", "-h, --help"] {
            assert!(said.contains(&format!("\n  {name} ")), "{name}: {said}");
        }
    }
    assert_eq!(desk.called(), [""; 0]);
}

#[test]
fn one_that_runs_is_installed_again_only_if_the_answer_is_yes() {
    let desk = Desk::set();
    desk.runs(OWN);
    let output = desk.run("n\n", &[]);
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("ROCm exporter is already running\nReinstall? [y/N] "),
        "{said}"
    );
    assert!(!desk.called().iter().any(|call| call.starts_with("rocworker") || call.contains("restart")));
    let output = desk.run("y\ny\n", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(desk.has_called("systemctl restart rocm-exporter"), "{:?}", desk.called());
}

#[test]
fn anothers_exporter_is_named_and_replaced_by_consent_alone() {
    let desk = Desk::set();
    desk.runs(FOREIGN);
    let output = desk.run("n\n", &[]);
    let said = text(&output.stdout);
    assert!(
        said.contains("It runs: /usr/local/bin/rocm_smi_exporter --web.listen-address=:9401\n"),
        "{said}"
    );
    assert!(output.status.success() && desk.config() == CONFIG, "{output:?}");

    assert!(desk.run("", &["--yes"]).status.success());
    let line = "exporter: {unit: true, existing: replace}\n";
    let config = desk.config();
    assert_eq!(config, format!("{CONFIG}\n{line}"));
    config::Config::parse(&desk.path("config.yaml"), &config).unwrap();

    // What a person has written about the exporter is theirs.
    desk.put("systemctl-cat", FOREIGN);
    desk.put("config.yaml", "exporter:\n  unit: true\n");
    let output = desk.run("", &["--yes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("add 'existing: replace' to it"), "{output:?}");
    assert_eq!(desk.config(), "exporter:\n  unit: true\n");
}

#[test]
fn an_exporter_that_does_not_come_up_ends_with_its_journal() {
    type Spoil = fn(&Desk);
    let cases: [(&str, Spoil); 3] = [
        ("does not start", |desk| desk.put("starts-nothing", "")),
        ("does not answer", |desk| desk.put("curl---silent.fails", "")),
        ("answers something else", |desk| desk.put("curl---silent", "node_cpu_seconds_total 1\n")),
    ];
    for (what, spoil) in cases {
        let desk = Desk::set();
        spoil(&desk);
        let output = desk.run("", &["--yes"]);
        assert_eq!(output.status.code(), Some(1), "{what}: {output:?}");
        let said = text(&output.stderr);
        assert_eq!(
            said, "ERROR: Failed to start ROCm exporter\nrocworker-exporter: cannot listen\n",
            "{what}"
        );
        assert!(desk.has_called("journalctl -u rocm-exporter --no-pager -n 20"), "{what}");
        assert!(!text(&output.stdout).contains("Complete"), "{what}");
    }
}

#[test]
fn the_package_comes_by_apt_from_a_file_or_by_its_name() {
    let desk = Desk::set();
    desk.put("rocworker_1_amd64.deb", "");
    let file = desk.path("rocworker_1_amd64.deb");
    let in_one_word = format!("--package={}", file.display());
    for arguments in [&["--yes", "--package", file.to_str().unwrap()][..], &["--yes", &in_one_word]] {
        fs::remove_file(desk.path("called")).ok();
        assert!(desk.run("", arguments).status.success());
        assert!(desk.has_called("apt-get install --yes DESK/rocworker_1_amd64.deb"), "{:?}", desk.called());
        desk.put("systemctl-is-active.fails", "");
        desk.put("systemctl-cat.fails", "");
    }

    let desk = Desk::set();
    desk.put("apt-get.fails", "");
    fs::remove_file(desk.path("bin/rocworker")).unwrap();
    let output = desk.run("", &["--yes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("name its file with --package"), "{output:?}");
    assert!(desk.has_called("apt-get install --yes rocworker"));

    let desk = Desk::set();
    fs::remove_file(desk.path("bin/rocworker-exporter")).unwrap();
    let output = desk.run("", &["--yes"]);
    assert!(text(&output.stderr).contains("this rocworker brings no rocworker-exporter"), "{output:?}");
}

#[test]
fn wrong_arguments_end_with_a_sentence() {
    let desk = Desk::set();
    for (arguments, said) in [
        (&["--force"][..], "there is no '--force'"),
        (&["--package"], "--package needs a value"),
        (&["--package="], "--package needs a value"),
        (&["--package", "/none.deb"], "--package: there is no file /none.deb"),
        (&["--config", "/none/confg.yaml"], "--config: there is no file /none/confg.yaml"),
    ] {
        let output = desk.run("", arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(said), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert_eq!(desk.called(), [""; 0]);
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
    let output = desk.run("", &["--yes", "--apply-all"]);
    assert!(etc("cdi/amd.json").exists(), "{output:?}");
}
