//! `quarantine`: what the daemon keeps from containers they do not get, and what it does not say keeps nothing from them.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use allocation::document::Document as _;
use inventory::PciAddress;
use inventory::health::{GpuHealth, Health, Quarantine, State};
use serde_json::{Value, json};
use support::real;

use crate::machine::creates::{holder, sleeper, spawn, wait_for};
use crate::machine::{self, Like, Machine, Program, Said};
use crate::stage::{Stage, config, policy, renders};

const RUNC: &[&str] = &["runc", "unshare", "nsenter", "busybox"];
const SINCE: u64 = 1_795_428_000;
const WHY: &str = "is quarantined since 2026-11-23T10:00:00Z: A ring hangs";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A health file with these cards `quarantined`, and others on which memory is left.
fn health(written_at: u64, quarantined: &[&str], leftover: &[&str]) -> String {
    let gpu = |pci: &str| GpuHealth {
        pci: PciAddress::parse(pci).unwrap(),
        state: State::Unknown,
        score: None,
        hang: None,
        deductions: vec![],
        unknown: vec![],
        quarantine: quarantined.contains(&pci).then(|| Quarantine {
            since: SINCE,
            unhealthy_at: SINCE,
            reason: "A ring hangs.".to_owned(),
            rules: vec!["hang-now".to_owned()],
        }),
        leftover: leftover.contains(&pci).then(|| "the process 7 is left on it".to_owned()),
    };
    let mut cards = [quarantined, leftover].concat();
    cards.dedup();
    let gpus = cards.into_iter().map(gpu).collect();
    Health { schema_version: 1, written_at, boot_id: None, gpus, unknown: vec![] }.to_json().unwrap()
}

/// Written as the daemon does: whole.
fn publish(run: &Path, text: &str) {
    std::fs::create_dir_all(run).unwrap();
    let temporary = run.join("health.json.new");
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, run.join("health.json")).unwrap();
}

/// Two cards, the second with two partitions, under a policy with quarantine.
fn machine(default: &str, quarantined: &[&str]) -> Machine {
    let machine = Machine::new();
    machine.policy("all", default);
    let path = machine.path("etc/rocworker/wrapper.json");
    let mut policy: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    policy["quarantine"] = json!(true);
    std::fs::write(path, policy.to_string()).unwrap();
    publish(&machine.path("run/rocworker"), &health(now(), quarantined, &[]));
    machine
}

fn shows(machine: &Machine, id: &str, env: &[&str]) -> Said {
    let bundle = machine.bundle(id, Like { args: machine::SHOW, env, ..Like::default() });
    machine.wrapper(&["run", "--bundle", bundle.to_str().unwrap(), id])
}

fn opens(renders: &[&str]) -> String {
    let mut lines = String::from("/dev/kfd opens\n");
    for node in renders {
        lines += &format!("/dev/dri/{node} opens\n");
    }
    lines
}

