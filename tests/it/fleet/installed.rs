//! `status`, `plan` and `apply`, which the rocworker on the other machine does.

use std::process::Stdio;

use support::machines::{self, Fleet, Sudo};
use support::waiting::eventually;

use crate::fleet::asker::{PROGRAM, install};

#[test]
fn real_plan_apply_and_status_run_remotely_as_root_with_equal_exit_codes() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| {
        machine.laid(layout::Machine::instinct(1, 1)).user("ops", Sudo::NoPassword).prepare(&install())
    });
    let ask = |words: &[&str]| fleet.run(&[&[PROGRAM, "--host", "ops@gpu1"], words].concat());
    let there = |words: &[&str]| gpu1.run(&[&["/usr/local/bin/rocworker"], words].concat());

    assert_eq!(ask(&["plan", "--exit-code"]).status.code(), Some(3));
    assert!(ask(&["apply", "--dry-run"]).well().contains("rocworker apply"));
    assert!(!gpu1.path("etc/cdi/amd.json").exists());
    let applied = ask(&["apply"]);
    assert!(gpu1.path("etc/cdi/amd.json").exists(), "{applied:?}");
    assert!(there(&["history"]).well().contains("apply"));
    assert!(!fleet.path("etc/cdi/amd.json").exists(), "it changed the machine that asks");
    assert_eq!(ask(&["undo"]).status.code(), Some(0));
    assert!(!gpu1.path("etc/cdi/amd.json").exists());
    // What is wrong there is said there, and its exit code comes back.
    gpu1.put("etc/rocworker/config.yaml", "tag: a\nmode: worker\n");
    let said = ask(&["plan"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(
        said.stderr.contains("rocworker: ops@gpu1: /etc/rocworker/config.yaml:2: mode is no key"),
        "{}",
        said.stderr
    );
}

#[test]
fn real_missing_rocworker_or_sudo_names_the_fix() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine.user("guest", Sudo::No));
    let said = fleet.run(&[PROGRAM, "--host", "gpu1", "apply"]);
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(
        said.stderr,
        "rocworker: gpu1: apply needs rocworker on that machine: install its package there, or run `rocworker remote install gpu1`, which starts the exporter too\n"
    );
    gpu1.shell(&install()).well();
    let said = fleet.run(&[PROGRAM, "--host", "guest@gpu1", "undo"]).badly();
    assert!(said.contains("`sudo -n` failed for guest") && said.contains("or use root@gpu1"), "{said}");
}

/// What an apply prints comes while it is at work, without what would steer a terminal.
#[test]
fn real_an_answer_passes_line_by_line_and_an_interrupted_apply_says_what_is_not_known() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let fake = "printf '#!/bin/sh\\necho \"$@\"; printf \"\\033]0;title\\007\\n\"; cat; exec sleep 600\\n' \
                > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker";
    fleet.machine("gpu1", |machine| machine.prepare(fake));
    let mut command = fleet.command(&[PROGRAM, "--host", "gpu1", "-o", "wide", "apply"]);
    let mut asked = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(asked.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "apply -o wide");
    assert_eq!(lines.next().unwrap().unwrap(), "\\u{1b}]0;title\\u{7}");
    // The oldest: the fake is a script of the same name until it sleeps.
    fleet.shell("kill -INT $(pgrep -o -x rocworker)").well();
    let said = asked.wait_with_output().unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.ends_with(
            "rocworker: gpu1: interrupted before the command finished. apply may still be running there: check with \
             `rocworker --host gpu1 status`\n"
        ),
        "{stderr}"
    );
    support::waiting::eventually("ssh has ended", || fleet.shell("! pgrep -x ssh").status.success());
}

/// A machine that is broken, or that somebody else has.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_an_answer_without_an_end_is_cut_off_on_either_stream() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    // Lines of a thousand digits.
    let fake = "printf '#!/bin/sh\\nline=$(printf %%01000d 0)\\ncase $1 in apply) exec yes $line >&2;; esac; exec yes $line\\n' \
                > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker";
    fleet.machine("gpu1", |machine| machine.prepare(fake));
    for words in [&["status"][..], &["apply"]] {
        let said = fleet.run(&[&[PROGRAM, "--host", "gpu1"], words].concat());
        assert_eq!(said.status.code(), Some(1), "{words:?}");
        let last = said.stderr.lines().last().unwrap();
        assert_eq!(
            last,
            "rocworker: gpu1: its answer is larger than 64 MiB, and the connection was closed: log in and run the command there",
            "{words:?}"
        );
        let printed = said.stdout.len() + said.stderr.len() - last.len() - 1;
        // Printed are 64 MiB and the end of the line that was cut.
        assert!(printed <= (64 << 20) + 1, "{words:?}: {printed}");
        eventually("ssh has ended", || fleet.shell("! pgrep -x ssh").status.success());
    }
}
