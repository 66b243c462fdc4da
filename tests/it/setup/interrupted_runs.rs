//! Runs that end in the middle, that are told nothing of restarts, or that find what they did not leave.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use config::Config;
use host::timestamp::Timestamp;
use reconcile::Progress;
use reconcile::command::Programs;
use rocworker::run::{Own, Run};
use root::Root;

use crate::setup::laid::Laid;

const CONFIG: &str = "etc/rocworker/config.yaml";
const MEMORY: &str = "var/lib/rocworker/memory.json";
const RECEIPT: &str = "var/lib/rocworker/receipt.json";

/// Stands in for systemctl: every unit has run for as long as anybody remembers. What it is called for is in `calls`.
const SYSTEMCTL: &str = r#"#!/bin/sh
case $* in
  show*) printf 'ActiveState=active\nActiveEnterTimestampMonotonic=1000\nInvocationID=first\nMainPID=1\n'; exit ;;
esac
echo "$*" >> "$(dirname "$0")/calls"
"#;

fn with_containerd(config: &str) -> Laid {
    let laid = Laid::demo(config);
    laid.put("var/lib/dpkg/status", "Package: containerd\nStatus: install ok installed\nVersion: 2.1.9-1\n");
    laid.put("usr/bin/containerd", "");
    laid.put("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
    laid.put("etc/containerd/config.toml", "version = 3\n");
    laid.put("stand-ins/systemctl", SYSTEMCTL);
    for program in ["usr/bin/containerd", "stand-ins/systemctl"] {
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(laid.path("run/systemd/system")).unwrap();
    laid
}

/// A run by the library: by this configuration, with systemctl's stand-in where units are to be restarted.
fn with_setup<T>(laid: &Laid, config: &str, starts: bool, act: impl FnOnce(&Run<'_>) -> T) -> T {
    let root = Root::open(laid.top()).unwrap();
    let programs = Programs::in_folders(laid.path("stand-ins"));
    act(&Run {
        root: &root,
        config: &Config::parse(Path::new("/elsewhere.yaml"), config).unwrap(),
        programs: starts.then_some(&programs),
        own: Own { beside: Some(laid.path("usr/lib/rocworker")), ..Own::default() },
        now: Timestamp::of(std::time::SystemTime::now()),
        caller: "a test".to_owned(),
    })
}

fn calls(laid: &Laid) -> Vec<String> {
    let calls = fs::read_to_string(laid.path("stand-ins/calls")).unwrap_or_default();
    calls.lines().filter(|call| call.contains("restart")).map(str::to_owned).collect()
}

#[test]
fn an_undo_that_is_told_nothing_of_restarts_holds_to_what_the_apply_was_told() {
    let waits =
        "containerd.service still runs with its old configuration: systemctl restart containerd.service";
    let restarts = ["try-restart containerd.service"];
    for (applied, undone, restarted) in [
        ("restart: never\n", "", false),
        ("restart: now\n", "", true),
        ("restart: now\n", "restart: never\n", false),
        ("restart: never\n", "restart: now\n", true),
    ] {
        let laid = with_containerd("");
        let before = laid.tree();
        // By --config, another file than the one that an undo reads.
        with_setup(&laid, applied, false, |setup| setup.apply(None, &mut |_| {}).unwrap());
        let undone = with_setup(&laid, undone, true, |setup| setup.undo(None, false, &mut |_| {}).unwrap());
        let said: Vec<_> = undone.effects.iter().map(|settled| settled.text.as_str()).collect();
        assert_eq!(said.contains(&waits), !restarted, "{applied}{said:?}");
        assert_eq!(laid.path(RECEIPT).exists(), !restarted, "it is owed until somebody has done it");
        assert_eq!(calls(&laid), if restarted { &restarts[..] } else { &[] }, "{applied}{said:?}");
        fs::remove_file(laid.path("stand-ins/calls")).ok();
        assert_eq!(laid.tree(), before);
    }
}

#[test]
fn an_undo_without_a_configuration_that_can_be_read_says_that_it_restarts_nothing() {
    let laid = with_containerd("restart: now\n");
    laid.run(&["apply"]).success();
    laid.put(CONFIG, "restart: [\n");
    let (code, said) = laid.fails(&["undo"]);
    assert!(code == 0 && said.contains("undo continues without it, and restarts nothing"), "{said}");
}

#[test]
fn a_kept_plan_holds_to_its_restarts_its_effects_and_its_configuration() {
    let laid = with_containerd("restart: never\n");
    let plan = laid.path("plan.json");
    let plan = plan.to_str().unwrap();
    laid.run(&["plan", "--out", plan]).success();
    laid.run(&["apply", plan, "--dry-run"]).success();
    let before = laid.tree();
    for (config, parts) in [
        (
            "restart: now\n",
            &["the configuration has another rule for restarts", "the configuration has changed"][..],
        ),
        ("restart: never\n# since\n", &["nothing was applied: the configuration has changed. "][..]),
    ] {
        laid.put(CONFIG, config);
        for arguments in [&["apply", plan][..], &["apply", plan, "--dry-run"][..]] {
            let (code, said) = laid.fails(arguments);
            assert_eq!(code, 1, "{said}");
            assert!(said.contains("plan is stale, and nothing was applied"), "{said}");
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }
    laid.put(CONFIG, "restart: never\n");
    assert_eq!(laid.tree(), before);
    let text = laid.text("plan.json");
    let other = text.rsplit_once("containerd.service").unwrap();
    laid.put("plan.json", &format!("{}docker.service{}", other.0, other.1));
    let (code, said) = laid.fails(&["apply", plan]);
    assert!(code == 1 && said.contains("now also due afterwards: "), "{said}");
    laid.put("plan.json", &text);
    laid.run(&["apply", plan]).success();
}

#[test]
fn a_run_that_ends_in_the_middle_tells_how_far_it_came_and_so_does_its_history() {
    let laid = Laid::demo("");
    let before = laid.tree();
    let mut begun = 0;
    let error = with_setup(&laid, "", false, |setup| {
        let ran = setup.apply(None, &mut |progress| {
            if !matches!(progress, Progress::Begins(_)) {
                return;
            }
            begun += 1;
            if begun == 4 {
                // The receipt can be kept no more.
                fs::rename(laid.path(RECEIPT), laid.path("receipt.aside")).unwrap();
                fs::create_dir(laid.path(RECEIPT)).unwrap();
            }
        });
        ran.unwrap_err().to_string()
    });
    assert!(error.contains("receipt.json is a folder"), "{error}");
    assert!(
        error.ends_with(
            "until then 3 changes were made: rocworker history lists them, rocworker undo reverts them"
        ),
        "{error}"
    );
    let history = laid.json(&["history"]);
    assert_eq!(history["events"][0]["changed"].as_array().unwrap().len(), 3, "{history:#}");
    fs::remove_dir(laid.path(RECEIPT)).unwrap();
    fs::rename(laid.path("receipt.aside"), laid.path(RECEIPT)).unwrap();
    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), before);
}

#[test]
fn an_undo_of_the_exporter_that_was_killed_before_it_restarted_a_unit_is_finished_by_the_next() {
    const REPLACE: &str = "exporter: {existing: replace}\n";
    let laid = with_containerd("");
    for program in ["rocworker", "rocworker-exporter"] {
        laid.put_program(&format!("usr/bin/{program}"), "stands for the program\n");
    }
    laid.put("etc/systemd/system/rocm-exporter.service", "[Service]\nExecStart=/usr/bin/sleep 1000\n");
    let before = laid.tree();
    with_setup(&laid, REPLACE, true, |setup| setup.apply_exporter(&mut |_| {}).unwrap());
    assert_ne!(laid.tree(), before);
    let killed = with_setup(&laid, REPLACE, true, |setup| {
        let mut kill = |progress: Progress<'_>| {
            assert!(!matches!(progress, Progress::Settles(_)), "killed");
        };
        catch_unwind(AssertUnwindSafe(|| setup.undo_exporter(false, &mut kill)))
    });
    assert!(killed.is_err() && laid.path(RECEIPT).exists());
    assert_eq!(laid.tree(), before);
    let calls = laid.path("stand-ins/calls");
    fs::remove_file(&calls).unwrap();
    let undone = with_setup(&laid, "", true, |setup| setup.undo_exporter(false, &mut |_| {}).unwrap());
    let calls = fs::read_to_string(calls).unwrap();
    assert!(calls.contains("start rocm-exporter.service"), "{calls}{:?}", undone.effects);
    assert!(!laid.path(RECEIPT).exists() && !laid.path(MEMORY).exists());
}

#[test]
fn a_memory_that_cannot_go_is_told_by_an_undo_that_took_everything_back() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let before = laid.tree();
    laid.run(&["apply"]).success();
    fs::remove_file(laid.path(MEMORY)).unwrap();
    fs::create_dir(laid.path(MEMORY)).unwrap();
    let (code, said) = laid.fails(&["undo"]);
    assert!(code == 1 && said.contains("memory: what was remembered stays"), "{said}");
    assert!(said.contains(" reverted\n"), "{said}");
    assert_eq!(laid.tree(), before);
    assert_eq!(laid.json(&["history"])["events"][1]["command"], "undo");
}