#[test]
fn real_a_quarantined_card_is_in_no_container_and_whoever_names_it_learns_why() {
    if !real::require_root(RUNC) {
        return;
    }
    let whole = opens(&["card1", "renderD128"]);
    let parts = opens(&["card2", "card3", "renderD129", "renderD130"]);
    for (quarantined, default, env, given, warned) in [
        (
            "0000:65:00.0",
            "all",
            &[][..],
            &whole,
            &["the GPU 1 (0000:65:00.0, renderD129)", "the GPU 2 ("][..],
        ),
        ("0000:64:00.0", "all", &[], &parts, &["the GPU 0 (0000:64:00.0, renderD128)"]),
        ("0000:65:00.0", "none", &["AMD_VISIBLE_DEVICES=all"], &whole, &["the GPU 1 (", "the GPU 2 ("]),
        ("0000:65:00.0", "none", &["AMD_GPU_COUNT=1"], &whole, &[]),
        ("0000:64:00.0", "none", &["AMD_GPU_COUNT=2"], &parts, &[]),
        ("0000:64:00.0", "none", &["AMD_VISIBLE_DEVICES=1-2"], &parts, &[]),
    ] {
        let machine = machine(default, &[quarantined]);
        let output = shows(&machine, "c1", env);
        // The nodes are of devices that this kernel really has, which may not open for another reason.
        let there = |text: &str| {
            let nodes = text.lines().filter_map(|line| line.split_once(' ').map(|(node, _)| node.to_owned()));
            nodes.collect::<Vec<_>>()
        };
        assert_eq!(there(&output.stdout), there(given), "{quarantined} {env:?}: {output:?}");
        assert_eq!(output.stderr.matches(WHY).count(), warned.len(), "{quarantined} {env:?}: {output:?}");
        assert!(warned.iter().all(|gpu| output.stderr.contains(gpu)), "{quarantined} {env:?}: {output:?}");
    }
    let machine = machine("none", &["0000:65:00.0"]);
    for (env, sentence) in [
        ("AMD_VISIBLE_DEVICES=1", "the GPU 1 (0000:65:00.0, renderD129) is quarantined"),
        ("AMD_VISIBLE_DEVICES=0-2", "the GPU 1 (0000:65:00.0, renderD129) is quarantined"),
        ("AMD_VISIBLE_DEVICES=65:00.0", "the GPU 1 (0000:65:00.0, renderD129) is quarantined"),
        ("AMD_VISIBLE_DEVICES=renderD130", "the GPU 2 (0000:65:00.0, renderD130) is quarantined"),
        ("AMD_GPU_COUNT=2", "the policy has 1; quarantine withholds 2: the GPU 1 ("),
    ] {
        let output = shows(&machine, "c1", &[env]);
        assert_eq!(output.status.code(), Some(1), "{env}: {output:?}");
        for part in [sentence, WHY, "; see rocworker health"] {
            assert!(output.stderr.contains(part), "{env}: {output:?}");
        }
        assert!(!machine.path("R/c1").exists(), "{env}: runc was run");
    }
    publish(&machine.path("run/rocworker"), &health(now(), &["0000:64:00.0", "0000:65:00.0"], &[]));
    let output = shows(&machine, "c1", &["AMD_VISIBLE_DEVICES=all"]);
    assert!(output.stderr.contains("asks for all GPUs, and each is quarantined: the GPU 0 ("), "{output:?}");
    // As soon as the daemon says so, it is given again.
    publish(&machine.path("run/rocworker"), &health(now(), &[], &[]));
    let output = shows(&machine, "c1", &["AMD_VISIBLE_DEVICES=1"]);
    assert!(
        output.status.success() && output.stdout.contains("renderD129") && output.stderr.is_empty(),
        "{output:?}"
    );
}

