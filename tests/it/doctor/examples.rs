//! The pipelines and task files of charm/examples.
//!
//! fly is not to be had here. A file is held to Concourse's schema as its public documentation and sources have it
//! (concourse/atc/config.go, steps.go, task.go), of which only the part that the examples use is known. A task's script
//! runs as it stands: in a container of runc with busybox, and with stand-ins for ROCm's tools.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::task_check::{CARD, KFD, Machines, NULL, NVIDIA, Node, OPENS, OPENS_TOO, PARTITION, RENDER};

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

const GPU_TASK: &str = "verify-gpu-amd.yml";
const ROCM_TASK: &str = "verify-rocm-tools.yml";

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn example<T: DeserializeOwned>(name: &str) -> T {
    let path = top().join("charm/examples").join(name);
    yaml_serde::from_str(&fs::read_to_string(&path).unwrap())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn each_example_is_as_concourse_has_them_and_a_pipelines_steps_go_to_a_worker_with_gpus() {
    let examples = fs::read_dir(top().join("charm/examples")).unwrap();
    let names = examples.map(|example| example.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names.filter(|name| name.ends_with(".yml")).collect();
    files.sort();
    assert_eq!(files, ["gpu-check.yml", "rocm-tools.yml", GPU_TASK, ROCM_TASK]);
    for name in ["gpu-check.yml", "rocm-tools.yml"] {
        let pipeline: Pipeline = example(name);
        let [job] = pipeline.jobs.as_slice() else { panic!("{name}: {pipeline:?}") };
        assert_eq!(format!("{}.yml", job.name), name, "the comment of the file says how it is triggered");
        for step in &job.plan {
            assert_eq!(step.tags, ["gpu", "compute-runtime=rocm"], "{name}: {step:?}");
            let minutes: u32 = step.timeout.strip_suffix('m').unwrap().parse().unwrap();
            assert!((1..=60).contains(&minutes), "{name}: {step:?}");
            assert!(!step.task.is_empty());
            is_sound(name, &step.config);
        }
        let first = &job.plan[0].config.run;
        assert_eq!(
            (first.path.as_str(), first.args.as_slice()),
            ("/srv/rocworker/rocworker", &["task-check".to_owned()][..])
        );
    }
}

#[test]
fn each_task_file_is_one_as_fly_executes_it() {
    for (name, image) in [(GPU_TASK, "busybox"), (ROCM_TASK, "rocm/dev-ubuntu-24.04")] {
        let task: Task = example(name);
        is_sound(name, &task);
        assert_eq!(task.image_resource.source.repository, image, "{name}");
        let path = top().join("charm/examples").join(name);
        let text = fs::read_to_string(path).unwrap();
        // What the comment says how to run it, and no variable that Concourse would look for.
        assert!(text.contains(&format!("fly -t TARGET execute -c {name} --tag=")), "{name}");
        assert!(!text.contains("(("), "{name}");
    }
}

/// /srv/rocworker is in no task by itself.
#[test]
fn whatever_runs_the_program_in_srv_names_the_folders_that_bring_it_there() {
    let condition = "set `wrapper: {folders: [/srv]}`";
    for name in ["gpu-check.yml", "rocm-tools.yml"] {
        let text = fs::read_to_string(top().join("charm/examples").join(name)).unwrap();
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        assert!(head.join(" ").contains(condition), "{name}");
    }
    let document = fs::read_to_string(top().join("charm/examples/README.md")).unwrap();
    let (before, _) = document.split_once("    install -D -m 755 ").unwrap();
    let words: Vec<&str> = before.split_whitespace().collect();
    assert!(words.join(" ").contains(condition), "{before}");
}

fn is_sound(name: &str, task: &Task) {
    let Task { platform, image_resource, params, run } = task;
    assert_eq!((platform.as_str(), image_resource.r#type.as_str()), ("linux", "registry-image"));
    assert!(!image_resource.source.repository.is_empty());
    assert!(!run.path.is_empty() && !run.args.is_empty(), "{name}");
    assert!(params.keys().all(|key| key == "PATH"), "{name}: a policy decides who may ask");
}

/// The exit code and the output of verify-gpu-amd.yml's script in a container with these nodes.
#[track_caller]
fn verified(machines: &Machines, nodes: &[Node]) -> (i32, String) {
    let Run { path, args } = example::<Task>(GPU_TASK).run;
    let argv: Vec<&str> = std::iter::once(path.as_str()).chain(args.iter().map(String::as_str)).collect();
    machines.with_busybox(&argv, nodes)
}

const NO_CARD: &str = "· Found no AMD GPU card devices: computing does not need them\n";
const DRI: [&str; 2] = ["✗ Found no AMD GPU render devices: ", NO_CARD];
const REFUSED: &str = "✗ AMD GPU devices are not accessible in container: ";

/// No driver of this kernel answers to a GPU's numbers: what opens are the stand-ins of task_check.rs.
#[test]
fn real_the_gpu_task_in_a_container_of_runc_prints_the_nodes_and_opens_them() {
    let Some(machines) = Machines::set() else { return };
    let (code, said) = verified(&machines, &[OPENS, OPENS_TOO, NULL, NVIDIA]);
    assert_eq!(
        (code, said.as_str()),
        (
            0,
            "✓ Found AMD GPU render devices:\n  crw-rw---- /dev/dri/renderD140\n✓ Found AMD GPU card devices:\n  \
             crw-rw---- /dev/dri/card9\n✓ AMD GPU devices are accessible in container\n"
        )
    );
    // rocworker leaves a card node out that is not real.
    let (code, said) = verified(&machines, &[OPENS, NULL]);
    assert_eq!(
        (code, said),
        (
            0,
            format!(
                "✓ Found AMD GPU render devices:\n  crw-rw---- /dev/dri/renderD140\n{NO_CARD}✓ AMD GPU devices are \
                 accessible in container\n"
            )
        )
    );

    let (code, said) = verified(&machines, &[]);
    assert!(code == 1 && DRI.iter().all(|line| said.contains(line)), "{said}");
    assert!(said.ends_with(&format!("{REFUSED}there is none to open\n")), "{said}");
    let (code, said) = verified(&machines, &[OPENS, OPENS_TOO]);
    assert!(code == 1 && said.ends_with(&format!("{REFUSED}/dev/kfd (is not there)\n")), "{said}");
    let (code, said) = verified(&machines, &[NVIDIA, KFD]);
    assert!(
        code == 1 && DRI.iter().all(|line| said.contains(line)) && !said.contains("renderD128"),
        "{said}"
    );
    // A further partition's device has no vendor. This kernel has no driver for these numbers.
    let (code, said) = verified(&machines, &[RENDER, PARTITION, CARD, KFD]);
    assert_eq!(code, 1, "{said}");
    for line in [
        "  crw-rw---- /dev/dri/renderD129",
        "  crw-rw---- /dev/dri/renderD131",
        "  crw-rw---- /dev/dri/card1",
    ] {
        assert!(said.lines().any(|other| other == line), "{line}: {said}");
    }
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(REFUSED), "{said}");
    for path in ["/dev/dri/renderD129", "/dev/dri/renderD131", "/dev/kfd"] {
        assert!(last.contains(&format!("{path} (No such device or address)")), "{path}: {last}");
    }
    let (code, said) = verified(&machines, &[OPENS, OPENS_TOO, Node { allowed: false, ..KFD }]);
    assert!(code == 1 && said.contains(&format!("{REFUSED}/dev/kfd (Operation not permitted)")), "{said}");
}

/// With stand-ins for ROCm's tools, which print what a test tells them to.
#[test]
fn the_rocm_task_says_which_tools_there_are_and_whether_rocm_sees_a_gpu() {
    let Run { path, args } = example::<Task>(ROCM_TASK).run;
    let agent =
        "printf 'Agent 1\\n  Device Type:             CPU\\nAgent 2\\n  Device Type:             GPU\\n'";
    let available = ["✓ rocm-smi is available in the image", "✓ rocminfo is available in the image"];
    for (smi, info, code, lines) in [
        (
            Some("echo GPU[0]"),
            Some(agent),
            0,
            &[available[0], "GPU[0]", available[1], "✓ ROCm can use 1 AMD GPU(s) in container"][..],
        ),
        (None, Some(agent), 1, &["✗ rocm-smi is in no folder of PATH", available[1]]),
        (Some("exit 2"), Some(agent), 1, &[available[0], "✗ rocm-smi ended with 2"]),
        (
            Some("true"),
            Some("echo no KFD; exit 1"),
            1,
            &["✗ rocminfo ended with 1: no KFD", "✗ ROCm can use no AMD GPU"],
        ),
        (
            Some("true"),
            Some("echo '  Device Type:  CPU'"),
            1,
            &[available[1], "✗ ROCm can use no AMD GPU in container"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in [("rocm-smi", smi), ("rocminfo", info)] {
            let Some(script) = script else { continue };
            let tool = folder.path().join(name);
            fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let folders = format!("{}:/usr/bin:/bin", folder.path().display());
        let output = Command::new(&path).args(&args).env("PATH", folders).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}{}", String::from_utf8_lossy(&output.stderr));
        for line in lines {
            assert!(said.lines().any(|other| other.starts_with(line)), "{line}: {said}");
        }
    }
}
