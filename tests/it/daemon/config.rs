//! The configuration as it changes under a daemon that runs.

use nix::sys::signal::Signal;

use crate::daemon::running::{Running, applied, command, eventually};
use crate::setup::laid::Laid;

const FILE: &str = "etc/rocworker/config.yaml";
const SPEC: &str = "etc/cdi/amd.json";
const POLICY: &str = "etc/rocworker/wrapper.json";
const MEMORY: &str = "var/lib/rocworker/memory.json";

#[test]
fn what_is_configured_comes_about_and_a_mistake_leaves_the_last_good_one_in_force() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    laid.put(FILE, "gpu-device-ids: 0\n");
    eventually("one GPU is told of", || !laid.text(SPEC).contains("renderD130"));

    laid.put(FILE, "gpu-device-ids: [\n");
    let said = running.until("it says so", |daemon| daemon["config"]["problem"].is_string());
    let problem = said["config"]["problem"].as_str().unwrap();
    assert!(problem.contains("config.yaml:") && said["config"]["in_force"] == true, "{said:#}");
    laid.put(SPEC, "{}");
    eventually("the spec is by the last good one", || laid.text(SPEC).contains("renderD129"));
    assert!(!laid.text(SPEC).contains("renderD130"));

    laid.put(FILE, "schema_version: 1\n");
    eventually("all GPUs are told of", || laid.text(SPEC).contains("renderD130"));
    running.until("nothing is wrong", |daemon| daemon["config"]["problem"].is_null());
}

/// What it withheld would be given in the middle of a slow write.
#[test]
fn one_that_is_empty_or_gone_is_a_mistake_until_it_is_applied() {
    let laid = Laid::demo("gpu-device-ids: 0\nwrapper: {requests: deny, default: none}\n");
    let running = applied(&laid);
    let told = || (laid.text(SPEC), laid.text(POLICY), laid.text("var/lib/rocworker/memory.json"));
    let before = told();
    let problem = format!("{} is empty or not there", laid.path(FILE).display());
    let is_said = |said: &serde_json::Value| {
        said["config"]["problem"].as_str().is_some_and(|it| it.starts_with(&problem))
    };
    laid.put(FILE, "");
    running.until("it says so", is_said);
    std::fs::remove_file(laid.path(FILE)).unwrap();
    let said = running.look();
    assert!(is_said(&said) && said["config"]["in_force"] == true, "{said:#}");
    assert_eq!(told(), before);
    // The last good one is followed, and the next that says something.
    laid.put(SPEC, "{}");
    eventually("the spec is by the last good one", || laid.text(SPEC) == before.0);
    laid.put(FILE, "gpu-device-ids: 1\n");
    eventually("another GPU is told of", || !laid.text(SPEC).contains("renderD129"));
    running.until("nothing is wrong", |daemon| daemon["config"]["problem"].is_null());

    // A file that says nothing is not taken for a word by what begins then either: a daemon, a start of the machine, an
    // upgrade.
    laid.put(FILE, "\n");
    drop(running);
    let before = told();
    let running = Running::begin(&laid);
    assert!(is_said(&running.says()) && running.says()["config"]["in_force"] == false);
    let (code, said) = laid.fails(&["boot"]);
    assert!(code == 2 && said.contains(&problem), "{said}");
    let (code, said) = laid.fails(&["deb", "renew"]);
    assert!(code == 0 && said.contains(&problem), "{said}");
    assert_eq!(told(), before);
    // Somebody asks for it.
    laid.run(&["apply"]).success();
    running.until("it is followed", |daemon| daemon["config"]["problem"].is_null());
    assert!(laid.text(SPEC).contains("renderD130"));
}

#[test]
fn an_apply_that_changes_nothing_but_what_is_remembered_is_heard() {
    let laid = Laid::demo("daemon: {restart: now, interval-s: 86400}\n");
    let running = applied(&laid);
    laid.put(FILE, "");
    running.until("it says so", |daemon| daemon["config"]["problem"].is_string());
    assert_eq!(laid.json(&["apply"])["changes"], serde_json::json!([]));
    running.until("it is followed", |daemon| daemon["config"]["problem"].is_null());
}

#[test]
fn status_beside_a_wrong_configuration_tells_that_and_by_which_one_the_daemon_goes_on() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let running = applied(&laid);
    laid.put(FILE, "no-such-key: 1\n");
    running.until("it says so", |daemon| daemon["config"]["problem"].is_string());
    let (code, said) = laid.fails(&["status"]);
    let wrong = format!("{}:1: no-such-key is no key", laid.path(FILE).display());
    let by = format!("problem: the daemon keeps this machine so: by the last good configuration: {wrong}");
    assert!(code == 2 && said.contains(&format!("\nproblem: {wrong}")) && said.contains(&by), "{said}");
    assert!(said.contains("/etc/cdi/amd.json") && !said.contains("in sync  "), "{said}");
    let status = laid.json(&["status"]);
    assert!(status["problem"].as_str().unwrap().starts_with(&wrong), "{status:#}");
    assert_eq!((&status["drift"], &status["daemon"]["pid"]), (&serde_json::json!([]), &running.pid().into()));
    assert_eq!((status["ours"].as_array().unwrap().len(), &status["chosen"][0]["index"]), (4, &0.into()));
    // Without a daemon it tells what stands there all the same.
    drop(running);
    let (code, said) = laid.fails(&["status"]);
    assert!(code == 2 && said.contains("/etc/cdi/amd.json") && !said.contains("the daemon"), "{said}");
}

