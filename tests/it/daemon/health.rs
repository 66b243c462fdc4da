//! What the daemon publishes about the GPUs' health.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use allocation::document::Document as _;
use inventory::health::{GpuHealth, Health, PATH, State};
use nix::sys::signal::Signal;
use support::fuse::{self, Fault, Served};

use crate::daemon::running::{NOTIFY, Running, applied, command, eventually};
use crate::setup::laid::Laid;

const CARD: &str = "0000:03:00.0";
const KMSG: &str = "dev/kmsg";
const RULES: &str = "etc/rocworker/health-rules.toml";

/// Records as /dev/kmsg gives them (Documentation/ABI/testing/dev-kmsg).
const BOOT: &str = "5,0,0,-;Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)\n";
const HANG: &str = "3,1,2000000,-;amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=2219, emitted \
                    seq=2221\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n";
/// As a program writes it: facility 1, user (`devkmsg_write` of kernel/printk/printk.c).
const OF_A_PROGRAM: &str = "11,1,2000000,-;amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=2219, \
                            emitted seq=2221\n";

fn demo(kmsg: &str) -> Laid {
    let laid = Laid::demo("daemon: {enforce: false}\n");
    laid.put(KMSG, kmsg);
    laid
}

fn read(laid: &Laid) -> Option<Health> {
    let text = fs::read_to_string(laid.path(PATH)).ok()?;
    Some(Health::parse(&text).unwrap())
}

fn card(health: &Health) -> &GpuHealth {
    health.gpus.iter().find(|gpu| gpu.pci.to_string() == CARD).unwrap()
}

/// What is published, once this is so.
#[track_caller]
fn until(laid: &Laid, what: &str, is_so: impl Fn(&Health) -> bool) -> Health {
    let mut found = None;
    eventually(what, || {
        found = read(laid);
        found.as_ref().is_some_and(&is_so)
    });
    found.unwrap()
}

fn published(laid: &Laid) -> Health {
    until(laid, "it publishes", |_| true)
}

fn is_unhealthy(health: &Health) -> bool {
    card(health).state == State::Unhealthy
}

#[test]
fn it_publishes_each_cards_health_and_what_the_kernel_says_within_ten_seconds_and_tells_the_journal_once() {
    let laid = demo(&format!("{BOOT}{OF_A_PROGRAM}"));
    let running = applied(&laid);
    let first = published(&laid);
    assert_eq!(fs::metadata(laid.path(PATH)).unwrap().mode() & 0o7777, 0o644);
    assert!(first.gpus.iter().all(|gpu| gpu.state == State::Healthy), "{first:#?}");
    assert_eq!(first.unknown, [""; 0]);
    laid.put(KMSG, &format!("{BOOT}{OF_A_PROGRAM}{HANG}"));
    let hung = until(&laid, "the hang is published", is_unhealthy);
    assert_eq!((card(&hung).hang, card(&hung).quarantine.is_some()), (Some(true), true), "{hung:#?}");
    assert!((1..=15).contains(&(hung.written_at - first.written_at)), "{first:#?} {hung:#?}");
    assert!(hung.gpus.iter().filter(|gpu| gpu.state == State::Unhealthy).count() == 1, "{hung:#?}");
    until(&laid, "it is judged again", |health| health.written_at > hung.written_at);
    let (_, _, said) = running.ended(Signal::SIGTERM);
    assert_eq!(said.matches(&format!("GPU {CARD} is unhealthy now")).count(), 1, "{said}");
    assert!(said.contains("ring gfx_0.0.0 timeout"), "{said}");
    let would_be = format!("GPU {CARD} would be quarantined now, but wrapper.quarantine is not set: ");
    assert_eq!(said.matches(&would_be).count(), 1, "{said}");
}

#[test]
fn a_quarantine_outlives_the_daemon_and_an_undo_ends_it() {
    let laid = demo(&format!("{BOOT}{HANG}"));
    let running = applied(&laid);
    let hung = until(&laid, "the hang is published", is_unhealthy);
    running.ended(Signal::SIGTERM);
    assert_eq!(read(&laid), Some(hung.clone()), "it stays");
    laid.put(KMSG, BOOT);
    let running = Running::begin(&laid);
    let is_next = |health: &Health| health.written_at > hung.written_at && card(health).score.is_some();
    let next = until(&laid, "the next one judges", is_next);
    let since = |health: &Health| card(health).quarantine.as_ref().map(|it| it.since);
    assert_eq!((card(&next).state, since(&next)), (State::Healthy, since(&hung)), "{next:#?}");
    laid.run(&["undo"]).success();
    eventually("it is gone", || !laid.path(PATH).exists());
    drop(running);
}

