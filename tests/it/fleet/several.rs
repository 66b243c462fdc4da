//! Several machines by one command.

use std::process::Stdio;

use serde_json::{Value, json};
use support::machines::{self, Fleet, Machine};
use support::waiting::eventually;

use crate::fleet::asker::{PROGRAM, install};

/// A rocworker there that says its machine's name, and ends as it is told.
fn fake(code: u8) -> String {
    format!(
        "printf '#!/bin/sh\\ncase \"$*\" in *json*) echo \"{{\\\\\"name\\\\\": \\\\\"$(uname -n)\\\\\", \
         \\\\\"big\\\\\": 18446744073709551615}}\";; *) uname -n; esac; echo a word from there >&2; exit {code}\\n' \
         > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker"
    )
}

const OTHER_PROCESSOR: &str =
    "printf '#!/bin/sh\necho aarch64\n' > /usr/local/bin/uname; chmod 755 /usr/local/bin/uname";

fn set_up(fleet: &Fleet) {
    std::thread::scope(|threads| {
        for (name, prepare) in
            [("gpu1", fake(0)), ("gpu2", fake(3)), ("gpu3", fake(1)), ("gpu4", OTHER_PROCESSOR.to_owned())]
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
                  "error": "its processor is aarch64, and this rocworker is for x86_64: install rocworker's package for it there" },
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
    let said = fleet.run(&[PROGRAM, "--config", "/etc/rocworker/config.yaml", "--host", "gpu1", "plan"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(said.stderr.contains("--config names a file of this machine"), "{said:?}");
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
    let said = fleet.shell(&format!("{PROGRAM} --host gpu1 status > /dev/full"));
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

/// A hundred machines, one of which loses its power while it answers.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_hundred_machines_answer_and_one_that_dies_stops_no_other() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let names: Vec<String> = (0..100).map(|number| format!("gpu{number}")).collect();
    let slow = "printf '#!/bin/sh\\nexec sleep 600\\n' > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker";
    let start = |name: &String| {
        let prepare = if name == "gpu42" { slow.to_owned() } else { install() };
        fleet.machine(name, |m| m.laid(layout::Machine::instinct(1, 1)).prepare(&prepare))
    };
    let machines: Vec<Machine<'_>> = std::thread::scope(|threads| {
        let parts: Vec<_> = names
            .chunks(25)
            .map(|part| threads.spawn(move || part.iter().map(start).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let gpu42 = machines.iter().find(|machine| machine.name() == "gpu42").unwrap();
    let mut command = fleet.command(&[PROGRAM, "--host", &names.join(","), "-o", "json", "status"]);
    let asked = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("gpu42 is at work", || gpu42.shell("pgrep -x sleep | wc -l").well().trim() == "2");
    gpu42.kill();
    let said = asked.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(1), "{}", String::from_utf8_lossy(&said.stderr));
    let answer: Value = serde_json::from_slice(&said.stdout).unwrap();
    let hosts = answer["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 100);
    for host in hosts {
        assert_eq!(host["answer"].is_object(), host["host"] != "gpu42", "{host:#}");
    }
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
        &["demo"][..],
        &["serve"],
        &["lease", "release", "x"],
        &["cdi", "generate"],
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
        (&["cdi", "validate", "amd.json"], "leave FILE out"),
    ] {
        let said = ask(words);
        assert!(said.contains(part), "{said}");
    }
}