#[test]
fn one_that_starts_with_a_wrong_configuration_waits_for_a_good_one() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    laid.put(FILE, "no-such-key: 1\n");
    laid.put(SPEC, "{}");
    let running = Running::begin(&laid);
    let said = running.says();
    assert_eq!((&said["config"]["in_force"], &said["set_up"]), (&false.into(), &serde_json::Value::Null));
    // Neither is known before a configuration is in force.
    assert_eq!((&said["enforce"], &said["restart"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let (_, status) = laid.fails(&["status"]);
    assert!(
        status.contains("the daemon does nothing yet: waiting for a configuration: ")
            && !status.contains("enforce"),
        "{status}"
    );
    assert_eq!(laid.text(SPEC), "{}");
    laid.put(FILE, "schema_version: 1\n");
    eventually("the spec is ours again", || laid.text(SPEC).contains("renderD130"));
    running.until("it enforces", |daemon| daemon["enforce"] == true);
}

#[test]
fn one_that_names_a_gpu_that_was_never_there_leaves_the_last_good_one_in_force() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    laid.put(FILE, "gpu-device-ids: 0\n");
    eventually("one GPU is told of", || !laid.text(SPEC).contains("renderD130"));
    running.until("it is followed", |daemon| daemon["differs"] == serde_json::json!([]));

    laid.put(FILE, "\ngpu-device-ids: 77\n");
    let said = running.until("it says so", |daemon| daemon["config"]["problem"].is_string());
    let problem = said["config"]["problem"].as_str().unwrap();
    assert!(problem.contains("config.yaml:2: gpu-device-ids names \"77\""), "{said:#}");
    assert_eq!((&said["config"]["in_force"], &said["failing"]), (&true.into(), &serde_json::Value::Null));
    assert!(laid.text(SPEC).contains("renderD129"), "nothing is taken away");
    laid.put(SPEC, "{}");
    eventually("the spec is by the last good one", || laid.text(SPEC).contains("renderD129"));
    assert!(!laid.text(SPEC).contains("renderD130"));

    // One that starts by it has no last good one.
    drop(running);
    laid.put(SPEC, "{}");
    let running = Running::begin(&laid);
    let said = running.says();
    assert_eq!((said["config"]["in_force"].as_bool(), laid.text(SPEC).as_str()), (Some(false), "{}"));
    laid.put(FILE, "schema_version: 1\n");
    eventually("all GPUs are told of", || laid.text(SPEC).contains("renderD130"));
    running.until("nothing is wrong", |daemon| daemon["config"]["problem"].is_null());
}

#[test]
fn one_that_was_applied_from_another_place_is_not_taken_back_by_the_machines_own() {
    let laid = Laid::demo("");
    laid.put("root/other.yaml", "gpu-device-ids: 0\n");
    let other = laid.path("root/other.yaml");
    let applied = laid.json(&["--config", other.to_str().unwrap(), "apply"]);
    assert!(applied["changes"][0].is_object(), "{applied:#}");
    let running = Running::begin(&laid);
    let said = running.look();
    let problem = said["config"]["problem"].as_str().unwrap();
    let expected =
        format!("the last apply was by {}, and not by {}", other.display(), laid.path(FILE).display());
    assert!(problem.starts_with(&expected), "{said:#}");
    assert_eq!((&said["config"]["in_force"], &said["failing"]), (&false.into(), &serde_json::Value::Null));
    // An edit of the machine's own is no apply.
    laid.put(FILE, "gpu-device-ids: 1\n");
    running.look();
    assert!(laid.text(SPEC).contains("renderD129") && !laid.text(SPEC).contains("renderD130"));
    // Where both say the same, it is followed from then on.
    laid.put(FILE, "gpu-device-ids: 0\n");
    running.until("it follows it", |daemon| daemon["config"]["in_force"] == true);
    laid.put(FILE, "schema_version: 1\n");
    eventually("all GPUs are told of", || laid.text(SPEC).contains("renderD130"));
}

/// Whoever follows what status says must not give what the last apply has withheld.
#[test]
fn status_goes_by_the_configuration_of_the_last_apply_and_plan_tells_of_it() {
    let laid = Laid::demo("");
    laid.put("root/other.yaml", "gpu-device-ids: 0\n");
    let other = laid.path("root/other.yaml").display().to_string();
    laid.run(&["--config", &other, "apply"]).success();
    let status = laid.run(&["status"]).success();
    let said = String::from_utf8(status.get_output().stdout.clone()).unwrap();
    assert!(said.contains(&format!("what should be is what {other} says")), "{said}");
    let plan = laid.run(&["plan"]).success();
    let said = String::from_utf8(plan.get_output().stdout.clone()).unwrap();
    let own = laid.path(FILE).display().to_string();
    assert!(said.contains(&format!("the last apply was by {other}, and this goes by {own}")), "{said}");
}

/// A package and an archive bring a program each, in versions of their own.
#[test]
fn what_another_version_has_set_up_is_left_to_it_until_an_apply_by_this_one() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let memory = laid.text(MEMORY);
    let own = format!("\"rocworker\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(memory.contains(&own), "{memory}");
    laid.put(MEMORY, &memory.replace(&own, "\"rocworker\": \"0.0.9\""));
    laid.put(SPEC, "{}");
    let running = Running::begin(&laid);
    let said = running.look();
    let problem = said["config"]["problem"].as_str().unwrap();
    assert!(problem.starts_with("the last apply was by rocworker 0.0.9, and this is "), "{said:#}");
    assert_eq!(laid.text(SPEC), "{}");
    laid.run(&["apply"]).success();
    assert!(laid.text(MEMORY).contains(&own));
    running.until("it keeps what was applied", |daemon| daemon["config"]["in_force"] == true);
}

#[test]
fn an_apply_by_the_machines_own_configuration_ends_the_waiting_for_it() {
    let laid = Laid::demo("");
    laid.put("root/other.yaml", "gpu-device-ids: 0\n");
    laid.run(&["--config", laid.path("root/other.yaml").to_str().unwrap(), "apply"]).success();
    let running = Running::begin(&laid);
    assert_eq!(running.says()["config"]["in_force"], false);
    laid.run(&["apply"]).success();
    running.until("it keeps what was applied", |daemon| daemon["config"]["in_force"] == true);
    laid.put(SPEC, "{}");
    eventually("the spec is ours again", || laid.text(SPEC).contains("renderD130"));
}

#[test]
fn a_template_that_is_half_written_takes_nothing_away() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let spec = laid.text(SPEC);
    for template in ["cdi/amd.json", "udev/70-amdgpu.rules", "wrapper.json"] {
        let path = format!("etc/rocworker/templates/{template}");
        laid.put(&path, "{% if broken");
        let said = running.until("it says so", |daemon| daemon["failing"].is_object());
        let what = said["failing"]["what"][0]["text"].as_str().unwrap();
        assert!(what.contains(template), "{said:#}");
        assert_eq!((laid.text(SPEC), &said["differs"]), (spec.clone(), &serde_json::json!([])));
        std::fs::remove_file(laid.path(&path)).unwrap();
        running.until("nothing fails", |daemon| daemon["failing"].is_null());
    }
    assert_eq!((laid.text(SPEC), &running.says()["counts"]["changes"]), (spec, &0.into()));
}

