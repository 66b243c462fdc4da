//! A limit on the size of files (RLIMIT_FSIZE): the kernel ends a process with SIGXFSZ that writes beyond it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::json;
use support::real;

use crate::machine::creates::sleeper;
use crate::machine::{Machine, Program};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "prlimit", "find"];

/// The wrapper's answer where no file may have more than so many bytes.
fn limited(machine: &Machine, bytes: u64, arguments: &[&str]) -> Output {
    let (limit, wrapper) = (format!("--fsize={bytes}"), Program::Wrapper.path());
    let call = [&["prlimit", &limit, "--", &wrapper, "--root", "R"], arguments].concat();
    machine.inside(&call).output().unwrap()
}

/// Files beneath these folders that were left half written.
fn left_over(machine: &Machine, folders: &[&str]) -> String {
    let find = [&["find"], folders, &["-name", "*~", "-o", "-name", ".config.json.*"]].concat();
    String::from_utf8(machine.inside(&find).output().unwrap().stdout).unwrap()
}

#[test]
fn real_a_write_beyond_the_limit_is_a_sentence_and_leaves_nothing_half_written() {
    if !real::require_root(NEEDED) {
        return;
    }
    for (sharing, beyond, part) in [
        ("exclusive", None, "the lease /run/rocworker/leases/renderD128 cannot be written: "),
        ("shared", None, "the record /run/rocworker/records/"),
        ("shared", Some(100), "/config.json anew failed: "),
    ] {
        let machine = Machine::with_eight_gpus();
        machine.policy_of_eight(&json!({"sharing": sharing}));
        // A first decision makes what stays: the lock, which holds the boot's id.
        machine.start_sleeping(
            Program::Wrapper,
            &machine.bundle("a", sleeper(&["AMD_VISIBLE_DEVICES=7"])),
            "a",
        );
        let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0,1"]));
        let config = bundle.join("config.json");
        let before = std::fs::read(&config).unwrap();
        let limit = beyond.map_or(64, |beyond| before.len() as u64 + beyond);
        let output = limited(&machine, limit, &["create", "--bundle", bundle.to_str().unwrap(), "b"]);
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{sharing} {beyond:?}: {:?} {reported}", output.status);
        assert!(
            reported.contains(part)
                && reported
                    .trim_end()
                    .ends_with("File too large (os error 27): raise LimitFSIZE= of the engine's service"),
            "{sharing} {beyond:?}: {reported}"
        );
        assert_eq!(std::fs::read(&config).unwrap(), before, "{sharing} {beyond:?}");
        assert_eq!(left_over(&machine, &["b", "/run/rocworker"]), "", "{sharing} {beyond:?}");
    }
}

#[test]
fn real_a_process_file_beyond_the_limit_stays_as_it_was() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    machine.start_sleeping(Program::Wrapper, &machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"])), "b");
    let process = machine.path("process");
    let text = json!({"args": ["id"], "cwd": "/", "user": {"uid": 0, "gid": 0}}).to_string();
    std::fs::write(&process, &text).unwrap();
    let exec = ["exec", "--process", process.to_str().unwrap(), "b"];
    let output = limited(&machine, text.len() as u64 + 4, &exec);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{:?} {reported}", output.status);
    assert!(reported.contains("/process cannot be written: File too large"), "{reported}");
    assert_eq!(std::fs::read_to_string(&process).unwrap(), text);
}

#[test]
fn real_runc_has_the_signal_as_the_caller_left_it() {
    if !real::require_root(&[NEEDED, &["env"]].concat()) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    let bin = machine.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("runc"), "#!/bin/sh\nexec grep SigIgn /proc/self/status\n").unwrap();
    std::fs::set_permissions(bin.join("runc"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", bin.display());
    // SIGXFSZ is the 25th.
    for (handling, expected) in [("--default-signal=XFSZ", false), ("--ignore-signal=XFSZ", true)] {
        let call = ["env", handling, &path, &Program::Wrapper.path(), "state", "c1"];
        let reported = String::from_utf8(machine.inside(&call).output().unwrap().stdout).unwrap();
        let ignored = u64::from_str_radix(reported.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(ignored & (1 << 24) != 0, expected, "{handling}: {reported}");
    }
}
