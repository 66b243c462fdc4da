//! The scripts for remote GPUs, with stand-ins that record their calls and know nothing of what the real programs do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use super::deployed;
use super::script::{Desk, text};

/// As that of test-amd-cluster.sh; `applied` is what the script gives to apply.
const KUBECTL: &str = r#"#!/bin/sh
echo "kubectl $*" >>DESK/called
case " $* " in
    *" get node "*) name=node ;;
    *" get secret "*) name=secret ;;
    *" label node "*) name=label ;;
    *" apply --filename - "*) name=apply; cat >DESK/applied ;;
    *"selected-workload}"*) name=workload ;;
    *"component=worker,tensor-fusion.ai/workload=w7 "*) name=workers ;;
    *" get gpus "*) name=gpus ;;
    *" delete pod "*) name=delete ;;
    *" logs "*) name=logs ;;
    *" get events "*) name=events ;;
    *".status.phase}"*) name=phase ;;
    *) echo "no stand-in for: $*" >&2; exit 9 ;;
esac
if [ -e "DESK/$name.hangs" ]; then exec sleep 60; fi
if [ -e "DESK/$name.fails" ]; then echo "Error from server ($name)" >&2; exit 1; fi
if [ -e "DESK/$name" ]; then cat "DESK/$name"; fi
"#;

/// A cluster where n1 has the GPU and n2 has none, and the pod computes.
fn set() -> Desk {
    let desk = Desk::with("test-amd-remote-gpu.sh", &[("kubectl", KUBECTL)]);
    desk.put("node", "True");
    desk.put("secret", "secret/one");
    desk.put("workload", "w7");
    desk.put("workers", "n3 Running\nn1 Running\n");
    desk.put("phase", "Running");
    desk.put("logs", "True AMD Instinct MI325X\n1024.0\n");
    desk.put("gpus", "n1 AMD Instinct MI325X\nn3 AMD Instinct MI300X\n");
    desk
}

#[test]
fn a_remote_gpu_passes_each_step() {
    let desk = set();
    let output = desk.run(&["--namespace", "lab", "--wait", "4", "--request", "7", "n1", "n2"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.ends_with("All 6 steps passed.\n"), "{said}");
    let called = desk.called();
    let is_bounded = |call: &str| call.starts_with("--request-timeout=7s --namespace lab ");
    assert!(called.split("kubectl ").skip(1).all(is_bounded), "{called}");
    assert!(called.contains(" label node n1 --overwrite tensor-fusion.ai/gpu-worker=true\n"), "{called}");
    assert!(called.ends_with(" delete pod amd-remote-gpu --ignore-not-found --wait=false\n"), "{called}");
    let applied = fs::read_to_string(desk.path("applied")).unwrap();
    let written = fs::read_to_string(deployed("remote-workload.yaml")).unwrap();
    assert_eq!(applied, written.replace("kubernetes.io/hostname: NODE", "kubernetes.io/hostname: n2"));
    assert_ne!(applied, written);
}

/// What of the good cluster is changed, the step that fails, and words of its sentence.
#[test]
fn each_fault_of_a_remote_gpu_ends_the_run_with_a_sentence() {
    let fails = |(file, content, step, sentence): (&str, &str, u32, &str)| {
        let desk = set();
        if file == "phase" {
            desk.put("logs", "");
        }
        desk.put(file, content);
        let output = desk.run(&["--wait", "1", "n1", "n2"]);
        let stderr = text(&output.stderr);
        let begins = format!("test-amd-remote-gpu.sh: step {step} failed: ");
        let last = stderr.lines().rfind(|line| line.starts_with("test-amd-")).unwrap_or_default();
        assert!(last.starts_with(&begins) && last.contains(sentence), "{file} {content}: {stderr}");
        assert_eq!(output.status.code(), Some(1), "{file}: {output:?}");
    };
    let cases = [
        ("node", "False", 1, "the node n1 is not ready"),
        ("secret.fails", "", 1, "the namespace default has no secret hip-worker-key: docs/hip-remote.md"),
        ("label.fails", "", 2, "the node n1 cannot be labelled"),
        ("apply.fails", "", 3, "remote-workload.yaml was refused"),
        ("workload", "", 4, "no worker runs on n1"),
        ("workers", "n11 Running\nn1 Pending\n", 4, "no worker runs on n1"),
        ("phase", "Pending", 5, "the pod is Pending and has not computed"),
        ("phase", "Failed", 5, "the pod failed: "),
        ("logs", "False\n", 5, "the pod is Running and has not computed"),
        ("logs", "1024.0\n", 6, "PyTorch sees no GPU"),
        (
            "gpus",
            "n1 AMD Instinct MI300X\n",
            6,
            "PyTorch names 'AMD Instinct MI325X', and n1 has: n1 AMD Instinct MI300X",
        ),
        ("gpus", "n11 AMD Instinct MI325X\n", 6, "and n1 has: none"),
    ];
    // Most of a case is waiting.
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || fails(case));
        }
    });
}