#[test]
fn templates_of_the_operators_come_through() {
    let laid = Laid::demo("wrapper: {requests: count}\n");
    let _running = applied(&laid);
    let text = laid.text("etc/rocworker/wrapper.json");
    let template = include_str!("../../../templates/wrapper.json");
    laid.put("etc/rocworker/templates/wrapper.json", &format!("\n{template}"));
    eventually("the policy is by the template", || laid.text("etc/rocworker/wrapper.json") != text);
}

#[test]
fn sighup_has_it_look_at_once() {
    let laid = Laid::demo("daemon: {interval-s: 86400}\n");
    let running = applied(&laid);
    let before = running.says();
    running.signal(Signal::SIGHUP);
    let said =
        running.until("it has looked", |daemon| daemon["counts"]["looks"] != before["counts"]["looks"]);
    assert_eq!(said["last"]["causes"], serde_json::json!(["reload"]), "{said:#}");
}

#[test]
fn a_second_one_is_refused_in_a_sentence() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let output = command(&laid).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lock = laid.path("run/rocworker/daemon.lock");
    let expected =
        format!("another rocworker serve runs already, and has {}: see rocworker status", lock.display());
    assert!(said.contains(&expected) && said.lines().count() == 1, "{said}");
    assert!(running.says()["pid"].is_u64(), "the first goes on");
}

#[test]
fn what_fails_is_tried_again_later_each_time_and_at_once_when_it_was_put_right() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let receipt = "var/lib/rocworker/receipt.json";
    let right = laid.text(receipt);
    laid.put(receipt, "{");
    let first = running.until("it fails", |daemon| daemon["failing"]["times"] == 1);
    let what = first["failing"]["what"][0]["text"].as_str().unwrap();
    assert!(what.contains("receipt.json"), "{what}");
    let third = running.until("it has failed three times", |daemon| daemon["failing"]["times"] == 3);
    assert_eq!(third["last"]["causes"], serde_json::json!(["retry"]));
    let failing = &third["failing"];
    // After one second and two more.
    let waited = third["last"]["at"].as_u64().unwrap() - failing["since"].as_u64().unwrap();
    assert!((2..10).contains(&waited), "{third:#}");
    assert!(failing["again"].as_u64() > third["last"]["at"].as_u64(), "{third:#}");
    assert_eq!(third["counts"]["looks"].as_u64().unwrap() - first["counts"]["looks"].as_u64().unwrap(), 2);
    laid.put(receipt, &right);
    running.until("nothing fails", |daemon| daemon["failing"].is_null());
}
