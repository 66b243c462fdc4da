//! `rocworker --host gpu1 COMMAND` prints byte for byte what the rocworker on gpu1 prints there.

use std::process::Stdio;

use layout::Machine as Laid;
use support::machines::{self, Fleet, Machine, Setup, Shell, Sudo};
use support::said::Said;

use crate::fleet::asker::{PROGRAM, install};

/// rocworker on the machine that asks.
fn asks(fleet: &Fleet, arguments: &[&str]) -> Said {
    fleet.run(&[&[PROGRAM], arguments].concat())
}

/// rocworker on the machine itself, as this user.
fn says(machine: &Machine<'_>, user: &str, arguments: &[&str]) -> Said {
    let mut command = machine.command_as(user, &[&[PROGRAM], arguments].concat());
    command.stdin(Stdio::null()).output().unwrap().into()
}

/// Each command that takes `--host`, but for those whose answers differ from one run to the next.
const COMMANDS: [&str; 19] = [
    "-o json detect",
    "-o wide detect",
    "-o json doctor",
    "doctor",
    "health",
    "topology",
    "partition show",
    "-o json partition devices",
    "partition env 0",
    "partition fit model --partition=0 --parameters=8B",
    "-o json topology --tree",
    "status",
    "plan --exit-code",
    "-o json plan",
    "history",
    "tags",
    "lease list",
    "cdi list",
    "config validate",
];

/// Compares every command for a user. All differences are told at once.
#[track_caller]
fn assert_equal(fleet: &Fleet, machine: &Machine<'_>, (login, user): (&str, &str), commands: &[&str]) {
    let host = format!("{login}@{}", machine.name());
    let mut differences = Vec::new();
    for line in commands {
        let arguments: Vec<&str> = line.split(' ').collect();
        let there = says(machine, user, &arguments);
        let here = asks(fleet, &[&["--host", &host], &arguments[..]].concat());
        let [there, here] = [there, here].map(|said| Said { stdout: timeless(&said.stdout), ..said });
        let is_equal = (there.status.code(), &there.stdout) == (here.status.code(), &here.stdout);
        // An error's sentence names its machine here.
        let named = |line: &str| match line.strip_prefix("rocworker: ") {
            Some(error) => format!("rocworker: {host}: {error}"),
            None => line.to_owned(),
        };
        let has_its_talk = there.stderr.lines().all(|line| here.stderr.contains(&named(line)));
        if !is_equal || !has_its_talk || (there.stdout.is_empty() && there.stderr.is_empty()) {
            differences.push(format!("{host}: {line}:\nthere {there:#?}\nhere {here:#?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Without the moment at which health judged a GPU.
fn timeless(text: &str) -> String {
    let line =
        |line: &str| line.split_once(", last unhealthy ").map_or(line, |(start, _)| start).to_owned() + "\n";
    text.lines().map(line).collect()
}

#[test]
fn real_every_command_says_over_ssh_what_it_says_there() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let set_up = |m: Setup| {
        m.laid(Laid::instinct_in_trouble(2, 2))
            .user("ops", Sudo::NoPassword)
            .user("guest", Sudo::No)
            .prepare(&install())
    };
    let dash = fleet.machine("dash", set_up);
    assert_equal(&fleet, &dash, ("root", "root"), &COMMANDS);
    // By sudo -n it is root that reads.
    let some = ["-o json detect", "doctor", "status"];
    assert_equal(&fleet, &dash, ("ops", "root"), &some);
    assert_equal(&fleet, &dash, ("guest", "guest"), &some);
    let busybox = fleet.machine("busybox", |m| set_up(m).shell(Shell::Busybox));
    assert_equal(&fleet, &busybox, ("root", "root"), &some);
    assert_equal(&fleet, &busybox, ("guest", "guest"), &some);
}

#[test]
fn real_metrics_rules_and_a_journal_pass() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let message = r#"{"MESSAGE":"amdgpu 0000:05:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2","_KERNEL_DEVICE":"+pci:0000:05:00.0"}"#;
    let machine = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct_with_readings(2, 1)).prepare(&install()).prepare(&format!(
            "printf '%s\n' '#!/bin/sh' \"echo '{}'\" > /usr/local/bin/journalctl; chmod 755 /usr/local/bin/journalctl",
            message.replace('"', "\\\"")
        ))
    });
    let is_equal = |line: &&str| !line.starts_with('#') && !line.contains("scrape");
    let series = |text: &str| text.lines().filter(is_equal).map(str::to_owned).collect::<Vec<_>>();
    let there = series(&says(&machine, "root", &["metrics"]).well());
    assert!(there.len() > 20, "{there:?}");
    assert_eq!(series(&asks(&fleet, &["--host", "gpu1", "metrics"]).well()), there);

    let arguments = ["-o", "json", "explain", "--journal", "--since", "2 hours ago"];
    let said = asks(&fleet, &[&["--host", "gpu1"], &arguments[..]].concat()).well();
    assert_eq!(said, says(&machine, "root", &arguments).well());
    assert!(said.contains("gfx_0.0.0"), "{said}");

    fleet.put("root/rules.toml", "no rules\n");
    let said = asks(&fleet, &["--host", "gpu1", "health", "--rules", "/root/rules.toml"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(said.stderr.starts_with("rocworker: /root/rules.toml"), "{said:?}");
}

#[test]
fn real_a_report_becomes_a_file_of_the_machine_that_asks() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    for name in ["gpu1", "gpu2"] {
        fleet.machine(name, |m| m.laid(Laid::instinct(2, 1)).prepare(&install()));
    }
    let ask = |words: &str| fleet.shell(&format!("mkdir -p /root/here; cd /root/here; {PROGRAM} {words}"));
    let said = ask("--host gpu1 report --file one.tar.gz").well();
    assert!(said.starts_with("/root/here/one.tar.gz (") && said.contains("readable by you alone"), "{said}");
    let unpacked = ask("--host gpu1 report --file - | tar xz; stat -c %a one.tar.gz");
    assert_eq!(unpacked.well(), "600\n");
    let said = fleet.shell(&format!("{PROGRAM} --root /root/here/rocworker-report-* detect")).well();
    assert!(said.contains("2 of 2 AMD GPUs"), "{said}");
    let said = ask("--host gpu1,gpu2 -o json report").well();
    assert!(said.contains("/root/here/rocworker-report-gpu2-"), "{said}");
    assert_eq!(fleet.shell("ls /root/here").well().matches("rocworker-report-gpu").count(), 2);
    let said = fleet.shell(&format!("cd /proc/self; {PROGRAM} --host gpu1,gpu2 report"));
    assert!(
        said.status.code() == Some(1) && said.stdout.contains("✗ cannot make a temporary file"),
        "{said:?}"
    );
    assert!(!said.stdout.contains("u{1f}"), "{said:?}");
    let said = ask("--host gpu1,gpu2 report --file x.tar.gz").badly();
    assert!(said.contains("leave --file out"), "{said}");
}
