//! When the files of the daemon and of the HIP worker count, and which sentence stands for a file that does not.

use std::fmt::Debug;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use allocation::document::Document as _;
use inventory::PciAddress;
use inventory::health::{GpuHealth, Health, State};
use inventory::hip_worker::{HipGpu, HipWorker};
use inventory::published::{Client, Published};
use root::Root;
use serde::Serialize;
use telemetry::daemon_file::{self, DaemonFile};

const WRITTEN_AT: u64 = 1_000_000_990;

#[test]
fn nothing_counts_of_exporter_json_that_is_old_or_damaged_or_from_elsewhere() {
    let client = Client { pid: 70, pci: "0000:03:00.0".to_owned(), vram_bytes: Some(4096) };
    let clients = vec![client];
    hold(&Published {
        schema_version: Published::SCHEMA_VERSION,
        written_at: WRITTEN_AT,
        clients,
        ..Published::default()
    });
}

#[test]
fn nothing_counts_of_hip_worker_json_that_is_old_or_damaged_or_from_elsewhere() {
    hold(&HipWorker {
        schema_version: HipWorker::SCHEMA_VERSION,
        written_at: WRITTEN_AT,
        gpus: vec![HipGpu { launches: 1, allocated_bytes: 2 }],
        ..HipWorker::default()
    });
}

#[test]
fn nothing_counts_of_health_json_that_is_old_or_damaged_or_from_elsewhere() {
    let gpu = GpuHealth {
        pci: PciAddress::parse("0000:03:00.0").unwrap(),
        state: State::Healthy,
        score: Some(100),
        hang: Some(false),
        deductions: Vec::new(),
        unknown: Vec::new(),
        quarantine: None,
        leftover: None,
    };
    let gpus = vec![gpu];
    hold(&Health {
        schema_version: Health::SCHEMA_VERSION,
        written_at: WRITTEN_AT,
        gpus,
        ..Health::default()
    });
}

/// A daemon of an earlier day wrote fewer fields: another machine's may be one.
#[test]
fn what_an_older_daemon_does_not_write_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let path = dir.path().join(Published::PATH.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let older = r#"{"schema_version": 1, "written_at": 1000000990, "leases": [], "pods": [], "clients": [],
        "drift": {"differs": 1, "contested": 0, "blocked": 0, "failed": 0, "pending_restarts": 0}}"#;
    fs::write(&path, older).unwrap();
    let found: Published = daemon_file::read(&root, WRITTEN_AT).unwrap().unwrap();
    assert_eq!((found.leases, found.drift.differs, found.drifting), (Some(vec![]), 1, vec![]));
    assert_eq!((found.changes, found.config_in_force, found.problems), (None, None, None));
}

/// Checks what must hold for every daemon's file, with this content.
fn hold<T: DaemonFile + Serialize + Clone + Debug + PartialEq>(content: &T) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let path = dir.path().join(T::PATH.trim_start_matches('/'));
    let read = |now: u64| daemon_file::read::<T>(&root, now);
    let written = WRITTEN_AT;
    let fault = || {
        let problem = read(written).unwrap_err();
        assert!(problem.starts_with(path.parent().unwrap().to_str().unwrap()), "{problem}");
        problem
    };
    assert_eq!(read(written), Ok(None), "no folder");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert_eq!(read(written), Ok(None), "no file");

    let text = serde_json::to_string(content).unwrap();
    fs::write(&path, &text).unwrap();
    for now in [written - 5, written, written + T::FRESH_S] {
        assert_eq!(read(now), Ok(Some(content.clone())), "{now}");
    }
    assert_eq!(read(written + T::FRESH_S + 1), Ok(None), "a daemon that was stopped is no fault");
    for (now, why) in [(written - 6, "is 6 s from the future"), (0, "is 1000000990 s from the future")] {
        let problem = read(now).unwrap_err();
        assert!(problem.starts_with(path.to_str().unwrap()) && problem.contains(why), "{problem}");
    }
    assert_eq!(daemon_file::last(&root), Ok(Some(content.clone())), "whatever the clock says");
    let version = |number: u32| format!("\"schema_version\":{number}");
    let (ours, next) = (T::SCHEMA_VERSION, T::SCHEMA_VERSION + 1);
    let other = text.replace(&version(ours), &version(next));
    let of_other = format!(
        "has schema_version {next} of a newer version (this one reads {ours}): use one version of rocworker"
    );
    let no_file = format!("is no {}: ", T::NAME);
    let bare = format!("{{{}}}", version(ours));
    for (text, why) in [
        (other.as_str(), of_other.as_str()),
        ("", no_file.as_str()),
        (&text[..text.len() - 9], no_file.as_str()),
        (bare.as_str(), "missing field"),
        ("[]", no_file.as_str()),
        ("\u{0}", no_file.as_str()),
    ] {
        fs::write(&path, text).unwrap();
        let problem = fault();
        assert!(problem.contains(why), "{text}: {problem}");
    }

    fs::write(&path, &text).unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(&path, 0o666);
    assert!(fault().contains("can be written by others"));
    mode(&path, 0o644);
    mode(path.parent().unwrap(), 0o777);
    assert!(fault().contains("can be written by others"));
    mode(path.parent().unwrap(), 0o755);
    assert_eq!(read(written), Ok(Some(content.clone())));
    fs::rename(&path, path.with_extension("x")).unwrap();
    symlink(path.with_extension("x").file_name().unwrap(), &path).unwrap();
    assert!(fault().contains("link"));
    if nix::unistd::geteuid().is_root() {
        fs::remove_file(&path).unwrap();
        fs::rename(path.with_extension("x"), &path).unwrap();
        assert_eq!(read(written), Ok(Some(content.clone())));
        chown(&path, Some(65534), None).unwrap();
        assert!(fault().contains("belongs to uid 65534"));
    }
}
