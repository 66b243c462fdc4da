//! What doctor says of a driver, beneath a Root: nothing is asked of kmod and apt there.

use std::process::Command;

use layout::{Entry, Machine, Module};
use serde_json::Value;

use crate::packages::driver::machines::{Come, KERNEL, SOURCE, beneath, debian, dkms, done, ubuntu};

/// The checks of dkms: subject, status, evidence, remedy.
fn checks(machine: &Machine) -> Vec<[String; 4]> {
    checks_of("dkms", machine)
}

fn checks_of(name: &str, machine: &Machine) -> Vec<[String; 4]> {
    let (folder, _) = beneath(machine);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output =
        command.arg("--root").arg(folder.path()).args(["--output", "json", "doctor"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = answer["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name);
    let told = |check: &Value| {
        ["subject", "status", "evidence", "remedy"].map(|key| check[key].as_str().unwrap_or("").to_owned())
    };
    checks.map(told).collect()
}

#[track_caller]
fn assert_said(machine: &Machine, subject: &str, status: &str, evidence: &str, remedy: &str) {
    let checks = checks(machine);
    let found =
        checks.iter().find(|check| check[0] == subject).unwrap_or_else(|| panic!("{subject:?}: {checks:#?}"));
    assert_eq!(found[1], status, "{found:?}");
    assert!(found[2].contains(evidence), "{evidence:?}: {found:?}");
    assert!(found[3].contains(remedy) && found[3].is_empty() == remedy.is_empty(), "{remedy:?}: {found:?}");
}

fn with_config(machine: Machine) -> Machine {
    machine.put("/etc/rocworker/config.yaml", "driver: {install: amdgpu-dkms, version: 30.30.3}\n")
}

#[test]
fn a_kernels_own_driver_is_nothing_to_look_at() {
    let [check] = checks(&ubuntu()).try_into().unwrap();
    assert_eq!(check[..3], ["", "skipped", "dkms has no amdgpu, and needs none for the driver above"]);
    assert_said(&done().put("/dev/lxd", Entry::Directory), "", "skipped", "the host's", "");
    assert_said(&Machine::new(), "", "skipped", "no AMD GPU", "");
}

#[test]
fn a_build_is_told_from_an_installation() {
    let loaded = |machine: Machine| machine.module(Module::new("amdgpu"));
    let built = || dkms(ubuntu(), SOURCE, KERNEL, Come::Built);
    let install = "dkms install amdgpu/6.16.13-2327507.24.04 -k 6.8.0-45-generic";
    assert_said(&done(), "amdgpu", "ok", "built and installed for the running kernel 6.8.0-45-generic", "");
    assert_said(&done(), "headers", "ok", "are there", "");
    assert_said(&built(), "amdgpu", "failed", "and not installed", install);
    assert_said(&loaded(built()), "amdgpu", "warning", "and not installed", install);
    let added = dkms(ubuntu(), SOURCE, KERNEL, Come::Added);
    assert_said(
        &added,
        "amdgpu",
        "failed",
        "dkms has amdgpu 6.16.13-2327507.24.04, and has not built it",
        install,
    );
    assert_said(
        &added,
        "headers",
        "warning",
        "dkms cannot build for it",
        "apt-get install linux-headers-6.8.0-45-generic",
    );
}

#[test]
fn what_keeps_a_driver_from_being_installed_is_a_failed_check() {
    let subject = "driver.install";
    assert_said(&with_config(done()), subject, "ok", "the driver 30.30.3 is installed", "");
    assert_said(&with_config(debian()), subject, "warning", "nothing speaks against it", "rocworker apply");
    let blacklisted = with_config(debian()).put("/etc/modprobe.d/no.conf", "blacklist amdgpu\n");
    assert_said(&blacklisted, subject, "failed", "/etc/modprobe.d/no.conf:1", "remove the line");
}

#[test]
fn signatures_pairs_and_files_of_nobodys_are_looked_at_where_there_is_such_a_driver() {
    let signed = done().put("/sys/module/module/parameters/sig_enforce", "Y\n");
    assert_said(
        &signed,
        "signature",
        "warning",
        "is not enrolled: its modules are refused",
        "mokutil --import",
    );
    assert_said(&done(), "pairing", "ok", "30.30.3 came out with ROCm 7.2.3", "");
    let other = done().put("/opt/rocm/.info/version", "7.1.1\n");
    assert_said(&other, "pairing", "warning", "unvalidated: ", "take a pair that came out together");
    let stray = format!("/lib/modules/{KERNEL}/updates/amdgpu.ko");
    assert_said(
        &ubuntu().put(&stray, "x"),
        &stray,
        "warning",
        "belongs to no package",
        "find out where it came from",
    );
}

/// Whether the findings about the driver that are no good news are one: name and remedy.
#[track_caller]
fn one_finding(machine: &Machine, name: &str, remedy: &str) {
    let all = ["driver", "blacklist", "dkms"]
        .map(|name| checks_of(name, machine).into_iter().map(move |it| (name, it)));
    let failed: Vec<_> = all.into_iter().flatten().filter(|(_, check)| check[1] == "failed").collect();
    let [(found, check)] = failed.as_slice() else { panic!("{failed:#?}") };
    assert!(*found == name && check[3].contains(remedy), "{failed:#?}");
}

#[test]
fn whose_driver_runs_and_why_none_does_is_one_story() {
    let versioned = || ubuntu().module(Module::new("amdgpu").version("6.16.13"));
    let [module, _] = checks_of("driver", &versioned()).try_into().unwrap();
    assert_eq!(module[2], "loaded: AMD's build, version 6.16.13");
    let [dkms] = checks(&versioned()).try_into().unwrap();
    assert!(!dkms[2].contains("kernel's own"), "{dkms:?}");
    let modules = format!("/lib/modules/{KERNEL}/modules.dep");
    let added = dkms_of(Come::Added).put(&modules, "");
    one_finding(&added, "dkms", "dkms install");
    one_finding(&done().put(&modules, ""), "driver", "modprobe amdgpu");
    one_finding(
        &ubuntu().put("/etc/modprobe.d/no.conf", "blacklist amdgpu\n"),
        "blacklist",
        "remove the line",
    );
    one_finding(&ubuntu().put(&modules, ""), "driver", "linux-modules-extra");
    one_finding(&ubuntu(), "driver", "modprobe amdgpu");
}

fn dkms_of(come: Come) -> Machine {
    dkms(ubuntu(), SOURCE, KERNEL, come)
}
