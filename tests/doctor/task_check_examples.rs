//! The pipelines of charm/examples and deploy/deploy-test.sh.
//!
//! Neither fly nor Juju is to be had here. A pipeline is held to Concourse's schema as its public documentation and sources
//! have it (concourse/atc/config.go, steps.go, task.go), of which only the part that the examples use is known; the script
//! runs with stand-ins for juju and fly, which know nothing of what the real ones do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde::Deserialize;
use support::real;
use tempfile::TempDir;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pipeline {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: String,
    plan: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    task: String,
    tags: Vec<String>,
    timeout: String,
    config: Task,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    platform: String,
    image_resource: Image,
    #[serde(default)]
    params: BTreeMap<String, String>,
    run: Run,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    r#type: String,
    source: Source,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    repository: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    path: String,
    #[serde(default)]
    args: Vec<String>,
}

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pipeline(name: &str) -> Pipeline {
    let path = top().join("charm/examples").join(name);
    yaml_serde::from_str(&fs::read_to_string(&path).unwrap())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn each_example_is_a_pipeline_as_concourse_has_them_whose_steps_go_to_a_worker_with_gpus() {
    let examples = fs::read_dir(top().join("charm/examples")).unwrap();
    let names = examples.map(|example| example.unwrap().file_name().into_string().unwrap());
    let mut pipelines: Vec<String> = names.filter(|name| name.ends_with(".yml")).collect();
    pipelines.sort();
    assert_eq!(pipelines, ["gpu-check.yml", "rocm-tools.yml"]);
    for name in ["gpu-check.yml", "rocm-tools.yml"] {
        let pipeline = pipeline(name);
        let [job] = pipeline.jobs.as_slice() else { panic!("{name}: {pipeline:?}") };
        assert_eq!(format!("{}.yml", job.name), name, "the comment of the file says how it is triggered");
        for step in &job.plan {
            assert_eq!(step.tags, ["gpu", "compute-runtime=rocm"], "{name}: {step:?}");
            let minutes: u32 = step.timeout.strip_suffix('m').unwrap().parse().unwrap();
            assert!((1..=60).contains(&minutes), "{name}: {step:?}");
            let Task { platform, image_resource, params, run } = &step.config;
            assert_eq!((platform.as_str(), image_resource.r#type.as_str()), ("linux", "registry-image"));
            assert!(!image_resource.source.repository.is_empty());
            assert!(!step.task.is_empty() && !run.path.is_empty() && !run.args.is_empty());
            assert!(params.keys().all(|key| key == "PATH"), "{name}: a policy decides who may ask");
        }
        let first = &job.plan[0].config.run;
        assert_eq!(
            (first.path.as_str(), first.args.as_slice()),
            ("/srv/rocworker/rocworker", &["task-check".to_owned()][..])
        );
    }
}

/// What a stand-in is: it writes down its arguments, and says what a file beside it has for their first words.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>FOLDER/called
for words in "$name-$1" "$name-$1-$2" "$name-$1-$2-$3"; do
    if [ -e "FOLDER/$words" ]; then cat "FOLDER/$words"; fi
    if [ -e "FOLDER/$words.fails" ]; then exit 7; fi
done
exit 0
"#;

/// As elf(5) has it: a program for amd64 of which one part is loaded, and which names no interpreter.
fn static_program() -> Vec<u8> {
    const LOAD: u8 = 1;
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(64 + 56, 0);
    for (offset, byte) in [(16, 2), (18, 62), (20, 1), (32, 64), (52, 64), (54, 56), (56, 1), (64, LOAD)] {
        program[offset] = byte;
    }
    program
}

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// Where everything goes well, and rocworker's charm is not deployed yet.
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { folder };
        for name in ["juju", "fly"] {
            desk.put(name, &STAND_IN.replace("FOLDER", desk.folder.path().to_str().unwrap()));
            fs::set_permissions(desk.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        desk.put("rocworker.charm", "");
        fs::write(desk.path("rocworker"), static_program()).unwrap();
        fs::set_permissions(desk.path("rocworker"), fs::Permissions::from_mode(0o755)).unwrap();
        desk.put(
            "juju-status-worker",
            "worker/0*  active  idle  0  10.0.0.7\nworker/3  active  idle  3  10.0.0.8\n",
        );
        desk.put("juju-status-rocworker", "rocworker/0*  active  idle  Worker ready (GPU: 2x AMD)\n");
        desk.put("juju-show-application.fails", "");
        for (unit, folder) in [("0", "/tmp/tmp.aA0"), ("3", "/tmp/tmp.bB3")] {
            // A terminal ends its lines like this.
            desk.put(&format!("juju-ssh-worker/{unit}-mktemp"), &format!("{folder}\r\n"));
        }
        desk.put("fly---target-ci-status.fails", "");
        desk.put("fly---target-ci-workers", "w1  2  linux  gpu,compute-runtime=rocm  none\n");
        desk.put(
            "fly---target-ci-trigger-job",
            "started\n✓ AMD GPU devices are accessible in container (KFD 1.18)\nsucceeded\n",
        );
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

    fn called(&self) -> String {
        let called = fs::read_to_string(self.path("called")).unwrap_or_default();
        self.without_folders(&called)
    }

    fn without_folders(&self, text: &str) -> String {
        let text = text.replace(self.folder.path().to_str().unwrap(), "DESK");
        text.replace(top().join("deploy").to_str().unwrap(), "DEPLOY")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_by(&format!("{}:/usr/bin:/bin", self.folder.path().display()), arguments)
    }

    fn run_by(&self, path: &str, arguments: &[&str]) -> Output {
        let mut script = Command::new(top().join("deploy/deploy-test.sh"));
        script.args(arguments).env("PATH", path).current_dir(self.folder.path()).output().unwrap()
    }

    fn run_all(&self, more: &[&str]) -> Output {
        let program = self.path("rocworker");
        let all = [
            "--url",
            "https://ci.example",
            "--worker",
            "worker",
            "--target",
            "ci",
            "--charm",
            "rocworker.charm",
        ];
        self.run(&[&["--program", program.to_str().unwrap()], &all[..], more].concat())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_script_explains_each_step_and_a_dry_run_runs_none() {
    let desk = Desk::set();
    let output = desk.run_all(&["--dry-run", "--model", "gpus"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(desk.called(), "");
    insta::assert_snapshot!(desk.without_folders(&text(&output.stdout)));
    let help = desk.run(&["--help"]);
    let said = text(&help.stdout);
    assert!(help.status.success() && said.starts_with("Usage: deploy-test.sh --program FILE"), "{help:?}");
    for option in ["--dry-run", "--model", "--worker", "--target", "--team", "--minutes", "--charm"] {
        assert!(said.contains(option), "{option}");
    }
}

#[test]
fn the_steps_run_in_their_order_and_a_second_run_refreshes_the_charm_and_asks_for_no_login() {
    let desk = Desk::set();
    let output = desk.run_all(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).ends_with("\nTasks on worker can use its AMD GPUs.\n"), "{output:?}");
    insta::assert_snapshot!(desk.called());

    let again = Desk::set();
    for fails in ["juju-show-application.fails", "fly---target-ci-status.fails"] {
        fs::remove_file(again.path(fails)).unwrap();
    }
    let relations = "Integration provider  Requirer        Interface  Type         Message\nworker:juju-info      \
                     rocworker:host  juju-info  subordinate\n";
    again.put("juju-status-rocworker---relations", relations);
    assert!(again.run_all(&[]).status.success());
    let called = again.called();
    assert!(called.contains("juju refresh rocworker --path ./rocworker.charm\n"), "{called}");
    for word in ["deploy", "integrate", "login"] {
        assert!(!called.contains(&format!(" {word} ")), "{word}: {called}");
    }
}

#[test]
fn a_second_run_relates_the_charm_where_the_first_ended_before_it() {
    let others = "Integration provider  Requirer        Interface  Type         Message\nworker-2:juju-info    \
                  rocworker:host  juju-info  subordinate\nworker:juju-info  another:host  juju-info  subordinate\n";
    let desk = Desk::set();
    fs::remove_file(desk.path("juju-show-application.fails")).unwrap();
    desk.put("juju-status-rocworker---relations", others);
    assert!(desk.run_all(&[]).status.success());
    let called = desk.called();
    assert!(called.contains("juju refresh rocworker "), "{called}");
    assert!(called.contains("juju integrate rocworker:host worker:juju-info\n"), "{called}");
}

/// Juju relates an endpoint that is required with one that is provided: `juju-info` is what every application provides.
#[test]
fn the_relation_is_one_that_the_charm_requires() {
    let charm: yaml_serde::Value =
        yaml_serde::from_str(&fs::read_to_string(top().join("charm/charmcraft.yaml")).unwrap()).unwrap();
    let desk = Desk::set();
    assert!(desk.run_all(&[]).status.success());
    let called = desk.called();
    let (_, related) = called.split_once("juju integrate rocworker:").unwrap();
    let (endpoint, other) = related.lines().next().unwrap().split_once(' ').unwrap();
    let required = &charm["requires"][endpoint];
    assert_eq!(required["interface"].as_str().map(|it| format!("worker:{it}")).as_deref(), Some(other));
}

#[test]
fn what_is_no_folder_is_not_taken_for_one() {
    let desk = Desk::set();
    desk.put("juju-ssh-worker/0-mktemp", "/tmp/a;reboot\n");
    let output = desk.run_all(&[]);
    assert!(text(&output.stderr).contains("step 3 failed: nothing in its output is like"), "{output:?}");
    assert!(!desk.called().contains("scp"), "{}", desk.called());
}

#[test]
fn a_step_that_fails_ends_it_with_its_number_and_what_to_do() {
    type Spoil = fn(&Desk);
    let cases: [(&str, Spoil, &str); 9] = [
        (
            "no program",
            |desk| fs::remove_file(desk.path("rocworker")).unwrap(),
            "step 1 failed: there is no program",
        ),
        (
            "no charm",
            |desk| fs::remove_file(desk.path("rocworker.charm")).unwrap(),
            "step 1 failed: there is no ./rocworker",
        ),
        (
            "no worker",
            |desk| desk.put("juju-status-worker", "Model\n"),
            "step 2 failed: nothing in its output",
        ),
        (
            "no way in",
            |desk| desk.put("juju-scp.fails", ""),
            "step 3 failed: juju ended with 7: is worker/0 reached",
        ),
        (
            "no deploy",
            |desk| desk.put("juju-deploy.fails", ""),
            "step 4 failed: juju ended with 7: juju debug-log",
        ),
        (
            "blocked",
            |desk| {
                desk.put("juju-status-rocworker", "rocworker/0*  blocked  idle  lxc config device add …\n")
            },
            "step 5 failed: nothing in its output is like",
        ),
        (
            "no tag",
            |desk| desk.put("fly---target-ci-workers", "w1  2  linux  none\n"),
            "step 6 failed: nothing in its output",
        ),
        (
            "a bad file",
            |desk| desk.put("fly---target-ci-validate-pipeline.fails", ""),
            "step 7 failed: fly ended with 7",
        ),
        (
            "a cross",
            |desk| {
                desk.put(
                    "fly---target-ci-trigger-job",
                    "✗ AMD GPU devices are not accessible in container: …\n",
                )
            },
            "step 8 failed: nothing in its output is like",
        ),
    ];
    for (what, spoil, said) in cases {
        let desk = Desk::set();
        spoil(&desk);
        let output = desk.run_all(&[]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(said), "{what}: {output:?}");
        assert!(!text(&output.stdout).contains("can use its AMD GPUs"), "{what}");
    }
}

#[test]
fn a_program_that_needs_a_loader_is_refused_before_anything_is_called() {
    let desk = Desk::set();
    let bin = env!("CARGO_BIN_EXE_rocworker");
    let arguments = ["--program", bin, "--url", "http://c", "--charm", "rocworker.charm"];
    let output = desk.run(&arguments);
    assert!(text(&output.stderr).contains("is linked dynamically"), "{output:?}");
    desk.put("script", "#!/bin/sh\n");
    fs::set_permissions(desk.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = desk.run(&[&["--program", "script"], &arguments[2..]].concat());
    assert!(text(&output.stderr).contains("step 1 failed: script is no program of Linux"), "{output:?}");
    // Without the tool that tells, nothing goes on as if it had told.
    for tool in ["bash", "dirname"] {
        std::os::unix::fs::symlink(real::program(tool).unwrap(), desk.path(tool)).unwrap();
    }
    let output = desk.run_by(desk.folder.path().to_str().unwrap(), &arguments);
    assert!(text(&output.stderr).contains("step 1 failed: readelf is in no folder of PATH"), "{output:?}");
    assert_eq!(desk.called(), "");
}

/// A task and `juju ssh` have terminals, which end their lines with \r and may have colours.
#[test]
fn what_a_terminal_adds_to_a_line_is_no_part_of_it() {
    let desk = Desk::set();
    desk.put("juju-ssh-worker/0-mktemp", "\u{1b}[0m/tmp/tmp.aA0\u{1b}[K\r\n");
    desk.put(
        "juju-status-rocworker",
        "rocworker/0*  \u{1b}[32mactive\u{1b}[0m  Worker ready (GPU: \u{1b}[1m2x\u{1b}[0m AMD)\n",
    );
    desk.put("fly---target-ci-workers", "w1  2  linux  gpu,compute-\u{1b}[1mruntime\u{1b}[0m=rocm\r\n");
    desk.put(
        "fly---target-ci-trigger-job",
        "started\r\n\u{1b}[32m✓\u{1b}[0m AMD GPU devices are accessible in container (KFD 1.18)\r\nsucceeded\r\n",
    );
    let output = desk.run_all(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(desk.called().contains("worker/0:/tmp/tmp.aA0/rocworker\n"), "{}", desk.called());
}

#[test]
fn wrong_arguments_are_refused_with_two_before_anything_is_called() {
    let desk = Desk::set();
    for (arguments, said) in [
        (&[][..], "--program is missing"),
        (&["--program", "p"], "--url has to be"),
        (&["--program", "p", "--url", "ci.example"], "--url has to be"),
        (&["--program", "p", "--url", "http://c", "--minutes", "0"], "--minutes has to be"),
        (&["--program", "p", "--url", "http://c", "--minutes", "1; id"], "--minutes has to be"),
        (&["--program", "p", "--url", "http://c", "--worker", "w.*"], "--worker has to be"),
        (&["--program", "--dry-run"], "--program needs a value"),
        (&["--url"], "--url needs a value"),
        (&["--force"], "there is no '--force'"),
        (&["deploy"], "there is no 'deploy'"),
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
    let scripts = ["deploy/deploy-test.sh", "deploy/install_rocm_tarball.sh"].map(|name| top().join(name));
    let output = Command::new(shellcheck)
        .args(["--enable=all", "--severity=style"])
        .args(exceptions())
        .args(scripts)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
}

/// Of the optional checks: that a function's failure is handled where it is called, and that braces are always written.
fn exceptions() -> [&'static str; 1] {
    ["--exclude=SC2250,SC2310,SC2311,SC2312"]
}
