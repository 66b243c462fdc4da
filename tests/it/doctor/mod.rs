//! `doctor` on laid-out machines: what is wrong is found, named, and comes with what to do.

mod canary;
mod deploy_script;
mod engines;
mod examples;
mod faults;
mod install_exporter;
mod kfd;
mod kubernetes;
mod lease;
mod lxd;
mod real_canary;
mod real_podman;
mod real_worker_doctor;
mod remedies;
mod task_check;
mod toolkit;
mod troubleshooting;
mod whose_machine;
mod wrapper;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};

use faults::{device, faults};
use layout::{Entry, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use serde_json::Value;
use support::captures;
use support::detect::{detect_beneath, scratch};

const ADDRESS: &str = "0000:03:00.0";
const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

fn run(root: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("--root").arg(root).arg("doctor").args(arguments).output().unwrap()
}

/// The exit code and the answer.
fn doctor_beneath(root: &Path) -> (i32, Value) {
    let output = run(root, &["--output", "json"]);
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap(), answer)
}

/// The machine with the CDI spec that `cdi generate` makes of it, if it makes one.
fn laid_out(machine: &Machine) -> tempfile::TempDir {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    put_wrapper(root.path());
    let generate = Command::new(PROGRAM).arg("--root").arg(root.path()).args(["cdi", "generate"]).output();
    generate.unwrap();
    root
}

/// As a package has it; what it does is not asked beneath a directory.
fn put_wrapper(root: &Path) {
    let path = root.join("usr/lib/rocworker/runc-amd-wrapper");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "\u{7f}ELF").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn doctor(machine: &Machine) -> (i32, Value) {
    doctor_beneath(laid_out(machine).path())
}

fn checks(answer: &Value) -> &[Value] {
    answer["checks"].as_array().unwrap()
}

/// The check of that name and subject (an empty one: without).
#[track_caller]
fn find<'a>(answer: &'a Value, name: &str, subject: &str) -> &'a Value {
    let is_it = |check: &&Value| check["name"] == name && check["subject"].as_str().unwrap_or("") == subject;
    let found: Vec<_> = checks(answer).iter().filter(is_it).collect();
    let [only] = found.as_slice() else {
        panic!("{} checks {name:?} {subject:?} in {answer:#}", found.len())
    };
    only
}

#[track_caller]
fn assert_check(check: &Value, status: &str, evidence: &str, remedy: &str) {
    assert_eq!(check["status"], status, "{check:#}");
    assert!(check["evidence"].as_str().unwrap().contains(evidence), "{evidence:?}: {check:#}");
    let said = check["remedy"].as_str().unwrap_or("");
    assert!(said.contains(remedy) && said.is_empty() == remedy.is_empty(), "{remedy:?}: {check:#}");
}

fn card(address: &str, card: u32, render: u32) -> Gpu {
    Gpu::amd(address, 0x7448).card(card).render(render).attribute("product_name", "AMD Radeon PRO W7900")
}

fn node(address: &str, render: u32) -> KfdNode {
    KfdNode::gpu(7000 + render, 0x7448, 110_000).at(address).render(render)
}

fn kfd() -> Kfd {
    Kfd::new(511).node(KfdNode::cpu(16)).node(node(ADDRESS, 128))
}

fn with_groups(machine: Machine) -> Machine {
    machine
        .put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1\n")
        .put("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\n")
}

/// One W7900, with which nothing is wrong.
fn good() -> Machine {
    let module = Module::new("amdgpu").srcversion("5AC1AB1E5AC1AB1E5AC1AB1");
    with_groups(Machine::new().module(module).gpu(card(ADDRESS, 0, 128)).kfd(kfd()))
}

/// Two W7900 on the host, inside an LXD container.
fn lxd() -> Machine {
    let second = "0000:83:00.0";
    with_groups(Machine::new())
        .module(Module::new("amdgpu"))
        .gpu(card(ADDRESS, 0, 128))
        .gpu(card(second, 1, 129))
        .kfd(kfd().node(node(second, 129)))
        .put("/dev/lxd/sock", "")
}

#[test]
fn a_machine_in_order_passes_every_check_with_evidence() {
    let (code, answer) = doctor(&good());
    assert_eq!((code, &answer["failed"], &answer["warnings"]), (0, &0.into(), &0.into()), "{answer:#}");
    assert_eq!(answer["schema_version"], 1);
    for (name, subject, evidence) in [
        ("virtualization", "", "nothing says"),
        ("pci", ADDRESS, "AMD Radeon PRO W7900 (1002:7448)"),
        ("wrapper", "", "/usr/lib/rocworker/runc-amd-wrapper is there"),
        ("driver", "amdgpu", "srcversion 5AC1AB1E5AC1AB1E5AC1AB1"),
        ("driver", ADDRESS, "bound to amdgpu"),
        ("blacklist", "", "keeps amdgpu out"),
        ("kfd", "topology", "knows 1 GPU"),
        ("kfd", "/dev/kfd", "511:0, as sysfs and /proc/devices say"),
        ("nodes", "/dev/kfd", "root:render 0660"),
        ("nodes", "/dev/dri/renderD128", "root:render 0660"),
        ("groups", "render", "gid 992"),
        ("user_namespace", "/dev/dri/renderD128", "render (992) as an additional group"),
        ("configuration", "gpu-device-ids", "every usable one: GPU 0"),
        ("cdi", "/etc/cdi/amd.json", "true of this machine"),
    ] {
        assert_check(find(&answer, name, subject), "ok", evidence, "");
    }
    assert_check(find(&answer, "tools", "rocm-smi"), "skipped", "commands are not run with --root", "");
}

