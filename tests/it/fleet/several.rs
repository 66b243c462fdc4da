//! Several machines by one command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use support::machines::{self, Fleet};
use support::waiting::eventually;

use crate::fleet::asker::PROGRAM;

/// A rocworker there that says its machine's name, and ends as it is told.
fn fake(code: u8) -> String {
    format!(
        "printf '#!/bin/sh\\ncase \"$*\" in *json*) echo \"{{\\\\\"name\\\\\": \\\\\"$(uname -n)\\\\\", \
         \\\\\"big\\\\\": 18446744073709551615}}\";; *) uname -n; esac; echo a word from there >&2; exit {code}\\n' \
         > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker"
    )
}

fn set_up(fleet: &Fleet) {
    std::thread::scope(|threads| {
        for (name, prepare) in
            [("gpu1", fake(0)), ("gpu2", fake(3)), ("gpu3", fake(1)), ("gpu4", "true".to_owned())]
        {
            threads.spawn(move || {
                fleet.machine(name, |machine| machine.prepare(&prepare));
            });
        }
    });
    fleet.put(
        "etc/rocworker/config.yaml",
        "inventory:\n  user: root\n  groups:\n    good: [gpu1, root@gpu2]\n    all: [gpu1, gpu2, gpu3, gpu4]\n",
    );
}

