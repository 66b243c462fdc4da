//! `rocworker --host gpu1 COMMAND` prints byte for byte what the same program prints on gpu1 itself.

use std::process::Stdio;

use layout::{Machine as Laid, XcpNames};
use nix::errno::Errno;
use serde_json::Value;
use support::fuse::{Fault, Served};
use support::machines::{self, Fleet, Machine, Shell, Sudo};
use support::said::Said;
use support::{captures, fuse};

use crate::fleet::asker::PROGRAM;

/// rocworker on the machine that asks.
fn asks(fleet: &Fleet, arguments: &[&str]) -> Said {
    fleet.run(&[&[PROGRAM], arguments].concat())
}

/// rocworker on the machine itself, as this user.
fn says(machine: &Machine<'_>, user: &str, arguments: &[&str]) -> Said {
    let mut command = machine.command_as(user, &[&[PROGRAM], arguments].concat());
    command.stdin(Stdio::null()).output().unwrap().into()
}

const READ: [&[&str]; 6] = [
    &["-o", "json", "detect"],
    &["-o", "wide", "detect"],
    &["-o", "json", "metrics"],
    &["-o", "table", "metrics"],
    &["-o", "json", "health"],
    &["-o", "table", "health"],
];

/// Compares every command for a user. All differences are told at once.
#[track_caller]
fn assert_equal(fleet: &Fleet, machine: &Machine<'_>, user: &str) {
    let host = if user == "root" { machine.name().to_owned() } else { format!("{user}@{}", machine.name()) };
    let mut differences = Vec::new();
    for arguments in READ {
        let there = says(machine, user, arguments);
        let here = asks(fleet, &[&["--host", &host], arguments].concat());
        // The commands that an answer advises name the machine: here they run over ssh.
        let here =
            Said { stdout: here.stdout.replace(&format!("rocworker --host {host} "), "rocworker "), ..here };
        let [there, here] = [there, here].map(|said| Said { stdout: timeless(&said.stdout), ..said });
        let is_equal = (there.status.code(), &there.stdout) == (here.status.code(), &here.stdout);
        if !is_equal || there.stdout.is_empty() {
            differences.push(format!("{host}: {arguments:?}: {}", difference(&there, &here)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Without what differs between two readings of one machine: when, and how long the reading took.
fn timeless(text: &str) -> String {
    let name = "rocm_exporter_scrape_duration_seconds";
    let mut is_near = false;
    let line = |line: &str| {
        is_near = line.contains(name) || is_near;
        let is_value = is_near && (line.starts_with(name) || line.trim_start().starts_with("\"value\":"));
        is_near &= !is_value;
        let is_time =
            ["\"written_at\":", "\"unhealthy_at\":"].iter().any(|key| line.trim_start().starts_with(key));
        let line = line.split_once(", last unhealthy ").map_or(line, |(start, _)| start);
        if is_value || is_time { "a time\n".to_owned() } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

fn difference(there: &Said, here: &Said) -> String {
    let lines = there.stdout.lines().zip(here.stdout.lines());
    let differing: Vec<_> = lines
        .filter(|(there, here)| there != here)
        .take(12)
        .map(|(a, b)| format!("  there {a}\n  here  {b}"))
        .collect();
    format!(
        "{} of {} bytes there, {} of {} bytes here\n{}\n  stderr there: {}\n  stderr here: {}",
        there.status,
        there.stdout.len(),
        here.status,
        here.stdout.len(),
        differing.join("\n"),
        there.stderr,
        here.stderr
    )
}

#[test]
fn real_machine_of_eight_gpus_with_readings_says_the_same_over_ssh() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    for (name, shell) in [("dash", Shell::Dash), ("busybox", Shell::Busybox)] {
        let machine = fleet.machine(name, |m| m.laid(Laid::instinct_in_trouble(8, 1)).shell(shell));
        assert_equal(&fleet, &machine, "root");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_partitions_and_captured_machines_say_the_same_over_ssh() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let laid = [
        ("partitions", Laid::instinct_with_readings(2, 8)),
        ("mi300x", captures::mi300x(XcpNames::Dot)),
        ("phoenix", captures::phoenix_beside_rtx4080()),
        ("vangogh", captures::vangogh()),
        ("rx9070", captures::rx9070()),
        ("without", Laid::new()),
    ];
    for (name, laid) in laid {
        let machine = fleet.machine(name, |m| m.laid(laid));
        assert_equal(&fleet, &machine, "root");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_users_read_what_their_rights_allow_over_ssh() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    for (name, shell) in [("dash", Shell::Dash), ("busybox", Shell::Busybox)] {
        let machine = fleet.machine(name, |m| {
            m.laid(Laid::instinct_in_trouble(2, 1))
                .shell(shell)
                .user("ops", Sudo::NoPassword)
                .user("asked", Sudo::Password)
                .user("guest", Sudo::No)
                .prepare("chmod 600 /sys/bus/pci/devices/*/gpu_metrics")
        });
        // With sudo -n it is root that reads.
        for arguments in READ {
            let there = says(&machine, "root", arguments);
            let here = asks(&fleet, &[&["--host", &format!("ops@{name}")], arguments].concat());
            assert_eq!(timeless(&there.stdout), timeless(&here.stdout), "{arguments:?}: {}", here.stderr);
        }
        assert_equal(&fleet, &machine, "asked");
        assert_equal(&fleet, &machine, "guest");
    }
}

/// sysfs files that fail as a driver's do: EINVAL of a sensor that a card lacks, EIO of a card that is gone, EBUSY and EPERM.
#[test]
fn real_sysfs_with_failing_files_and_binary_metrics_says_the_same_over_ssh() {
    if !fuse::require() || !machines::require() {
        return;
    }
    let folder = support::detect::scratch();
    let laid = Laid::instinct_with_readings(2, 1);
    laid.lay_out(folder.path(), layout::Nodes::Real).unwrap();
    let served = Served::new(folder.path());
    let device = "/sys/bus/pci/devices/0000:05:00.0";
    let mut faulty = 0;
    let names = std::fs::read_dir(folder.path().join(device.trim_start_matches('/'))).unwrap();
    let mut names: Vec<String> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let errors = [Errno::EINVAL, Errno::EIO, Errno::EBUSY, Errno::EPERM, Errno::ENODATA];
    for (name, errno) in
        names.iter().filter(|it| it.contains("mem_info") || it.contains("busy")).zip(errors.iter().cycle())
    {
        served.fault(&format!("{device}/{name}"), Fault::Errno(*errno));
        faulty += 1;
    }
    assert!(faulty > 5, "{names:?}");
    // In this order: what is served outlives the machines.
    let fleet = Fleet::new();
    for (name, shell) in [("dash", Shell::Dash), ("busybox", Shell::Busybox)] {
        let machine = fleet.machine(name, |m| m.files(served.path()).shell(shell));
        assert_equal(&fleet, &machine, "root");
    }
    drop(fleet);
}

/// A suspended card is not read, here or there: reading it would wake it.
#[test]
fn real_suspended_card_says_the_same_over_ssh_and_is_not_woken() {
    if !fuse::require() || !machines::require() {
        return;
    }
    let folder = support::detect::scratch();
    let device = "/sys/bus/pci/devices/0000:05:00.0";
    Laid::instinct_with_readings(2, 8).lay_out(folder.path(), layout::Nodes::Real).unwrap();
    let status = folder.path().join(device.trim_start_matches('/')).join("power/runtime_status");
    std::fs::write(status, "suspended\n").unwrap();
    let served = Served::new(folder.path());
    let fleet = Fleet::new();
    let machine = fleet.machine("gpu1", |m| m.files(served.path()));
    assert_equal(&fleet, &machine, "root");
    served.take_log();
    for command in ["detect", "metrics", "health", "doctor"] {
        asks(&fleet, &["--host", "gpu1", command]);
    }
    let waking = ["gpu_metrics", "temp1_input", "power1_average", "gpu_busy_percent", "pcie_bw"];
    let real = served.real(device);
    let log = served.take_log();
    let woken: Vec<_> = log
        .iter()
        .filter(|(operation, path)| {
            *operation == fuse::Operation::Read
                && path.starts_with(&real)
                && path.file_name().is_some_and(|name| waking.iter().any(|it| name == *it))
        })
        .collect();
    assert!(woken.is_empty(), "{woken:?}");
    let read = |name: &str| log.iter().any(|(_, path)| path.ends_with(name));
    assert!(read("runtime_status") && read("gpu_metrics"), "the other card is read");
    let partition =
        |render: u32| served.real(&format!("/sys/class/drm/renderD{render}/device/xcp/xcp_metrics"));
    let is_read = |render| log.iter().any(|(_, path)| *path == partition(render));
    assert!((145..152).all(is_read) && !(129..136).any(is_read), "partitions of the other card alone");
    assert!(!read("pcie_bw"), "its counter takes a second of the driver's time");
    drop(fleet);
}

/// What `explain --journal` advises depends on the machine: its name, its programs, whether a kubelet runs there.
#[test]
fn real_advice_on_a_journal_says_the_same_over_ssh() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let message = r#"{"MESSAGE":"amdgpu 0000:05:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2","_KERNEL_DEVICE":"+pci:0000:05:00.0"}"#;
    let machine = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct_with_readings(2, 1)).prepare(&format!(
            "mkdir -p /opt/rocm/bin /var/lib/kubelet; touch /opt/rocm/bin/amd-smi
             printf '%s\n' '#!/bin/sh' \"echo '{}'\" > /usr/local/bin/journalctl; chmod 755 /usr/local/bin/journalctl",
            message.replace('"', "\\\"")
        ))
    });
    let arguments = ["-o", "json", "explain", "--journal"];
    let there = says(&machine, "root", &arguments);
    let here = asks(&fleet, &[&["--host", "gpu1"], &arguments[..]].concat());
    let value = |said: &Said| {
        let text = said.stdout.replace("rocworker --host gpu1 ", "rocworker ");
        let mut value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        without(&mut value, "With --root or --host, run the commands on that machine");
        value
    };
    let (there_value, here_value) = (value(&there), value(&here));
    assert_eq!(there_value, here_value);
    let text = here_value.to_string();
    assert!(text.contains("amd-smi") && text.contains("kubectl drain"), "{text}");
}

/// Takes away the sentences of a list that begin so.
fn without(value: &mut Value, start: &str) {
    match value {
        Value::Array(all) => {
            all.retain(|it| !it.as_str().is_some_and(|text| text.starts_with(start)));
            all.iter_mut().for_each(|it| without(it, start));
        }
        Value::Object(all) => all.values_mut().for_each(|it| without(it, start)),
        _ => {}
    }
}

/// Each check that needs no command there.
#[test]
fn real_doctor_says_the_same_over_ssh() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    // Where the package puts it: a program without one takes the wrapper that cargo built beside it.
    let machine = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct_in_trouble(2, 1))
            .prepare("mkdir -p /usr/lib/rocworker && cp /bin/busybox /usr/lib/rocworker/runc-amd-wrapper")
            .prepare("mkdir -p /etc/rocworker && echo 'cdi: {path: /srv/cdi/amd.json}' > /etc/rocworker/config.yaml")
            .prepare("mkdir -p /srv/cdi && echo {} > /srv/cdi/amd.json")
    });
    let arguments = ["-o", "json", "doctor"];
    let checks = |said: Said| -> Vec<Value> {
        let answer: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        answer["checks"].as_array().unwrap().clone()
    };
    let there = checks(says(&machine, "root", &arguments));
    let here = checks(asks(&fleet, &[&["--host", "gpu1"], &arguments[..]].concat()));
    let is_same =
        |a: &Value, b: &Value| ["name", "subject", "status", "evidence"].iter().all(|key| a[key] == b[key]);
    let mut compared = 0;
    for check in here.iter().filter(|check| check["status"] != "skipped") {
        assert!(there.iter().any(|own| is_same(own, check)), "only here: {check:#}\nthere: {there:#?}");
        compared += 1;
    }
    assert!(compared > 5, "{compared}: {here:#?}");
    let text = serde_json::to_string(&here).unwrap();
    assert!(text.contains("/srv/cdi/amd.json") && !text.contains("was not read"), "{text}");
}
