//! What an undo has reverted is not set up again by a daemon that still runs.

use nix::sys::signal::Signal;

use crate::daemon::running::{Running, applied};
use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

#[test]
fn after_an_undo_nothing_is_done_until_the_next_apply() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    laid.run(&["undo"]).success();
    let said = running.until("it has seen that", |daemon| daemon["set_up"] == false);
    assert!(said["failing"].is_null(), "{said:#}");
    running.look();
    assert!(!laid.path(SPEC).exists());
    laid.run(&["apply"]).success();
    running.until("it keeps it again", |daemon| daemon["set_up"] == true);
}

#[test]
fn what_an_undo_had_to_leave_is_no_reason_to_set_the_rest_up_again() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let policy = "etc/rocworker/wrapper.json";
    // Contested by now, so that it stays as somebody has it, and undo leaves it.
    let receipt = laid.text("var/lib/rocworker/receipt.json");
    drop(running);
    laid.put(policy, "{}");
    assert_eq!(laid.fails(&["undo"]).0, 1);
    assert_ne!(receipt, laid.text("var/lib/rocworker/receipt.json"));
    assert!(laid.text("var/lib/rocworker/receipt.json").contains("wrapper.json"), "it is ours still");
    let running = Running::begin(&laid);
    assert_eq!(running.says()["set_up"], false);
    assert_eq!((laid.text(policy).as_str(), laid.path(SPEC).exists()), ("{}", false));
    laid.run(&["apply"]).success();
    running.until("it keeps it again", |daemon| daemon["set_up"] == true);
}

/// A policy-rc.d or another supervisor than systemd keeps it running where the package has it stopped.
#[test]
fn a_package_does_not_go_while_a_daemon_runs_that_it_could_not_stop() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let (spec, receipt) = (laid.text(SPEC), laid.text("var/lib/rocworker/receipt.json"));
    let (code, said) = laid.fails(&["deb", "leave"]);
    let who =
        format!("rocworker serve runs still, as process {}, and would outlive its program", running.pid());
    let what = format!("systemctl stop rocworker.service, or kill {}; then remove it again", running.pid());
    assert!(code == 1 && said.contains(&who) && said.contains(&what), "{said}");
    assert_eq!((laid.text(SPEC), laid.text("var/lib/rocworker/receipt.json")), (spec, receipt));
    assert!(running.ended(Signal::SIGTERM).0.success());
    laid.run(&["deb", "leave"]).success();
    assert!(!laid.path(SPEC).exists());
}

#[test]
fn where_nobody_has_applied_nothing_is_done() {
    let laid = Laid::demo("");
    let running = Running::begin(&laid);
    assert_eq!(running.says()["set_up"], false);
    assert!(!laid.path(SPEC).exists());
    // One thing that was asked for by itself is no apply.
    laid.run(&["cdi", "generate"]).success();
    let before = laid.path("etc/rocworker/wrapper.json").exists();
    running.look();
    assert_eq!((before, laid.path("etc/rocworker/wrapper.json").exists()), (false, false));
}