#[test]
fn real_answers_stand_in_the_order_asked_and_one_that_fails_stops_no_other() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    set_up(&fleet);
    let ask = |words: &[&str]| fleet.run(&[&[PROGRAM], words].concat());

    let said = ask(&["--hosts", "good", "status"]);
    assert_eq!(said.status.code(), Some(3), "{}", said.stderr);
    assert_eq!(said.stdout, "==> gpu1 <==\ngpu1\n\n==> root@gpu2 <==\ngpu2\n");
    let mut lines: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with('[')).collect();
    lines.sort_by_key(|line| line.contains("gpu2"));
    assert!(lines[0].contains("/2] gpu1: done in ") && lines[0].ends_with(" s"), "{lines:?}");
    assert!(
        lines[1].contains("/2] root@gpu2: done in ") && lines[1].ends_with(" s, with findings"),
        "{lines:?}"
    );
    assert!(said.stderr.contains("\n  gpu1: a word from there\n"), "{}", said.stderr);

    let said = ask(&["--hosts", "all", "-o", "json", "status"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        answer,
        json!({
            "schema_version": 1,
            "hosts": [
                { "host": "gpu1", "code": 0, "answer": { "name": "gpu1", "big": u64::MAX } },
                { "host": "gpu2", "code": 3, "answer": { "name": "gpu2", "big": u64::MAX } },
                { "host": "gpu3", "code": 1, "answer": { "name": "gpu3", "big": u64::MAX }, "error": "a word from there" },
                { "host": "gpu4", "code": 1,
                  "error": "status needs rocworker on that machine: install its package there, or run `rocworker remote install root@gpu4`, which starts the exporter too" },
            ]
        })
    );
    // The first two are one.
    let said = ask(&["--host", "gpu1,root@gpu1,nowhere", "status"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(
        said.stdout.starts_with("==> gpu1 <==\ngpu1\n\n==> nowhere <==\n✗ cannot connect, after 3 tries: ")
    );
    assert!(said.stderr.contains("[2/2] nowhere: failed after "), "{}", said.stderr);
    let said = ask(&["--hosts", "mi300", "status"]);
    assert_eq!(said.status.code(), Some(2));
    assert_eq!(said.stderr, "rocworker: --hosts: no group \"mi300\": the groups are good, all\n");
}

#[test]
fn real_an_answer_that_is_no_json_or_cannot_be_written_is_a_failure() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let no_json =
        "printf '#!/bin/sh\\necho set up\\n' > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker";
    for name in ["gpu1", "gpu2"] {
        fleet.machine(name, |machine| machine.prepare(no_json));
    }
    let said = fleet.run(&[PROGRAM, "--host", "gpu1,gpu2", "-o", "json", "status"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(
        said.stderr.contains("gpu1: failed after ") && said.stderr.contains("its answer is not JSON"),
        "{said:?}"
    );
    let said = fleet.shell(&format!("{PROGRAM} --host gpu1 detect > /dev/full"));
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    let full = "rocworker: cannot write the answer to stdout: No space left on device (os error 28)\n";
    assert_eq!(said.stderr, full);
}

#[test]
fn real_an_interrupted_apply_names_the_machines_that_have_not_finished_and_those_not_asked() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let endless = "printf '#!/bin/sh\\necho at work > /root/begun; exec sleep 600\\n' > /usr/local/bin/rocworker; \
                   chmod 755 /usr/local/bin/rocworker";
    let gpu1 = fleet.machine("gpu1", |machine| machine.prepare(endless));
    // One machine under many names: eight are asked at once.
    let names: Vec<String> = (0..10).map(|number| format!("name{number}")).collect();
    let hosts: String =
        names.iter().map(|name| format!("Host {name}\nHostName gpu1\nHostKeyAlias gpu1\n")).collect();
    fleet.put("root/.ssh/config", &hosts);
    let mut command = fleet.command(&[PROGRAM, "--host", &names.join(","), "apply"]);
    let asked = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("eight are asked", || {
        gpu1.shell("pgrep -x sleep | wc -l").well().trim().parse::<usize>().unwrap() >= 9
    });
    // The oldest of them asks the others.
    fleet.shell("kill -INT $(pgrep -o -x rocworker)").well();
    let said = asked.wait_with_output().unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{stderr}");
    let eight = names[..8].join(",");
    let expected = format!(
        "Interrupted, not finished: {eight}\napply may still be running there: check with `rocworker --host {eight} \
         status`\nInterrupted, not asked: name8,name9\n"
    );
    assert!(stderr.ends_with(&expected), "{stderr}");
    eventually("its children have ended", || fleet.shell("! pgrep -x 'ssh|rocworker'").status.success());
}

#[test]
fn real_an_error_about_another_machine_names_that_machine() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let without_journalctl =
        "printf '#!/bin/sh\\nexit 127\\n' > /usr/local/bin/journalctl; chmod 755 /usr/local/bin/journalctl";
    for name in ["gpu1", "gpu2"] {
        let machine = fleet.machine(name, |machine| machine.prepare(without_journalctl));
        machine.put("etc/rocworker/config.yaml", "tag: a\nmode: worker\n");
    }
    let wrong = "/etc/rocworker/config.yaml:2: unknown field `mode`";
    for verbose in [&[][..], &["-v"]] {
        let ask = |words: &[&str]| fleet.run(&[&[PROGRAM], words, verbose].concat());
        let said = ask(&["--host", "gpu1", "doctor"]);
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        assert!(said.stderr.contains(&format!("rocworker: gpu1: {wrong}")), "{said:?}");
        let said = ask(&["--host", "gpu1", "explain", "--journal"]);
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        assert!(said.stderr.contains("rocworker: gpu1: journalctl is not installed: "), "{said:?}");
        let said = ask(&["--host", "gpu1", "health", "--rules", "/nowhere"]);
        assert!(said.stderr.contains("/nowhere") && !said.stderr.contains("gpu1"), "{said:?}");
        let said = ask(&["--host", "gpu1,gpu2", "-o", "json", "doctor"]);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        for host in answer["hosts"].as_array().unwrap() {
            assert!(host["error"].as_str().unwrap().starts_with(wrong), "{answer:#}");
        }
    }
}

#[test]
fn a_path_that_cannot_be_passed_on_is_refused() {
    let output = std::process::Command::new(PROGRAM)
        .args(["--host", "ops@gpu1.invalid,ops@gpu2.invalid", "detect", "--config"])
        .arg(OsStr::from_bytes(b"/etc/\xff.yaml"))
        .output();
    let said: support::said::Said = output.unwrap().into();
    assert_eq!(said.stderr, "rocworker: the path of --config is no UTF-8\n");
}

/// No machine is asked for what is refused.
#[test]
fn commands_without_host_support_are_refused() {
    let ask = |words: &[&str]| {
        let output =
            std::process::Command::new(PROGRAM).args(["--host", "gpu1.invalid"]).args(words).output();
        let said: support::said::Said = output.unwrap().into();
        assert_eq!(said.status.code(), Some(2), "{words:?}: {}", said.stderr);
        said.stderr
    };
    for words in [
        &["undo"][..],
        &["report"],
        &["demo"],
        &["serve"],
        &["tags"],
        &["cdi", "list"],
        &["completions", "bash"],
    ] {
        let said = ask(words);
        assert!(
            said.starts_with(
                "rocworker: this command works on this machine only. Commands that take --host and --hosts: detect, "
            ),
            "{said}"
        );
    }
    for (words, part) in [
        (&["explain", "7"][..], "explain takes --host only with --journal"),
        (&["plan", "--save", "plan.json"], "save the output of `rocworker --host HOST -o json plan`"),
        (&["apply", "plan.json"], "run `apply FILE` there"),
        (&["doctor", "--canary"], "run it on the machine itself"),
    ] {
        let said = ask(words);
        assert!(said.contains(part), "{said}");
    }
}
