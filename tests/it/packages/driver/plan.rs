//! What the program says of a driver that the configuration asks for, beneath a Root.

use std::path::Path;
use std::process::Command;

use layout::{Entry, Machine};
use serde_json::Value;

use crate::packages::driver::machines::{beneath, done, ubuntu};

const WANTED: &str = "driver:\n  install: amdgpu-dkms\n  version: 30.30.3\n";
const CONFIG: &str = "/etc/rocworker/config.yaml";

fn run(root: &Path, arguments: &[&str]) -> (i32, Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output = command.arg("--root").arg(root).args(["--output", "json"]).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), answer, said)
}

/// The texts of the notes about this, and whether something is a problem.
fn notes(answer: &Value, about: &str) -> Vec<(String, bool)> {
    let notes = answer["notes"].as_array().unwrap().iter().filter(|note| note["about"] == about);
    notes.map(|note| (note["text"].as_str().unwrap().to_owned(), note["problem"] == true)).collect()
}

fn plan(machine: &Machine, config: &str) -> (i32, Value, String) {
    let (folder, _) = beneath(&machine.clone().put(CONFIG, config));
    run(folder.path(), &["plan"])
}

#[test]
fn a_driver_is_kept_unless_it_is_asked_for() {
    let (_, answer, _) = plan(&ubuntu(), "");
    assert!(notes(&answer, "driver").is_empty(), "{answer:#}");
    assert!(!answer.to_string().contains("package:"), "{answer:#}");
}

#[test]
fn beneath_a_root_the_packages_are_named_and_left() {
    let (_, answer, _) = plan(&ubuntu(), WANTED);
    let skipped = notes(&answer, "package:amdgpu-dkms");
    assert_eq!(skipped.len(), 1, "{answer:#}");
    assert!(!notes(&answer, "package:linux-headers-6.8.0-45-generic").is_empty(), "{answer:#}");
    // Without its key, which is downloaded, apt would refuse the repository.
    let source = notes(&answer, "/etc/apt/sources.list.d/rocworker-amdgpu.sources");
    let [(source, false)] = source.as_slice() else { panic!("{answer:#}") };
    assert_eq!(source, "nothing is fetched or installed beneath another root than /");
    let said = notes(&answer, "driver");
    let [(pairing, false)] = said.as_slice() else { panic!("{answer:#}") };
    assert!(pairing.contains("30.30.3 came out with ROCm 7.2.3"), "{pairing}");
}

#[test]
fn the_pairing_with_the_installed_rocm_is_said() {
    for (rocm, expected) in [("7.2.3-81\n", "supported: "), ("7.2.4\n", "unvalidated: ")] {
        let (_, answer, _) = plan(&done().put("/opt/rocm/.info/version", rocm), WANTED);
        let said = notes(&answer, "driver");
        assert!(said.iter().any(|(text, problem)| text.starts_with(expected) && !problem), "{said:?}");
    }
    let unknown = WANTED.replace("30.30.3", "30.30.9");
    let (_, answer, _) = plan(&ubuntu(), &unknown);
    let said = notes(&answer, "driver");
    assert!(said.iter().any(|(text, _)| text.starts_with("unknown: ")), "{said:?}");
}

#[test]
fn what_cannot_end_well_is_a_problem_and_no_package_of_it_is_named() {
    let machine = ubuntu().put("/etc/modprobe.d/no.conf", "blacklist amdgpu\n");
    let (_, answer, _) = plan(&machine, WANTED);
    let said = notes(&answer, "driver");
    let [(text, true)] = said.as_slice() else { panic!("{answer:#}") };
    assert!(text.starts_with(
        "the driver 30.30.3 is not installed: \"blacklist amdgpu\" in /etc/modprobe.d/no.conf:1"
    ));
    assert!(!answer.to_string().contains("package:"), "{answer:#}");
}

#[test]
fn a_container_and_a_machine_without_a_gpu_are_brought_no_driver() {
    let (_, answer, _) = plan(&ubuntu().put("/dev/lxd", Entry::Directory), WANTED);
    let said = notes(&answer, "driver");
    assert!(
        said.iter().any(|(text, problem)| text.contains("this is a container (lxd)") && *problem),
        "{said:?}"
    );
    let none = Machine::new().put("/sys/bus/pci/devices", Entry::Directory);
    let (_, answer, _) = plan(&none, WANTED);
    assert!(notes(&answer, "driver").is_empty(), "{answer:#}");
}

#[test]
fn a_configuration_of_half_a_driver_is_refused_with_its_line() {
    for (config, said) in [
        ("driver:\n  install: amdgpu-dkms\n", ":2: driver.install is amdgpu-dkms without a driver.version"),
        ("driver:\n  version: 30.30.3\n", ":2: driver.version names a driver and driver.install keeps"),
        (
            "driver:\n  install: amdgpu-dkms\n  version: latest\n",
            ":3: driver.version \"latest\" is no release",
        ),
        ("driver:\n  install: rocm\n", "driver.install is \"rocm\"; it takes keep or amdgpu-dkms"),
        ("driver:\n  reboot: true\n", "driver.reboot is no key: the keys of driver are install, version"),
    ] {
        let (code, _, stderr) = plan(&ubuntu(), config);
        assert_eq!(code, 2, "{config}: {stderr}");
        assert!(stderr.contains(said), "{config}: {stderr}");
    }
    for version in ["\"30.10\"", "30.10"] {
        let config = format!("driver: {{install: amdgpu-dkms, version: {version}}}\n");
        let (code, stdout, stderr) = plan(&ubuntu(), &config);
        assert!(code == 0 && stdout.to_string().contains("30.10"), "{stdout}{stderr}");
    }
}
