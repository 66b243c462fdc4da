//! What a call meets outside of its container: nobody who reads its output, a runtime that is none.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test lays out a machine and runs runc on it"
)]

mod machine;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use machine::{CONCOURSE, Like, Machine, Program, SHOW};
use support::real;

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox"];

fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn name_runtime(machine: &Machine, path: &str) {
    let policy = machine.path("etc/rocworker/wrapper.json");
    let mut named: serde_json::Value = serde_json::from_slice(&std::fs::read(&policy).unwrap()).unwrap();
    named["runtime"] = path.into();
    std::fs::write(policy, named.to_string()).unwrap();
}

#[test]
fn real_a_warning_that_nobody_reads_keeps_no_container_from_starting() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    name_runtime(&machine, "/none");
    // In runc's place: what it inherits of ignored signals, of which SIGPIPE is the thirteenth.
    std::fs::create_dir(machine.path("bin")).unwrap();
    program(&machine.path("bin/runc"), "#!/bin/sh\nexec grep SigIgn /proc/self/status\n");
    let path = format!("PATH={}:/usr/bin:/bin", machine.path("bin").display());
    for log in ["", "/proc/self/fd/2"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let call = ["env", &path, &Program::Wrapper.path(), "--log", log, "state", "c1"];
        let said = machine.inside(&call).stderr(writer).output().unwrap();
        assert!(said.status.success(), "{log:?}: {said:?}");
        let ignored = String::from_utf8(said.stdout).unwrap();
        let ignored = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        // What the test runner ignores is ignored by all of its children.
        let without = machine.inside(&["grep", "SigIgn", "/proc/self/status"]).output().unwrap().stdout;
        let without = String::from_utf8(without).unwrap();
        let without = u64::from_str_radix(without.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(ignored, without, "{log:?}");
    }
}

#[test]
fn real_a_runtime_that_the_kernel_cannot_run_keeps_no_container_from_starting() {
    if !real::require_root(&[NEEDED, &["mount"]].concat()) {
        return;
    }
    let machine = Machine::new();
    machine.policy("named", "none");
    program(&machine.path("no-program"), "neither a program nor a script\n");
    program(&machine.path("no-interpreter"), "#!/no/such/interpreter\n");
    let noexec = machine.path("noexec");
    std::fs::create_dir(&noexec).unwrap();
    let mount = ["mount", "-t", "tmpfs", "-o", "noexec", "none", noexec.to_str().unwrap()];
    assert!(machine.inside(&mount).status().unwrap().success());
    let copied = machine.inside(&["cp", "/bin/busybox", noexec.join("runc").to_str().unwrap()]).status();
    assert!(copied.unwrap().success());
    for (number, runtime) in ["no-program", "no-interpreter", "noexec/runc"].into_iter().enumerate() {
        let runtime = machine.path(runtime).display().to_string();
        name_runtime(&machine, &runtime);
        let asked = machine.wrapper(&["--version"]);
        assert!(asked.status.success() && asked.stdout.starts_with("runc version"), "{runtime}: {asked:?}");
        assert!(
            asked.stderr.contains(&format!("the policy's runtime {runtime} cannot be run: "))
                && asked.stderr.contains("the next runc on PATH is run in its place"),
            "{asked:?}"
        );
        for (env, expected) in [
            (&[][..], "no dri\n"),
            (&["AMD_VISIBLE_DEVICES=0"], "/dev/kfd opens\n/dev/dri/card1 opens\n/dev/dri/renderD128 opens\n"),
        ] {
            let id = format!("c{number}-{}", env.len());
            let bundle = machine.bundle(&id, Like { args: SHOW, env, ..Like::default() });
            let said = machine.create_and_start(Program::Wrapper, &bundle, &id);
            assert!(said.status.success(), "{runtime}: {said:?}");
            assert_eq!(said.stdout, expected, "{runtime}: {said:?}");
        }
    }
}

/// Whoever starts the wrapper may have closed what is mostly open: then the first files that it opens would get the
/// numbers to which warnings and errors go.
#[test]
fn real_what_is_said_to_a_closed_descriptor_stands_in_no_file() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    name_runtime(&machine, "/bin/true");
    // The default leaves one GPU out, and who asks for another cannot open its card node: two warnings under the lock.
    for argv in [&["rm", "/dev/dri/renderD129"][..], &["chgrp", "0", "/dev/dri/card1"]] {
        assert!(machine.inside(argv).status().unwrap().success());
    }
    let run = machine.path("run/rocworker");
    let texts = || {
        let mut texts = Vec::new();
        let mut folders = vec![run.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    texts.push((path.clone(), std::fs::read_to_string(path).unwrap()));
                }
            }
        }
        texts.sort();
        texts
    };
    let wrapper = Program::Wrapper.path();
    let create = |env: &[&str], closed: &str| {
        let like = Like { args: &["sh"], env, mapping: CONCOURSE };
        let bundle = machine.bundle("b", like);
        // Each with a record of its own.
        let _ = std::fs::remove_dir_all(run.join("records"));
        let script = format!("exec \"$@\" {closed}");
        let bundle = bundle.to_str().unwrap();
        let call = ["sh", "-c", &script, "sh", &wrapper, "--root", "R", "create", "--bundle", bundle, "c1"];
        let said = machine.inside(&call).output().unwrap();
        assert!(said.status.success(), "{closed}: {said:?}");
        let text = std::fs::read_to_string(machine.path("b/config.json")).unwrap();
        (said.stderr, text)
    };
    for env in [&[][..], &["AMD_VISIBLE_DEVICES=0"]] {
        let (said, expected) = create(env, "");
        assert!(String::from_utf8(said).unwrap().contains("level=warning"), "{env:?}");
        let lock = std::fs::read_to_string(run.join("lock")).unwrap();
        for closed in ["2>&-", "<&- 2>&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-"] {
            let (_, given) = create(env, closed);
            assert_eq!(given, expected, "{env:?} {closed}");
            assert_eq!(std::fs::read_to_string(run.join("lock")).unwrap(), lock, "{env:?} {closed}");
            for (path, text) in texts() {
                assert!(!text.contains("runc-amd-wrapper"), "{env:?} {closed}: {}: {text}", path.display());
            }
        }
    }
}