/// Set up, and left by a daemon that had the card in quarantine, an hour ago by its clock.
fn left_quarantined(laid: &Laid) -> Health {
    laid.put(KMSG, &format!("{BOOT}{HANG}"));
    let running = applied(laid);
    let mut left = until(laid, "the hang is published", is_unhealthy);
    running.ended(Signal::SIGTERM);
    left.written_at -= 3600;
    laid.put(PATH, &left.to_json().unwrap());
    // The kernel's log has lost the hang. Nothing but the file says that the card is in quarantine.
    laid.put(KMSG, BOOT);
    left
}

fn since(health: &Health) -> Option<u64> {
    card(health).quarantine.as_ref().map(|it| it.since)
}

#[test]
#[ignore = "cargo xtask test --all"]
fn a_daemon_that_cannot_follow_its_configuration_publishes_health_and_a_quarantine_lasts() {
    for (what, path, text) in [
        ("a wrong configuration", "etc/rocworker/config.yaml", "gpu-device-ids: [\n"),
        ("an unknown key", "etc/rocworker/config.yaml", "schema_version: 1\nno-such-key: 1\n"),
        ("an empty configuration", "etc/rocworker/config.yaml", ""),
        ("a damaged memory", "var/lib/rocworker/memory.json", "{"),
        ("a damaged receipt", "var/lib/rocworker/receipt.json", "{"),
    ] {
        let laid = demo(BOOT);
        let left = left_quarantined(&laid);
        laid.put(path, text);
        let running = Running::begin(&laid);
        let is_judged = |health: &Health| health.written_at > left.written_at && card(health).score.is_some();
        let health = until(&laid, "it judges", is_judged);
        assert_eq!(since(&health), since(&left), "{what}: {health:#?}");
        let again = until(&laid, "it judges again", |it| it.written_at > health.written_at);
        assert_eq!(since(&again), since(&left), "{what}: {again:#?}");
        drop(running);
    }
}

#[test]
fn what_is_quarantined_is_published_before_anything_is_judged_and_not_of_another_boot() {
    let laid = demo(BOOT);
    laid.put("proc/sys/kernel/random/boot_id", "this\n");
    let left = left_quarantined(&laid);
    assert_eq!(left.boot_id.as_deref(), Some("this"));
    let running = Running::started(&mut command(&laid), &laid);
    let first = until(&laid, "it publishes", |health| health.written_at > left.written_at);
    assert_eq!(since(&first), since(&left), "{first:#?}");
    running.until("it has looked", |daemon| daemon["counts"]["looks"].as_u64() > Some(0));
    drop(running);
    laid.put("proc/sys/kernel/random/boot_id", "the next\n");
    laid.put(PATH, &left.to_json().unwrap());
    let running = Running::begin(&laid);
    let health = until(&laid, "it publishes", |health| health.written_at > left.written_at);
    assert_eq!((since(&health), health.boot_id.as_deref()), (None, Some("the next")), "{health:#?}");
    drop(running);
}

/// Every file of the card hangs when the daemon starts: what the driver answers, and what PCI does.
#[test]
fn real_fuse_a_daemon_that_starts_while_a_gpu_hangs_publishes_health_looks_and_beats() {
    if !fuse::require() {
        return;
    }
    let laid = Laid::demo("");
    let left = left_quarantined(&laid);
    let spec = laid.text("etc/cdi/amd.json");
    // On the file system of the machine.
    let source = support::detect::scratch();
    fs::rename(laid.path("sys"), source.path().join("sys")).unwrap();
    fs::create_dir(laid.path("sys")).unwrap();
    let served = Served::at(&source.path().join("sys"), &laid.path("sys"));
    let folder = served.real(&format!("/bus/pci/devices/{CARD}"));
    for entry in fs::read_dir(source.path().join("sys").join(folder.strip_prefix("/").unwrap())).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            served.fault(folder.join(entry.file_name()).to_str().unwrap(), Fault::Block);
        }
    }
    let systemd = UnixDatagram::bind(laid.path(NOTIFY)).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let beats = || {
        let mut bytes = [0; 4096];
        let next = || systemd.recv(&mut bytes).ok().map(|n| bytes[..n].to_owned());
        std::iter::from_fn(next).filter(|it| it.starts_with(b"WATCHDOG=1")).count()
    };
    let running = Running::started(command(&laid).env("WATCHDOG_USEC", "400000"), &laid);
    let first = until(&laid, "it publishes", |health| health.written_at > left.written_at);
    assert_eq!(since(&first), since(&left), "{first:#?}");
    let said = running.until("it has looked", |daemon| daemon["counts"]["looks"].as_u64() > Some(0));
    assert!(said.to_string().contains("does not answer"), "{said:#}");
    let again = until(&laid, "it judges", |health| health.written_at > first.written_at);
    assert_eq!(since(&again), since(&left), "{again:#?}");
    assert!(served.hanging() > 0);
    assert_eq!(laid.text("etc/cdi/amd.json"), spec, "a card that does not answer has not gone");
    beats();
    let mut more = 0;
    eventually("it beats on", || {
        more += beats();
        more > 3
    });
    // Its own threads wait for no such file: it ends at once.
    let (status, took, said) = running.ended(Signal::SIGTERM);
    assert!(status.success() && took < Duration::from_secs(5), "{status} {took:?}: {said}");
    served.mend();
    eventually("nothing reads on", || served.release() == 0 && !is_busy(&served));
}