/// Earlier versions remembered in memory.json for which build of the driver they had asked for a restart. The receipt may
/// have the restart still, or the machine was restarted since.
#[test]
fn a_restart_that_an_earlier_version_remembered_beside_the_receipt_moves_into_it() {
    let stored = include_str!("stored/memory-1-reboot.json");
    let asked: serde_json::Value = serde_json::from_str(stored).unwrap();
    let then = asked["driver"]["boot_id"].as_str().unwrap();
    for (receipt, boot) in [(Some(include_str!("stored/receipt-1-reboot.json")), then), (None, "another")] {
        let laid = with_containerd("");
        laid.put(
            "var/lib/dpkg/status",
            "Package: amdgpu-dkms\nStatus: install ok installed\nVersion: 1:6.16.13\n",
        );
        laid.put("proc/sys/kernel/random/boot_id", boot);
        laid.put(MEMORY, stored);
        receipt.iter().for_each(|receipt| laid.put(RECEIPT, receipt));
        for _ in 0..2 {
            let driver = "driver: {install: amdgpu-dkms, version: 30.30.3}\n";
            with_setup(&laid, driver, true, |setup| setup.apply(None, &mut |_| {}).unwrap());
            let receipt: serde_json::Value = serde_json::from_str(&laid.text(RECEIPT)).unwrap();
            let pending = receipt["pending"].as_array().unwrap();
            let restarts: Vec<_> = pending.iter().filter(|it| it["effect"] == "reboot").collect();
            assert_eq!(restarts.len(), 1, "{boot}: {receipt:#}");
            assert_eq!(restarts[0]["module"], asked["driver"], "{boot}");
            assert_eq!(restarts[0]["uptime"]["boot"], then, "a restart that came since is over");
            let memory: serde_json::Value = serde_json::from_str(&laid.text(MEMORY)).unwrap();
            assert_eq!(memory.get("driver"), None, "{boot}");
        }
    }
}

/// An upgrade brings no package, and looks at the driver that an earlier run left to be looked at: here the driver is
/// gone.
#[test]
fn an_upgrade_looks_at_the_driver_that_an_earlier_run_has_not_verified() {
    let laid = with_containerd("");
    let driver = "driver: {install: amdgpu-dkms, version: 30.30.3}\n";
    let memory = || serde_json::from_str::<serde_json::Value>(&laid.text(MEMORY)).unwrap();
    with_setup(&laid, driver, true, |setup| setup.apply(None, &mut |_| {}).unwrap());
    let mut unverified = memory();
    unverified["unverified"] = true.into();
    laid.put(MEMORY, &unverified.to_string());
    with_setup(&laid, driver, true, |setup| setup.upgrade(&mut |_| {}).unwrap());
    assert_eq!(memory().get("unverified"), None);
}
