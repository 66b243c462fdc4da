//! What doctor says of a driver, beneath a Root: nothing is asked of kmod and apt there.

use std::process::Command;

use layout::{Entry, Machine, Module};
use serde_json::Value;

use crate::driver::machines::{Come, KERNEL, SOURCE, beneath, debian, dkms, done, ubuntu};

/// The checks of the component: subject, status, evidence, remedy.
fn checks(machine: &Machine) -> Vec<[String; 4]> {
    let (folder, _) = beneath(machine);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output =
        command.arg("--root").arg(folder.path()).args(["--output", "json", "doctor"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = answer["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "dkms");
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
    assert_eq!(check[..3], ["", "skipped", "dkms has no amdgpu: the driver is the kernel's own"]);
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