/// Whether a process has a file of the mount open.
fn is_busy(served: &Served) -> bool {
    let opens = |process: fs::DirEntry| {
        let open = fs::read_dir(process.path().join("fd")).into_iter().flatten().map_while(Result::ok);
        open.into_iter().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(served.path())))
    };
    fs::read_dir("/proc").unwrap().map_while(Result::ok).any(opens)
}

#[test]
fn where_the_log_cannot_be_read_it_says_so_and_readings_count() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let health = published(&laid);
    assert!(health.unknown.iter().any(|it| it.contains("/dev/kmsg")), "{health:#?}");
    laid.put(KMSG, BOOT);
    until(&laid, "it is read once it is there", |health| health.unknown.is_empty());
    drop(running);
}

#[test]
fn rules_are_read_again_when_they_change_and_of_wrong_ones_nothing_counts() {
    let laid = demo(&format!("{BOOT}{HANG}"));
    laid.put(RULES, "degraded_below = 90\nunhealthy_below = \"low\"\n");
    let running = applied(&laid);
    let health = until(&laid, "the built-in rules count", is_unhealthy);
    let is_named =
        |health: &Health| health.unknown.iter().any(|it| it.contains("health-rules.toml, line 2: "));
    assert!(is_named(&health), "{health:#?}");
    let own = "degraded_below = 90\nunhealthy_below = 50\nhold_s = 0\n[[rule]]\nid = \"hang\"\npoints = 20\n\
               reason = \"It hangs.\"\nlog = { class = \"hang\", severity = \"warning\" }\n";
    laid.put(RULES, own);
    let health = until(&laid, "the operator's count", |health| card(health).score == Some(80));
    assert!(!is_named(&health), "{health:#?}");
    laid.put(RULES, "nonsense");
    let health = until(&laid, "it says what is wrong", |health| !health.unknown.is_empty());
    assert_eq!(card(&health).score, Some(80), "the last good ones count: {health:#?}");
    let (_, _, said) = running.ended(Signal::SIGTERM);
    assert_eq!(said.matches("health-rules.toml, line 1").count(), 1, "{said}");
}

/// Only root can write to the folder; what another user owns there, root has put there.
#[test]
fn a_file_that_another_user_could_have_written_does_not_count_and_is_replaced() {
    for (text, mode) in [("{\"schema_version\": 1}".to_owned(), 0o666), ("x".repeat(2 << 20), 0o644)] {
        let laid = demo(BOOT);
        laid.run(&["apply"]).success();
        laid.put(PATH, &text);
        fs::set_permissions(laid.path(PATH), fs::Permissions::from_mode(mode)).unwrap();
        let running = Running::begin(&laid);
        eventually("it is the daemon's", || {
            let meta = fs::symlink_metadata(laid.path(PATH)).unwrap();
            meta.mode() & 0o7777 == 0o644 && meta.len() < 1 << 20
        });
        published(&laid);
        let (_, _, said) = running.ended(Signal::SIGTERM);
        assert_eq!(said.matches("which GPUs were quarantined is not known").count(), 1, "{said}");
    }
}

#[test]
fn what_hinders_it_is_said_once_and_left_alone() {
    let placed: [fn(&Laid); 2] = [
        |laid| laid.put(&format!("{PATH}/in/the/way"), ""),
        |laid| {
            fs::create_dir_all(laid.path("run/rocworker")).unwrap();
            symlink("/etc/victim", laid.path(PATH)).unwrap();
        },
    ];
    for place in placed {
        let laid = demo(BOOT);
        laid.put("etc/victim", "as it was");
        laid.run(&["apply"]).success();
        place(&laid);
        let running = Running::begin(&laid);
        std::thread::sleep(Duration::from_millis(1000));
        let (status, took, said) = running.ended(Signal::SIGTERM);
        assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}: {said}");
        assert_eq!(said.matches("do not get the GPUs' health").count(), 1, "{said}");
        assert_eq!(laid.text("etc/victim"), "as it was");
    }
}