#[test]
fn the_machine_of_the_verification_report_is_in_order_and_its_nvidia_card_is_left_alone() {
    let (code, answer) = doctor(&with_groups(captures::phoenix_beside_rtx4080()));
    assert_eq!((code, &answer["failed"]), (0, &0.into()), "{answer:#}");
    assert_check(find(&answer, "pci", "0000:64:00.0"), "ok", "1002:15bf", "");
    assert_check(find(&answer, "pci", "0000:09:00.0"), "skipped", "never touched", "");
}

#[test]
fn each_fault_is_found_with_its_evidence_and_its_remedy() {
    for (machine, findings) in faults() {
        let (code, answer) = doctor(&machine);
        for (name, subject, status, evidence, remedy) in findings {
            assert_check(find(&answer, name, subject), status, evidence, remedy);
        }
        let failed = checks(&answer).iter().filter(|check| check["status"] == "failed").count();
        let warnings = checks(&answer).iter().filter(|check| check["status"] == "warning").count();
        assert_eq!((&answer["failed"], &answer["warnings"]), (&failed.into(), &warnings.into()));
        assert_eq!(code, if failed > 0 { 3 } else { 0 }, "{answer:#}");
        for check in checks(&answer) {
            let wrong = matches!(check["status"].as_str(), Some("failed" | "warning"));
            assert_eq!(check["remedy"].is_string(), wrong, "{check:#}");
        }
    }
}

#[test]
fn a_gpu_that_detect_calls_unusable_never_leaves_doctor_content() {
    for (machine, _) in faults() {
        let root = laid_out(&machine);
        let unusable = detect_beneath(Path::new(PROGRAM), root.path())["gpus"]
            .as_array()
            .unwrap()
            .iter()
            .any(|gpu| gpu["usable"] == false);
        let (_, answer) = doctor_beneath(root.path());
        let content = answer["failed"] == 0 && answer["warnings"] == 0;
        assert!(!(unusable && content), "{answer:#}");
    }
}

#[test]
fn a_machine_without_a_cdi_spec_is_told_how_to_get_one() {
    let root = scratch();
    good().lay_out(root.path(), Nodes::Recorded).unwrap();
    let (code, answer) = doctor_beneath(root.path());
    assert_eq!(code, 3);
    assert_check(find(&answer, "cdi", "/etc/cdi/amd.json"), "failed", "not there", "rocworker apply");
}

#[test]
fn no_amd_gpu_is_a_warning_and_a_failure_where_rocm_is_wanted() {
    let nvidia = Machine::new().gpu(Gpu::nvidia("0000:01:00.0", 0x2704));
    let rocm = nvidia.clone().put("/etc/rocworker/config.yaml", "compute-runtime: rocm\n");
    for (machine, code, status) in [(nvidia, 0, "warning"), (rocm, 3, "failed")] {
        let (found, answer) = doctor(&machine);
        assert_eq!(found, code, "{answer:#}");
        assert_check(find(&answer, "pci", ""), status, "no AMD GPU", "compute-runtime: none");
        assert_check(find(&answer, "nodes", ""), "skipped", "no AMD GPU", "");
        assert_check(find(&answer, "driver", "amdgpu"), "skipped", "no AMD GPU", "");
    }
}

#[test]
fn where_rocworker_has_nothing_to_do_everything_is_skipped_with_that_reason() {
    for runtime in ["cuda", "none"] {
        let config = format!("compute-runtime: {runtime}\n");
        let (code, answer) = doctor(&good().remove("/dev/kfd").put("/etc/rocworker/config.yaml", config));
        assert_eq!(code, 0);
        assert!(checks(&answer).len() > 5, "{answer:#}");
        for check in checks(&answer) {
            assert_check(check, "skipped", &format!("alone (compute-runtime: {runtime})"), "");
        }
    }
}

