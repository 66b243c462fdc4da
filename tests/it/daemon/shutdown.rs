//! The end of a daemon.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use root::{Lock, Root};
use tempfile::TempDir;

use crate::daemon::running::{NOTIFY, Running, applied, eventually};
use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

/// The program at a path of its own, in one file system with the one that was built, which is some hundred megabytes.
fn linked() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = dir.path().join("rocworker");
    fs::hard_link(env!("CARGO_BIN_EXE_rocworker"), &program).unwrap();
    (dir, program)
}

/// A daemon that has something to put right and waits for another run of rocworker, which has the lock.
fn waiting(laid: &Laid) -> (Running<'_>, Lock) {
    let running = applied(laid);
    let root = Root::open(laid.top()).unwrap();
    let lock = root.lock("/var/lib/rocworker/lock", Duration::ZERO).unwrap();
    laid.put(SPEC, "{}");
    eventually("it waits for the lock", || running.has_open("var/lib/rocworker/lock"));
    (running, lock)
}

#[test]
fn it_ends_within_a_second_and_leaves_no_socket() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let laid = Laid::demo("");
        let (status, took, said) = applied(&laid).ended(signal);
        eprintln!("{signal}: {took:?}");
        assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}: {said}");
        assert!(!laid.path("run/rocworker/daemon.sock").exists());
        assert_eq!(laid.json(&["status"])["daemon"], serde_json::Value::Null);
    }
}

#[test]
fn it_ends_within_a_second_while_it_waits_for_another_run_and_changes_nothing_more() {
    let laid = Laid::demo("");
    let (running, lock) = waiting(&laid);
    let (status, took, said) = running.ended(Signal::SIGTERM);
    eprintln!("in the middle of a look: {took:?}");
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}: {said}");
    drop(lock);
    assert_eq!(laid.text(SPEC), "{}");
    // Whoever comes next goes on.
    laid.run(&["apply"]).success();
    assert!(laid.text(SPEC).contains("renderD130"));
}

#[test]
fn it_answers_while_another_run_is_at_work_and_goes_on_afterwards() {
    let laid = Laid::demo("");
    let (running, lock) = waiting(&laid);
    assert_eq!(
        (running.says()["pid"].as_u64(), laid.text(SPEC).as_str()),
        (Some(running.pid().into()), "{}")
    );
    drop(lock);
    eventually("the spec is ours again", || laid.text(SPEC).contains("renderD130"));
}

#[test]
fn what_was_to_be_done_before_another_run_is_not_done_after_it_by_a_configuration_that_is_no_more() {
    let laid = Laid::demo("");
    let (running, lock) = waiting(&laid);
    laid.put("etc/rocworker/config.yaml", "daemon: {enforce: false}\n");
    drop(lock);
    let said = running.until("it follows the new one", |daemon| daemon["enforce"] == false);
    assert_eq!((laid.text(SPEC).as_str(), &said["counts"]["changes"]), ("{}", &0.into()), "{said:#}");
    let said = running.until("it says what differs", |daemon| daemon["differs"][0].is_object());
    assert_eq!(said["differs"][0]["why"], "reported", "{said:#}");
}

#[test]
fn what_an_undo_decided_meanwhile_counts_though_the_receipt_is_the_same() {
    let laid = Laid::demo("");
    let (running, lock) = waiting(&laid);
    laid.put("var/lib/rocworker/memory.json", "{\"schema_version\": 1, \"undone\": true}");
    drop(lock);
    running.until("it has seen that", |daemon| daemon["set_up"] == false);
    assert_eq!(laid.text(SPEC), "{}");
}

#[test]
fn one_whose_program_was_replaced_changes_nothing_more_and_ends_by_a_failure() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let (dir, program) = linked();
    let new = dir.path().join("new");
    let systemd = UnixDatagram::bind(laid.path(NOTIFY)).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let heard = || {
        let mut bytes = [0; 4096];
        let next =
            || systemd.recv(&mut bytes).ok().map(|n| String::from_utf8_lossy(&bytes[..n]).into_owned());
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    let running = Running::by(&program, &laid);
    heard();
    fs::write(&new, "stands for another build").unwrap();
    fs::rename(&new, &program).unwrap();
    laid.put(SPEC, "{}");
    let (status, said) = running.ends_by_itself();
    assert_eq!((status.code(), laid.text(SPEC).as_str()), (Some(1), "{}"), "{said}");
    let expected = format!("{} is another build of this program by now", program.display());
    assert!(said.contains(&expected), "{said}");
    let heard = heard();
    let [.., status, last] = &heard[..] else { panic!("{heard:?}") };
    assert!(status.starts_with(&format!("STATUS={expected}")) && last.starts_with("STOPPING=1"), "{heard:?}");
    assert!(!laid.path("run/rocworker/daemon.sock").exists());
}

#[test]
fn one_whose_program_has_gone_ends_once_nothing_is_set_up() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let (_dir, program) = linked();
    let running = Running::by(&program, &laid);
    fs::remove_file(&program).unwrap();
    laid.put(SPEC, "{}");
    eventually("it goes on meanwhile: another may be about to come", || {
        laid.text(SPEC).contains("renderD130")
    });
    laid.run(&["undo"]).success();
    let (status, said) = running.ends_by_itself();
    assert!(status.success(), "{status}: {said}");
    assert!(!laid.path("run/rocworker/daemon.sock").exists());
}

#[test]
fn one_that_was_killed_hinders_no_next_one() {
    let laid = Laid::demo("");
    drop(applied(&laid));
    assert!(laid.path("run/rocworker/daemon.sock").exists(), "it was killed");
    assert_eq!(laid.json(&["status"])["daemon"], serde_json::Value::Null);
    let next = Running::begin(&laid);
    assert!(next.says()["pid"].is_u64());
}
