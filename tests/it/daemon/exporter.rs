//! What the daemon publishes for the exporter.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use inventory::published::{Client, Drift, DriftState, DriftingPath, Lease, PATH, Pod, Published};
use nix::sys::signal::Signal;
use root::Root;
use serde_json::json;
use telemetry::daemon_file;

use crate::daemon::running::{Running, applied, eventually};
use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";
const UID: &str = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// As the exporter reads it.
fn read(laid: &Laid) -> Result<Option<Published>, String> {
    daemon_file::read(&Root::open(laid.top()).unwrap(), now())
}

/// What is published, once it is there.
fn published(laid: &Laid) -> Published {
    let mut found = None;
    eventually("it publishes", || {
        found = read(laid).unwrap();
        found.is_some()
    });
    found.unwrap()
}

fn is_there(laid: &Laid) -> bool {
    fs::symlink_metadata(laid.path(PATH)).is_ok()
}

/// Process 7 has GPU 1 by a lease and its node open; a container that is gone has GPU 2; a pod.
fn use_gpus(laid: &Laid) {
    laid.put("proc/7/stat", &format!("7 (x) S {}100 0\n", "0 ".repeat(18)));
    laid.put("proc/7/cgroup", "0::/\n");
    laid.put("proc/sys/kernel/random/boot_id", "this\n");
    for (render, id, start_time) in [("renderD129", "build", 100), ("renderD130", "gone", 99)] {
        let lease = json!({
            "schema_version": 1,
            "gpu": {"index": 1, "pci": "0000:64:00.0", "render": format!("/dev/dri/{render}")},
            "root": "/run/runc", "id": id, "kind": "counted", "since": "2026-11-21T07:13:46Z",
            "creator": {"pid": 7, "start_time": start_time, "boot_id": "this"},
            "cgroups_path": "/c/x", "idle_since_ms": null,
        });
        laid.put(&format!("run/rocworker/leases/{render}"), &lease.to_string());
    }
    for folder in ["run/rocworker", "run/rocworker/leases"] {
        fs::set_permissions(laid.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    laid.put(&format!("var/log/pods/ml_train-0_{UID}/train/0.log"), "");
    laid.put("sys/module/amdgpu/refcnt", "2\n");
    fs::create_dir_all(laid.path("proc/7/fd")).unwrap();
    symlink("/dev/dri/renderD129", laid.path("proc/7/fd/5")).unwrap();
    laid.put(
        "proc/7/fdinfo/5",
        "drm-driver:\tamdgpu\ndrm-pdev:\t0000:64:00.0\ndrm-client-id:\t9\ndrm-memory-vram:\t4 KiB\n",
    );
}

#[test]
fn it_publishes_leases_drift_pods_and_clients_for_every_reader_and_again_while_it_runs() {
    let laid = Laid::demo("daemon: {enforce: false}\n");
    use_gpus(&laid);
    let running = applied(&laid);
    let first = published(&laid);
    let mode = fs::metadata(laid.path(PATH)).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o644);
    let lease = Lease { gpu: "renderD129".to_owned(), container: "build".to_owned() };
    assert_eq!(first.leases, Some(vec![lease]));
    let (namespace, name) = ("ml".to_owned(), "train-0".to_owned());
    assert_eq!(first.pods, [Pod { uid: UID.to_owned(), namespace, name }]);
    assert_eq!(first.clients, [Client { pid: 7, pci: "0000:64:00.0".to_owned(), vram_bytes: Some(4096) }]);
    assert_eq!((first.schema_version, first.drift), (1, Drift::default()));
    assert_eq!((first.config_in_force, first.problems), (Some(true), Some(0)));
    assert_eq!(first.drifting, []);
    // The apply that set it up.
    let Some([apply]) = first.changes.as_deref() else { panic!("{:?}", first.changes) };
    assert_eq!(apply.command, "apply");
    assert!(apply.text.starts_with("Created /") && apply.text.ends_with(" more."), "{}", apply.text);

    laid.put(SPEC, "{}");
    running.until("it says so", |daemon| daemon["differs"][0].is_object());
    let drift = Drift { differs: 1, ..Drift::default() };
    let took = eventually("the drift is published at once", || read(&laid).unwrap().unwrap().drift == drift);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let drifting = DriftingPath {
        path: format!("/{SPEC}"),
        state: DriftState::Differs,
        reason: "The daemon only reports it: daemon.enforce is off.".to_owned(),
    };
    assert_eq!(published(&laid).drifting, [drifting]);

    let before = running.says();
    let since = published(&laid).written_at;
    fs::remove_file(laid.path("proc/7/fdinfo/5")).unwrap();
    eventually("it is written again", || published(&laid).clients.is_empty());
    let waited = published(&laid).written_at - since;
    assert!((8..=15).contains(&waited), "{waited} s");
    let after = running.says();
    assert_eq!(
        (&after["counts"], &after["last"]),
        (&before["counts"], &before["last"]),
        "nothing looks for that"
    );
}

/// Unknown is not none.
#[test]
fn a_history_that_cannot_be_read_is_unknown_until_it_can_be() {
    let laid = Laid::demo("daemon: {enforce: false}\n");
    laid.run(&["apply"]).success();
    let history = fs::read(laid.path(reconcile::history::PATH)).unwrap();
    laid.put(reconcile::history::PATH, "{");
    let _running = Running::begin(&laid);
    assert_eq!(published(&laid).changes, None);
    laid.put(reconcile::history::PATH, std::str::from_utf8(&history).unwrap());
    eventually("it is read again", || {
        published(&laid).changes.is_some_and(|changes| matches!(&changes[..], [it] if it.command == "apply"))
    });
}

#[test]
fn nothing_is_published_where_nothing_is_set_up_and_after_an_undo_and_after_its_end() {
    let laid = Laid::demo("");
    let running = Running::begin(&laid);
    running.until("it has looked", |daemon| daemon["set_up"] == false);
    assert!(!is_there(&laid));
    laid.run(&["apply"]).success();
    published(&laid);
    laid.run(&["undo"]).success();
    eventually("it is gone", || !is_there(&laid));
    laid.run(&["apply"]).success();
    published(&laid);
    let (status, took, said) = running.ended(Signal::SIGTERM);
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}: {said}");
    assert!(!is_there(&laid));
    assert_eq!(read(&laid), Ok(None));
}