fn withholding(stage: &Stage, default: &str, keys: &Value) {
    let mut policy = policy("all", default);
    policy["quarantine"] = json!(true);
    policy.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    stage.write("wrapper.json", policy.to_string());
    let run = stage.path("run");
    let _ = std::fs::create_dir(&run);
    std::fs::set_permissions(run, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn real_a_file_that_says_nothing_of_now_withholds_nothing_and_is_warned_of_once() {
    type Make = fn(&Path);
    type Case<'c> = (&'c str, &'c dyn Fn(&Path), &'c str);
    if !real::require_root(&["mknod", "mkfifo"]) {
        return;
    }
    let write = |text: String| move |path: &Path| std::fs::write(path, &text).unwrap();
    let good = || health(now(), &["0000:65:00.0"], &[]);
    let stale = write(health(now() - 100, &[], &["0000:65:00.0"]));
    let future = write(health(now() + 100, &[], &["0000:65:00.0"]));
    let other_boot = write(of_boot(now() - 100, "another"));
    let damaged = write(good().split_at(90).0.to_owned());
    let newer = write(good().replace("\"schema_version\":1", "\"schema_version\":2"));
    let foreign = |path: &Path| {
        std::fs::write(path, health(now(), &["0000:65:00.0"], &[])).unwrap();
        chown(path, Some(1), None).unwrap();
    };
    let anybodys = |path: &Path| {
        std::fs::write(path, health(now(), &["0000:65:00.0"], &[])).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    };
    let link = |path: &Path| {
        let target = path.with_file_name("else");
        std::fs::write(&target, health(now(), &["0000:65:00.0"], &[])).unwrap();
        symlink(target, path).unwrap();
    };
    let absent: Make = |_| {};
    let fifo: Make = |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let folder: Make = |path| std::fs::create_dir(path).unwrap();
    let long: Make = |path| File::create(path).unwrap().set_len(100 << 20).unwrap();
    let binary: Make = |path| std::fs::write(path, [0xff; 100]).unwrap();
    let cases: [Case<'_>; 14] = [
        ("stale", &stale, "which says nothing of now"),
        ("future", &future, "which says nothing of now"),
        ("of another boot", &other_boot, "which says nothing of now"),
        ("damaged", &damaged, "is no health file"),
        ("newer", &newer, "has schema_version 2 of a newer version"),
        ("foreign", &foreign, "its owner is user 1"),
        ("anybody's", &anybodys, "its mode 0666 lets others write"),
        ("link", &link, "is a symbolic link"),
        ("absent", &absent, "No such file or directory"),
        ("fifo", &fifo, "is no regular file"),
        ("folder", &folder, "is no regular file"),
        ("100 MB", &long, "is longer than 1048576 bytes"),
        ("binary", &binary, "is not UTF-8"),
        ("empty", &|path| std::fs::write(path, "").unwrap(), "EOF while parsing a value"),
    ];
    for (what, make, part) in cases {
        let stage = Stage::with_nodes();
        for (default, sharing, env, expected) in [
            ("all", "shared", &[][..], &["renderD128", "renderD129"][..]),
            ("none", "shared", &["AMD_VISIBLE_DEVICES=1"], &["renderD129"]),
            ("none", "shared", &["AMD_GPU_COUNT=2"], &["renderD128", "renderD129"]),
            ("none", "exclusive", &["AMD_VISIBLE_DEVICES=all"], &["renderD128", "renderD129"]),
        ] {
            withholding(&stage, default, &json!({"sharing": sharing}));
            if stage.path("run/health.json").symlink_metadata().is_err() {
                make(&stage.path("run/health.json"));
            }
            let outcome = stage.create(config(env));
            let _ = std::fs::remove_dir_all(stage.path("run/records"));
            assert!(outcome.runs(), "{what} {env:?}: {outcome:?}");
            assert_eq!(renders(&stage.config()), expected, "{what} {env:?}: {outcome:?}");
            assert!(
                outcome.log.len() == 1 && outcome.messages("warning")[0].contains(part),
                "{what}: {outcome:?}"
            );
        }
        // A container that asks for nothing is not concerned, nor is a policy without quarantine.
        withholding(&stage, "none", &json!({}));
        for env in [&[][..], &["AMD_VISIBLE_DEVICES=none"]] {
            let outcome = stage.create(config(env));
            assert!(outcome.runs() && outcome.log.is_empty(), "{what}: {outcome:?}");
        }
        withholding(&stage, "all", &json!({"quarantine": false}));
        let outcome = stage.create(config(&[]));
        assert!(outcome.runs() && outcome.log.is_empty(), "{what}: {outcome:?}");
    }
}

/// The second card quarantined, in this boot.
fn of_boot(written_at: u64, boot_id: &str) -> String {
    let mut text = Health::parse(&health(written_at, &["0000:65:00.0"], &[])).unwrap();
    text.boot_id = Some(boot_id.to_owned());
    text.to_json().unwrap()
}

#[test]
fn real_a_quarantine_lasts_while_the_daemon_says_nothing_more_of_it() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (what, text) in [
        ("old", of_boot(now() - 100, boot.trim())),
        ("of a year ago", of_boot(now() - 31_536_000, boot.trim())),
        ("of the future", of_boot(now() + 100, boot.trim())),
        ("of an earlier version", health(now() - 100, &["0000:65:00.0"], &[])),
    ] {
        for (default, sharing, env, given) in [
            ("all", "shared", &[][..], Some(&["renderD128"][..])),
            ("none", "shared", &["AMD_VISIBLE_DEVICES=all"], Some(&["renderD128"])),
            ("none", "exclusive", &["AMD_GPU_COUNT=1"], Some(&["renderD128"])),
            ("none", "shared", &["AMD_VISIBLE_DEVICES=1"], None),
            ("none", "exclusive", &["AMD_GPU_COUNT=2"], None),
        ] {
            let stage = Stage::with_nodes();
            withholding(&stage, default, &json!({"sharing": sharing}));
            publish(&stage.path("run"), &text);
            let outcome = stage.create(config(env));
            assert_eq!(outcome.runs(), given.is_some(), "{what} {env:?}: {outcome:?}");
            match given {
                Some(given) => assert_eq!(renders(&stage.config()), given, "{what} {env:?}: {outcome:?}"),
                None => assert!(outcome.messages("error")[0].contains(WHY), "{what} {env:?}: {outcome:?}"),
            }
            let warned = "quarantine withholds what it withheld last: ";
            assert!(outcome.messages("warning")[0].contains(warned), "{what} {env:?}: {outcome:?}");
        }
    }
}