/// The kernel ends a write past RLIMIT_FSIZE halfway, as it does on a disk that is full.
#[test]
#[ignore = "cargo xtask test --all"]
fn a_write_that_fails_halfway_leaves_the_file_whole_and_is_said_once() {
    let laid = demo(BOOT);
    laid.run(&["apply"]).success();
    let script = format!("#!/bin/sh\ntrap '' XFSZ\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_rocworker"));
    laid.put_program("daemon.sh", &script);
    let running = Running::by(&laid.path("daemon.sh"), &laid);
    let limit = |bytes: &str| {
        let pid = running.pid().to_string();
        let status = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:")]).status();
        assert!(status.unwrap().success(), "prlimit");
    };
    let first = published(&laid);
    assert!(fs::metadata(laid.path(PATH)).unwrap().len() > 128);
    limit("128");
    std::thread::sleep(Duration::from_secs(25));
    let stays = published(&laid);
    assert!(stays.written_at <= first.written_at + 10, "{stays:#?}");
    let names = fs::read_dir(laid.path("run/rocworker")).unwrap().map(|entry| entry.unwrap().file_name());
    let half: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".rocworker-")).collect();
    assert!(half.is_empty(), "{half:?}");
    limit("unlimited");
    until(&laid, "it is written again", |health| health.written_at > stays.written_at);
    let (_, _, said) = running.ended(Signal::SIGTERM);
    assert_eq!(said.matches("do not get the GPUs' health").count(), 1, "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert_eq!(said.matches("health.json is written again").count(), 1, "{said}");
}

/// Synthetic, as kfd_process.c lays these files out.
#[test]
fn a_process_that_has_ended_and_that_the_driver_still_knows_is_left_over() {
    let laid = demo(BOOT);
    let nodes = fs::read_dir(laid.path("sys/class/kfd/kfd/topology/nodes")).unwrap();
    let ids = nodes.map(|node| fs::read_to_string(node.unwrap().path().join("gpu_id")).unwrap());
    let id = ids.map(|id| id.trim().to_owned()).find(|id| id != "0").unwrap();
    fs::create_dir_all(laid.path("proc/self/ns")).unwrap();
    symlink("pid:[4026531836]", laid.path("proc/self/ns/pid")).unwrap();
    laid.put(&format!("sys/class/kfd/kfd/proc/4242/vram_{id}"), "1073741824\n");
    let running = applied(&laid);
    let first = published(&laid);
    assert!(first.gpus.iter().all(|gpu| gpu.leftover.is_none()), "{first:#?}");
    let left = until(&laid, "it is left over", |health| health.gpus.iter().any(|gpu| gpu.leftover.is_some()));
    let said: Vec<&String> = left.gpus.iter().filter_map(|gpu| gpu.leftover.as_ref()).collect();
    assert!(said.len() == 1 && said[0].starts_with("process 4242 has ended"), "{left:#?}");
    fs::remove_dir_all(laid.path("sys/class/kfd/kfd/proc/4242")).unwrap();
    until(&laid, "it is cleared up", |health| health.gpus.iter().all(|gpu| gpu.leftover.is_none()));
    drop(running);
}

/// A hundred thousand lesser messages of the same class and GPU, all at once.
#[test]
#[ignore = "cargo xtask test --all"]
fn a_flood_of_messages_costs_little_memory_and_hides_no_other() {
    let laid = demo(&format!("{BOOT}{HANG}"));
    let running = applied(&laid);
    until(&laid, "the hang is published", is_unhealthy);
    let before = running.kib("VmRSS:");
    let flood: String = (2..100_000)
        .map(|number| {
            format!(
                "4,{number},{},-;amdgpu 0000:03:00.0: amdgpu: Timeout waiting for VM flush hub: 0!\n SUBSYSTEM=pci\n \
                 DEVICE=+pci:0000:03:00.0\n",
                2_000_000 + number
            )
        })
        .collect();
    laid.put(KMSG, &format!("{BOOT}{HANG}{flood}"));
    let at = read(&laid).unwrap().written_at;
    let health = until(&laid, "it has been judged twice", |health| health.written_at > at + 15);
    let after = running.kib("VmRSS:");
    assert!(is_unhealthy(&health), "{health:#?}");
    assert!(after < before + (6 << 10), "{before} KiB, then {after} KiB");
    assert!(running.says()["pid"].is_u64());
}
