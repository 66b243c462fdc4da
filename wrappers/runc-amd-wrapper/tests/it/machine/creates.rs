//! Creates that are left to themselves, and what they have led to.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Like, Machine, Program};

/// A create that is left to itself.
pub(crate) fn spawn(machine: &Machine, bundle: &Path, id: &str) -> Child {
    let arguments = ["create", "--bundle", bundle.to_str().unwrap(), id];
    let reported = std::fs::File::create(bundle.join("stderr")).unwrap();
    let mut command = machine.command(&Program::Wrapper.path(), &arguments);
    command.stdout(Stdio::null()).stderr(reported).spawn().unwrap()
}

pub(crate) fn wait_for(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn sleeper<'a>(env: &'a [&'a str]) -> Like<'a> {
    Like { args: &["sleep", "1000"], env, ..Like::default() }
}

pub(crate) fn holder(machine: &Machine, render: u32) -> Option<String> {
    let path = machine.path(&format!("run/rocworker/leases/renderD{render}"));
    let lease: Value = serde_json::from_slice(&std::fs::read(path).ok()?).unwrap();
    Some(lease["id"].as_str().unwrap().to_owned())
}

/// The container's first process, as far as runc has come with it.
pub(crate) fn init_in(cgroup: &str) -> Option<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read =
        |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    pids.into_iter().find(|pid| {
        read(*pid, "comm").starts_with("runc:[2:INIT]")
            && read(*pid, "cgroup").lines().any(|line| line.ends_with(cgroup))
    })
}

pub(crate) fn signal(signal: &str, pid: u32) {
    assert!(std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}
