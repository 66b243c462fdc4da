//! Records of the kernel with names that a user chose, and floods of them: neither `health` nor `explain` believes one.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use layout::{Machine, Nodes};
use serde_json::Value;
use support::captures;
use support::detect::scratch;

/// The address of a synthetic Instinct's first card.
const CARD: &str = "0000:05:00.0";

/// A line that a kernel logs before anything of a GPU.
const FIRST: &str = "Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)";

fn answer(root: &Path, arguments: &[&str], input: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(root).args(["-o", "json"]).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

/// By `health`, of a machine whose kernel has logged these lines since boot.
fn judged(lines: &[&str]) -> Value {
    let record = |(number, line): (usize, &&str)| format!("3,{number},{},-;{line}\n", number * 1_000_000);
    let log: String = lines.iter().enumerate().map(record).collect();
    let root = scratch();
    let machine = Machine::instinct_with_readings(1, 1).put("/dev/kmsg", log.as_str());
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    answer(root.path(), &["health"], "")
}

/// By `explain -`, on a machine with a GPU at 0000:64:00.0.
fn explained(log: &str) -> Value {
    let root = scratch();
    captures::phoenix().lay_out(root.path(), Nodes::Recorded).unwrap();
    answer(root.path(), &["explain", "-"], log)
}

/// The names of processes, files and mount options here hold whole messages (crates/kernel-log/tests/it/forged.rs has more).
#[test]
fn a_name_that_a_user_chose_neither_condemns_a_gpu_nor_clears_one() {
    let forged = |message: &str| {
        let record = format!("amdgpu {CARD}: amdgpu: {message}");
        [
            format!("x {CARD}:[7]: segfault at 0 ip 0 sp 0 error 4 in {record}[401000+1000]"),
            format!("amdgpu: GPU res[7]: segfault at 0 ip 0 sp 0 error 4 in amdgpu: {message}[401000+1000]"),
            format!("tmpfs: Unknown parameter '{record}'"),
            format!("tmpfs: Unknown parameter 'x\\x0a{record}'"),
            format!("overlayfs: failed to resolve '{record}': -2"),
            format!("usb 1-1: Product: {record}"),
            format!("{record}IN=eth0 OUT= MAC=52:54 SRC=10.0.0.1"),
            format!("x {CARD}: amdgpu: {message}"),
        ]
    };
    let log = |lines: &[String]| {
        let lines: Vec<&str> = [FIRST].into_iter().chain(lines.iter().map(String::as_str)).collect();
        let answer = judged(&lines);
        assert_eq!(answer["unknown"], serde_json::json!([]), "{answer:#}");
        answer["gpus"][0].clone()
    };
    let clean = log(&[]);
    assert_eq!(clean["state"], "healthy", "{clean:#}");
    for message in [
        "GPU reset(2) failed",
        "ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2",
        "1 uncorrectable hardware errors detected in umc block",
    ] {
        let gpu = log(&forged(message));
        assert_eq!((&gpu["state"], &gpu["deductions"]), (&clean["state"], &clean["deductions"]), "{message}");
    }
    let failed = format!("amdgpu {CARD}: amdgpu: GPU reset(1) failed");
    let cleared = forged("GPU reset(2) succeeded!")
        .into_iter()
        .chain([format!("[drm] x Initialized amdgpu 3.61.0 for {CARD} on minor 0")]);
    let gpu = log(&[failed].into_iter().chain(cleared).collect::<Vec<_>>());
    let rules = gpu["deductions"].as_array().unwrap().iter().map(|it| it["rule"].as_str().unwrap());
    assert!(gpu["state"] == "unhealthy" && rules.collect::<Vec<_>>().contains(&"reset-failed"), "{gpu:#}");
}

#[test]
fn messages_about_devices_that_do_not_exist_evict_no_failed_reset() {
    let failed = format!("amdgpu {CARD}: amdgpu: GPU reset(1) failed");
    let flood = (0..4200).map(|n| {
        format!(
            "amdgpu 00{:02x}:{:02x}:00.0: amdgpu: ring gfx_0.0.{n} timeout, signaled seq=1, emitted seq=2",
            1 + n / 256,
            n % 256
        )
    });
    // As well of the card itself.
    let own = (0..4200)
        .map(|n| format!("amdgpu {CARD}: amdgpu: ring gfx_0.0.{n} timeout, signaled seq=1, emitted seq=2"));
    let lines: Vec<String> = [FIRST.to_owned(), failed].into_iter().chain(flood).chain(own).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let gpu = judged(&lines)["gpus"][0].clone();
    let rules = gpu["deductions"].as_array().unwrap().iter().map(|it| it["rule"].as_str().unwrap());
    assert!(rules.collect::<Vec<_>>().contains(&"reset-failed"), "{gpu:#}");
}

/// crates/kernel-log/tests/it/forged.rs has more of them, with the kernel's source files.
#[test]
fn a_name_that_a_user_chose_is_no_message_and_condemns_no_gpu() {
    let log = "[   12.5] x 0000:64:00.0:[7]: segfault at 0 ip 0 sp 0 error 4 in x 0000:64:00.0: amdgpu: GPU reset(2) failed[401000+1000]\n\
               Jan  7 10:00:25 box kernel: tmpfs: Unknown parameter 'amdgpu 0000:64:00.0: amdgpu: GPU reset(2) failed'\n\
               Jan  7 10:00:25 box logger[7]: amdgpu 0000:64:00.0: amdgpu: GPU reset(2) failed\n\
               user  :err   : [   12.6] amdgpu 0000:64:00.0: amdgpu: GPU reset(2) failed\n\
               [   12.7] tmpfs: Unknown parameter 'x\n          amdgpu 0000:64:00.0: amdgpu: GPU reset(2) failed'\n";
    let answer = explained(log);
    assert_eq!(answer["matches"], serde_json::json!([]), "{answer:#}");
    let own = "    amdgpu 0000:64:00.0: amdgpu: GPU reset(2) failed";
    assert_eq!(explained(own)["matches"][0]["gpu"], "0000:64:00.0", "an indented copy");
}
