//! The program on a machine that is laid out or served.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::partitioned::{Driver, Partitioned};

pub(super) const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

/// Profiles for eight, or fewer, MI300X.
pub(super) const PROFILES: &str = "partitions:
  profiles:
    whole: [{cards: all, compute: SPX, memory: NPS1}]
    cores: [{cards: all, compute: CPX}]
    quarters: [{cards: MI300X, compute: CPX, memory: NPS4}]
    one: [{cards: \"0000:05:00.0\", compute: DPX}, {cards: all, skip: true}]
";

pub(super) fn served(cards: u32) -> Partitioned {
    let machine = Partitioned::new(Driver::new(cards));
    machine.put(&BTreeMap::from([("proc/sys/kernel/random/boot_id", "this\n".to_owned())]));
    configure(&machine, PROFILES);
    machine
}

pub(super) fn configure(machine: &Partitioned, config: &str) {
    machine.put(&BTreeMap::from([("etc/rocworker/config.yaml", config.to_owned())]));
}

pub(super) fn run(root: &Path, line: &str) -> Output {
    Command::new(ROCWORKER).arg("--root").arg(root).args(line.split(' ')).output().unwrap()
}

/// The answer of a command that ends with 0.
#[track_caller]
pub(super) fn answer(root: &Path, line: &str) -> Value {
    let output = run(root, &format!("{line} -o json"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {}: {stderr}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The exit code, and what the program says on stderr, without the place of the machine.
pub(super) fn refused(root: &Path, line: &str) -> (Option<i32>, String) {
    let output = run(root, line);
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr.replace(root.to_str().unwrap(), ""))
}

pub(super) fn text(root: &Path, line: &str) -> String {
    let output = run(root, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(root.to_str().unwrap(), "")
}

/// Runs a command again while a read of the driver has no answer. The driver of this machine is a thread of the test: on a
/// busy machine it may take half a second, and a command that cannot read everything changes nothing.
pub(crate) fn answered(root: &Path, command: &str) -> Output {
    let mut output = run(root, command);
    for _ in 0..4 {
        if output.status.success() || !String::from_utf8_lossy(&output.stderr).contains("does not answer") {
            break;
        }
        output = run(root, command);
    }
    output
}