#[test]
fn real_a_bundle_keeps_what_an_earlier_create_gave_it() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    for (default, sharing, env) in [
        ("all", "shared", &[][..]),
        ("none", "shared", &["AMD_VISIBLE_DEVICES=1"]),
        ("none", "shared", &["AMD_VISIBLE_DEVICES=all"]),
        ("none", "shared", &["AMD_GPU_COUNT=2"]),
        ("none", "exclusive", &["AMD_VISIBLE_DEVICES=1"]),
        ("none", "exclusive", &["AMD_VISIBLE_DEVICES=all"]),
        ("none", "exclusive", &["AMD_GPU_COUNT=2"]),
    ] {
        let stage = Stage::with_nodes();
        withholding(&stage, default, &json!({"sharing": sharing}));
        publish(&stage.path("run"), &health(now(), &[], &[]));
        assert!(stage.create(config(env)).runs());
        let first = stage.config();
        for folder in ["leases", "records"] {
            let _ = std::fs::remove_dir_all(stage.path("run").join(folder));
        }
        publish(&stage.path("run"), &health(now(), &["0000:64:00.0", "0000:65:00.0"], &[]));
        let again = stage.create_as_it_is("c1");
        assert!(again.runs() && again.log.is_empty(), "{sharing} {env:?}: {again:?}");
        assert_eq!(stage.config(), first, "{sharing} {env:?}");
        let fresh = stage.create(config(env));
        assert!(!stage.config().windows(7).any(|part| part == b"renderD"), "{sharing} {env:?}: {fresh:?}");
    }
}