#[test]
fn inside_lxd_a_missing_passthrough_is_told_from_a_missing_driver() {
    let (code, answer) = doctor(&lxd().remove("/dev/dri/card1").remove("/dev/dri/renderD129"));
    assert_eq!(code, 0, "one of two is somebody's choice: {answer:#}");
    let evidence = "2 GPUs of amdgpu in sysfs, 1 of them passed in";
    let remedy = "lxc config device add CONTAINER gpu1 gpu pci=0000:83:00.0 gid=992 mode=0660";
    assert_check(find(&answer, "virtualization", "passthrough"), "warning", evidence, remedy);
    assert_check(find(&answer, "nodes", "GPU 1"), "skipped", "not passed into this container", "");
    assert_check(find(&answer, "blacklist", ""), "skipped", "the host loads the driver", "");

    let none = lxd().remove("/dev/dri").put("/etc/group", "render:x:110:\n");
    let (code, answer) = doctor(&none);
    assert_eq!(code, 3);
    let remedy = "lxc config device add CONTAINER gpu0 gpu pci=0000:03:00.0 gid=110 mode=0660 && lxc";
    assert_check(find(&answer, "virtualization", "passthrough"), "failed", "none passed in", remedy);

    let (_, answer) = doctor(&lxd().remove("/dev/kfd"));
    let remedy =
        "lxc config device add CONTAINER kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660";
    assert_check(find(&answer, "nodes", "/dev/kfd"), "failed", "is not there", remedy);

    let no_driver =
        with_groups(Machine::new().gpu(Gpu::amd(ADDRESS, 0x7448).unbound()).put("/dev/lxd/sock", ""));
    let (code, answer) = doctor(&no_driver);
    assert_eq!(code, 3);
    assert_check(find(&answer, "driver", "amdgpu"), "failed", "not loaded", "on the host");
    assert!(checks(&answer).iter().all(|check| check["subject"] != "passthrough"), "{answer:#}");
}

#[test]
fn nodes_that_lxd_passes_in_with_its_defaults_are_out_of_reach_of_a_nested_user_namespace() {
    let render = "/dev/dri/renderD128";
    let set = "lxc config device set CONTAINER DEVICE gid=992 mode=0660";
    for (gid, nodes, namespace, remedy) in [
        // An apply in the container may change what the container maps.
        (0, "only root can open it", "group is root (0)", "rocworker apply"),
        (65534, "does not map", "not mapped", set),
    ] {
        let (code, answer) = doctor(&lxd().put(render, device(226, 128, gid, 0o660)));
        assert_eq!(code, 3);
        assert_check(find(&answer, "nodes", render), "warning", nodes, remedy);
        assert_check(find(&answer, "user_namespace", render), "failed", namespace, remedy);
    }
    let incus = lxd().remove("/dev/lxd").put("/dev/incus/sock", "").remove("/dev/kfd");
    let (_, answer) = doctor(&incus);
    assert_check(find(&answer, "nodes", "/dev/kfd"), "failed", "is not there", "incus config device add");
    let docker = lxd().remove("/dev/lxd").put("/.dockerenv", "").remove("/dev/dri");
    let (_, answer) = doctor(&docker);
    let passthrough = find(&answer, "virtualization", "passthrough");
    let devices = "--device /dev/kfd --device /dev/dri/renderD128 --device /dev/dri/renderD129";
    assert_check(passthrough, "failed", "none passed in", devices);
}

#[test]
fn sixty_four_partitions_are_checked_one_by_one_and_shown_together() {
    let root = laid_out(&with_groups(Machine::instinct(8, 8)));
    let (code, answer) = doctor_beneath(root.path());
    assert_eq!(code, 0, "{answer:#}");
    let render_nodes =
        |check: &&Value| check["name"] == "nodes" && check["subject"].as_str().unwrap().contains("renderD");
    assert_eq!(checks(&answer).iter().filter(render_nodes).count(), 64);
    let table = String::from_utf8(run(root.path(), &[]).stdout).unwrap();
    assert!(table.lines().count() < 60, "{table}");
    assert!(table.contains("/dev/dri/renderD128 and 63 more  root:render 0660"), "{table}");
}

#[test]
fn the_table_says_what_is_wrong_and_below_it_what_to_do() {
    let machine = good().remove("/dev/kfd").put("/dev/dri/renderD128", device(226, 128, 992, 0o666));
    let root = laid_out(&machine);
    let output = run(root.path(), &[]);
    assert_eq!(output.status.code(), Some(3));
    // A command that is printed has the folder too.
    let root = root.path().to_str().unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap().replace(root, "DIR"));
}

#[test]
fn nothing_beneath_the_root_is_written_and_a_broken_config_is_refused_with_its_line() {
    let machine = good().put("/etc/cdi", Entry::Directory).put("/etc/rocworker/config.yaml", "tag: a\n");
    let root = laid_out(&machine);
    let config = root.path().join("etc/rocworker/config.yaml");
    fs::write(&config, "compute-runtime: hip\n").unwrap();
    let stamps = || -> Vec<_> {
        let folders =
            ["", "etc", "etc/cdi", "etc/rocworker", "sys", "proc"].map(|folder| root.path().join(folder));
        let there = folders.iter().filter_map(|folder| fs::metadata(folder).ok());
        there.map(|stat| (stat.ctime(), stat.ctime_nsec())).collect()
    };
    let before = stamps();
    let output = run(root.path(), &[]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("config.yaml:1") && stderr.lines().count() == 1, "{stderr}");
    fs::write(&config, "compute-runtime: auto\n").unwrap();
    assert_eq!(run(root.path(), &[]).status.code(), Some(0));
    assert_eq!(stamps(), before);
}
