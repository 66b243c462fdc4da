//! Files that cannot be read at this moment: what may ask for GPUs does not start without them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use support::fuse::{self, Fault, Served};
use support::real;

use crate::machine::creates::sleeper;
use crate::machine::{Machine, Program};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "strace"];

/// The wrapper under strace, until it becomes runc: each open of this path fails so.
fn failing(machine: &Machine, path: &Path, error: &str, arguments: &[&str]) -> Command {
    let inject = format!("inject=openat,?open:error={error}");
    let wrapper = Program::Wrapper.path();
    let strace = ["strace", "-o", "/dev/null", "-P", path.to_str().unwrap(), "-e", &inject, "-b", "execve"];
    machine.inside(&[&strace[..], &[&wrapper, "--root", "R"], arguments].concat())
}

#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.starts_with("runc-amd-wrapper: ") && reported.lines().count() == 1, "{reported}");
    assert!(parts.iter().all(|part| reported.contains(part)), "{parts:?}: {reported}");
}

#[test]
fn real_a_config_that_cannot_be_opened_fails_the_create_under_any_policy() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    let policy = machine.path("etc/rocworker/wrapper.json");
    type Write = fn(&Machine, &Path);
    let policies: [(&str, Write); 3] = [
        ("default none", |machine, _| machine.policy("all", "none")),
        ("default all", |machine, _| machine.policy("all", "all")),
        ("a policy that cannot be used", |_, policy| std::fs::write(policy, "{").unwrap()),
    ];
    for (kind, write) in policies {
        write(&machine, &policy);
        // The C libraries have different words for them.
        for (error, reported) in
            [("ENFILE", "(os error 23)"), ("EIO", "(os error 5)"), ("ENOMEM", "(os error 12)")]
        {
            let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
            let config = bundle.join("config.json");
            let create = ["create", "--bundle", bundle.to_str().unwrap(), "c1"];
            let output = failing(&machine, &config, error, &create).output().unwrap();
            refused(&output, &[config.to_str().unwrap(), reported, "create the container again"]);
            assert!(!machine.path("R/c1").exists(), "{kind}, {error}: runc was not run");
        }
    }
    // As plain runc: it reads the file again, and has it then.
    std::fs::write(&policy, json!({"schema_version": 1}).to_string()).unwrap();
    let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let create = ["create", "--bundle", bundle.to_str().unwrap(), "c1"];
    let mut plain = failing(&machine, &bundle.join("config.json"), "ENFILE", &create);
    let status = plain.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    assert!(status.unwrap().success());
}

#[test]
fn real_a_config_whose_read_fails_fails_the_create() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    let laid_out = Machine::new();
    let source = laid_out.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let served = Served::new(&source);
    served.fault("/config.json", Fault::Errno(nix::errno::Errno::EIO));
    // Its namespace has what is mounted now.
    let machine = Machine::new();
    machine.policy("all", "none");
    let create = ["create", "--bundle", served.path().to_str().unwrap(), "c1"];
    let output = machine.command(&Program::Wrapper.path(), &create).output().unwrap();
    refused(&output, &["/config.json cannot be read: ", "(os error 5); create the container again"]);
}

#[test]
fn real_a_policy_that_cannot_be_opened_lets_no_request_pass() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    // The policy's path is unchanged in the namespace.
    let policy = Path::new("/etc/rocworker/wrapper.json");
    let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let bundle = bundle.to_str().unwrap();
    let create = ["create", "--bundle", bundle, "c1"];
    refused(
        &failing(&machine, policy, "ENFILE", &create).output().unwrap(),
        &["wrapper.json", "asks for GPUs"],
    );
    // A flag that may have a value: `c1`, which has GPUs, or `c2` is meant.
    machine.start_sleeping(Program::Wrapper, &machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"])), "c1");
    std::fs::write(machine.path("process"), "{}").unwrap();
    let process = machine.path("process");
    let doubtful = ["exec", "-p", process.to_str().unwrap(), "--new", "c1", "c2"];
    refused(&failing(&machine, policy, "EIO", &doubtful).output().unwrap(), &["not certain which container"]);
}