#[test]
fn real_a_gpu_with_something_left_on_it_is_leased_to_nobody_until_the_daemon_says_that_it_is_free() {
    if !real::require_root(RUNC) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    let run = machine.path("run/rocworker");
    machine.policy_of_eight(&json!({"quarantine": true, "wait_limit_s": 20}));
    let cards: Vec<String> = (64..72).map(|bus| format!("0000:{bus}:00.0")).collect();
    let cards: Vec<&str> = cards.iter().map(String::as_str).collect();
    let say = |leftover: &[&str]| publish(&run, &health(now(), &[], leftover));
    let start = |id: &str, env: &[&str]| spawn(&machine, &machine.bundle(id, sleeper(env)), id);
    let output = |id: &str| std::fs::read_to_string(machine.path(id).join("stderr")).unwrap();

    say(&cards[..6]);
    // A count passes them by.
    assert!(start("two", &["AMD_GPU_COUNT=2"]).wait().unwrap().success(), "{}", output("two"));
    assert_eq!(
        (holder(&machine, 134).as_deref(), holder(&machine, 135).as_deref()),
        (Some("two"), Some("two"))
    );
    // A name that cannot wait, or waits in vain, fails with the reason.
    let reason = "the GPU 0 (0000:64:00.0, renderD128) cannot be leased yet: the process 7 is left on it (see rocworker health)";
    let started = Instant::now();
    assert!(!start("hasty", &["AMD_VISIBLE_DEVICES=0"]).wait().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(output("hasty").contains(reason), "{}", output("hasty"));
    assert!(!start("in-vain", &["AMD_VISIBLE_DEVICES=0", "AMD_GPU_WAIT=1"]).wait().unwrap().success());
    let sentence = output("in-vain");
    assert!(sentence.contains(reason) && sentence.contains("it has waited for 1 s"), "{sentence}");

    // Both wait as if it were held, and get it once it is free.
    let tickets = || std::fs::read_dir(run.join("waiting")).map_or(0, |entries| entries.flatten().count());
    let mut named = start("named", &["AMD_VISIBLE_DEVICES=3", "AMD_GPU_WAIT=20"]);
    wait_for("its ticket", || tickets() == 1);
    let mut counted = start("counted", &["AMD_GPU_COUNT=1", "AMD_GPU_WAIT=20"]);
    wait_for("their tickets", || tickets() == 2);
    std::thread::sleep(Duration::from_millis(200));
    assert!(named.try_wait().unwrap().is_none() && counted.try_wait().unwrap().is_none());
    say(&[&cards[..3], &cards[4..6]].concat());
    assert!(named.wait().unwrap().success(), "{}", output("named"));
    assert_eq!(holder(&machine, 131).as_deref(), Some("named"));
    assert!(counted.try_wait().unwrap().is_none());
    say(&cards[1..6]);
    assert!(counted.wait().unwrap().success(), "{}", output("counted"));
    assert_eq!(holder(&machine, 128).as_deref(), Some("counted"));
    // A leased GPU stays leased, whatever the daemon judges.
    publish(&run, &health(now(), &cards, &[]));
    let list = machine.wrapper(&["state", "counted"]);
    assert!(list.status.success() && holder(&machine, 128).as_deref() == Some("counted"), "{list:?}");
    let sentence = {
        assert!(!start("late", &["AMD_GPU_COUNT=1", "AMD_GPU_WAIT=20"]).wait().unwrap().success());
        output("late")
    };
    assert!(sentence.contains("has 0; quarantine withholds 8: the GPU 0 ("), "{sentence}");
    assert_eq!(holder(&machine, 128).as_deref(), Some("counted"));
}

#[test]
fn real_a_gpu_that_becomes_unhealthy_while_a_create_waits_for_it_is_not_given() {
    if !real::require_root(RUNC) {
        return;
    }
    let machine = Machine::with_eight_gpus();
    let run = machine.path("run/rocworker");
    machine.policy_of_eight(&json!({"quarantine": true, "wait_limit_s": 3}));
    publish(&run, &health(now(), &[], &[]));
    let first = machine.bundle("first", sleeper(&["AMD_VISIBLE_DEVICES=2"]));
    machine.start_sleeping(Program::Wrapper, &first, "first");
    let bundle = machine.bundle("second", sleeper(&["AMD_VISIBLE_DEVICES=2", "AMD_GPU_WAIT=3"]));
    let mut second = spawn(&machine, &bundle, "second");
    wait_for("its ticket", || {
        std::fs::read_dir(run.join("waiting")).is_ok_and(|entries| entries.count() == 1)
    });
    publish(&run, &health(now(), &["0000:66:00.0"], &[]));
    machine.wrapper(&["delete", "--force", "first"]);
    assert!(!second.wait().unwrap().success());
    let output = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(output.contains(&format!("the GPU 2 (0000:66:00.0, renderD130) {WHY}")), "{output}");
    assert_eq!(holder(&machine, 130), None);
}