#[test]
fn wrong_arguments_for_a_remote_gpu_are_refused_before_anything_is_called() {
    let desk = set();
    for (arguments, said) in [
        (&["n1"][..], "name the node that has the GPU, and one that has none"),
        (&["n1", "n1"], "the pod must run on another node than the worker"),
        (&["n1", "n 2"], "'n 2' is no name of a node"),
        (&["--namespace", "", "n1", "n2"], "'' is no name of a node"),
        (&["--force", "n1", "n2"], "there is no '--force'"),
    ] {
        let output = desk.run(arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(said), "{arguments:?}: {output:?}");
    }
    assert_eq!(desk.called(), "");
}

/// Runs a script whose absolute folders are beneath `top`.
fn beneath(
    top: &Path,
    script: &str,
    folders: &[&str],
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Output {
    let mut code = fs::read_to_string(deployed(script)).unwrap();
    for folder in folders {
        code = code.replace(folder, &format!("{}{folder}", top.display()));
    }
    let file = top.join(script);
    fs::write(&file, code).unwrap();
    let path = format!("{}:/usr/bin:/bin", top.display());
    let mut shell = Command::new("sh");
    shell.arg(file).args(arguments).env_clear().env("PATH", path).envs(variables.iter().copied());
    shell.output().unwrap()
}

#[test]
fn a_pod_gets_the_library_of_the_images_release_and_a_local_one_gets_none() {
    for (variables, has_conf, preload) in [
        (&[][..], true, Some("libamdhip64.so.7")),
        (&[("ROCM", "6")], true, Some("libamdhip64.so.6")),
        (&[("ROCM", "6")], false, Some("libamdhip64.so.6")),
        (&[("RUN_INSIDE_GPU_NODE", "true")], true, None),
        (&[("RUN_INSIDE_GPU_NODE", "true"), ("ROCM", "4")], true, None),
    ] {
        let desk = tempfile::tempdir().unwrap();
        let top = desk.path();
        fs::create_dir_all(top.join("build/lib")).unwrap();
        fs::create_dir(top.join("tensor-fusion")).unwrap();
        let conf = if has_conf { "tensor-fusion-conf" } else { "tensor-fusion" };
        fs::create_dir_all(top.join(conf)).unwrap();
        for library in ["libamdhip64.so.6", "libamdhip64.so.7", "libhip_client_stub.so"] {
            fs::write(top.join("build/lib").join(library), library).unwrap();
        }
        let output = beneath(top, "inject-hip.sh", &["/build/lib", "/tensor-fusion"], variables, &[]);
        assert!(output.status.success(), "{output:?}");
        let written = |name: &str| fs::read_to_string(top.join(conf).join(name)).unwrap();
        let folder = top.join("tensor-fusion");
        match preload {
            Some(library) => {
                assert_eq!(written("ld.so.preload"), format!("{}/{library}\n", folder.display()));
                assert_eq!(written("zz_tensor-fusion.conf"), format!("{}\n", folder.display()));
                assert_eq!(fs::read_to_string(folder.join(library)).unwrap(), library);
                assert!(folder.join("libhip_client_stub.so").exists());
            }
            None => {
                assert_eq!(
                    (written("ld.so.preload").trim(), written("zz_tensor-fusion.conf").trim()),
                    ("", "")
                );
                assert!(!folder.join("libamdhip64.so.6").exists());
            }
        }
    }
}

#[test]
fn a_release_that_the_image_lacks_is_refused() {
    let desk = tempfile::tempdir().unwrap();
    fs::create_dir_all(desk.path().join("build/lib")).unwrap();
    let output =
        beneath(desk.path(), "inject-hip.sh", &["/build/lib", "/tensor-fusion"], &[("ROCM", "8")], &[]);
    let stderr = text(&output.stderr);
    assert_eq!(stderr, "inject-hip.sh: ROCM=8: this image has no libamdhip64.so.8; give 5, 6 or 7\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_worker_starts_with_its_key_and_tensorfusions_arguments() {
    let desk = tempfile::tempdir().unwrap();
    let top = desk.path();
    let worker = top.join("rocworker-hip-worker");
    fs::write(&worker, "#!/bin/sh\necho \"$@\" \"preload=$LD_PRELOAD\"\n").unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    let run = || {
        let variables = [("LD_PRELOAD", "")];
        beneath(top, "tensor-fusion-worker.sh", &["/etc/rocworker/hip"], &variables, &["-p", "8000"])
    };
    let refused = run();
    let stderr = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(1) && stderr.contains("make the secret hip-worker-key"),
        "{refused:?}"
    );
    let folder = top.join("etc/rocworker/hip");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("worker.key"), "").unwrap();
    let expected = format!("--listen 0.0.0.0 --key {}/worker.key -p 8000 preload=\n", folder.display());
    assert_eq!(text(&run().stdout), expected);
}