#[test]
fn one_that_is_killed_leaves_a_file_that_soon_counts_no_more_and_that_the_next_one_replaces() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let written_at = published(&laid).written_at;
    drop(running);
    let root = Root::open(laid.top()).unwrap();
    assert_eq!(daemon_file::read::<Published>(&root, written_at + 45), Ok(None));
    laid.run(&["undo"]).success();
    let running = Running::begin(&laid);
    running.until("it has looked", |daemon| daemon["set_up"] == false);
    eventually("the next one removes it", || !is_there(&laid));
}

/// Only root can write to the folder; a file of another user's that root has put there is none of the daemon's.
#[test]
fn a_file_that_another_user_could_have_written_does_not_count_and_is_replaced() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    laid.put(PATH, "{\"schema_version\": 1}");
    fs::set_permissions(laid.path(PATH), fs::Permissions::from_mode(0o666)).unwrap();
    let said = read(&laid).unwrap_err();
    assert!(said.contains("can be written by others"), "{said}");
    let running = Running::begin(&laid);
    eventually("it is the daemon's", || read(&laid).is_ok_and(|found| found.is_some()));
    assert_eq!(fs::metadata(laid.path(PATH)).unwrap().mode() & 0o7777, 0o644);
    drop(running);
}

#[test]
fn what_hinders_it_is_said_once_and_nothing_else_suffers() {
    let laid = Laid::demo("daemon: {enforce: false}\n");
    laid.run(&["apply"]).success();
    laid.put(&format!("{PATH}/in/the/way"), "");
    let running = Running::begin(&laid);
    for spec in ["{}", "[]"] {
        laid.put(SPEC, spec);
        running.until("it says so", |daemon| daemon["differs"][0].is_object());
        laid.run(&["apply"]).success();
        running.until("it says so", |daemon| daemon["differs"][0].is_null());
    }
    std::thread::sleep(Duration::from_millis(300));
    let (status, took, said) = running.ended(Signal::SIGTERM);
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}: {said}");
    assert_eq!(said.matches("the exporter does not get leases").count(), 1, "{said}");
    assert!(laid.path(&format!("{PATH}/in/the/way")).exists());
}
