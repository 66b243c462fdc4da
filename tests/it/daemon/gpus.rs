//! GPUs that go and come, by the record of a captured machine's nodes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::daemon::running::{Running, applied, eventually};
use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";
const TAGS: &str = "etc/rocworker/concourse.env";

/// A Concourse worker as its charm sets one up (fourdollars/concourse-ci-machine); the version of its containerd is told
/// by dpkg, for no program is run beneath another root.
fn machine(config: &str) -> Laid {
    let laid = Laid::demo(config);
    laid.put(
        "etc/systemd/system/concourse-worker.service",
        "[Service]\nEnvironmentFile=/var/lib/concourse-worker/worker-config.env\n\
         ExecStart=/var/lib/concourse/bin/concourse worker\n",
    );
    for program in ["var/lib/concourse/bin/concourse", "var/lib/concourse/bin/containerd"] {
        laid.put(program, "");
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    laid.put(
        "var/lib/dpkg/status",
        "Package: containerd\nStatus: install ok installed\nVersion: 1.7.24~ds1-6\nArchitecture: amd64\n\n",
    );
    tag(&laid, "linux");
    laid
}

/// The worker's own tags.
fn tag(laid: &Laid, tags: &str) {
    let text = format!(
        "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG={tags}\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n"
    );
    laid.put("var/lib/concourse-worker/worker-config.env", &text);
}

/// The node of a GPU goes, or comes back.
fn node(laid: &Laid, is_there: bool) {
    let names = ["/dev/dri/renderD129\"", "/dev/dri/renderD229\""];
    let (from, to) = if is_there { (names[1], names[0]) } else { (names[0], names[1]) };
    let recorded = laid.text("capture.json");
    assert!(recorded.contains(from), "{recorded}");
    laid.put("capture.json", &recorded.replace(from, to));
}

/// Every card of AMD's falls off its bus.
fn lose_cards(laid: &Laid) {
    let cards = fs::read_dir(laid.path("sys/bus/pci/devices")).unwrap().map(|entry| entry.unwrap().path());
    let is_amds = |path: &PathBuf| {
        fs::read_to_string(path.join("vendor")).is_ok_and(|vendor| vendor.trim() == "0x1002")
    };
    for card in cards.filter(is_amds).collect::<Vec<_>>() {
        fs::remove_file(card).unwrap();
    }
    fs::remove_dir_all(laid.path("sys/class/kfd")).unwrap();
    fs::remove_dir_all(laid.path("sys/class/drm")).unwrap();
}

/// udev's rules are changed after apply, and udev goes over the node again.
#[test]
fn a_node_that_gets_another_group_is_offered_with_that_group_at_once() {
    let laid = Laid::demo("");
    let _running = applied(&laid);
    let group = || {
        let spec: Value = serde_json::from_str(&laid.text(SPEC)).unwrap();
        let nodes = spec["devices"][0]["containerEdits"]["deviceNodes"].as_array().unwrap().clone();
        let render = nodes.into_iter().find(|node| node["path"] == "/dev/dri/renderD129");
        render.unwrap()["gid"].as_u64()
    };
    assert_eq!(group(), Some(992));
    let mut recorded: Value = serde_json::from_str(&laid.text("capture.json")).unwrap();
    let mut nodes = recorded["nodes"].as_array_mut().unwrap().iter_mut();
    nodes.find(|node| node["path"] == "/dev/dri/renderD129").unwrap()["gid"] = 110.into();
    laid.put("capture.json", &recorded.to_string());
    eventually("the spec names its new group", || group() == Some(110));
}

#[test]
fn a_gpu_that_goes_is_offered_no_more_at_once_and_is_again_when_it_comes_back() {
    let laid = Laid::demo("");
    let _running = applied(&laid);
    for _ in 0..2 {
        node(&laid, false);
        let gone = eventually("it is offered no more", || !laid.text(SPEC).contains("renderD129"));
        node(&laid, true);
        let back = eventually("it is offered again", || laid.text(SPEC).contains("renderD129"));
        eprintln!("gone after {gone:?}, back after {back:?}");
    }
}

#[test]
fn a_chosen_gpu_that_is_left_out_is_a_problem_that_is_told() {
    let laid = Laid::demo("gpu-device-ids: [0, 1]\n");
    let running = applied(&laid);
    assert_eq!(running.says()["problems"], serde_json::json!([]));
    node(&laid, false);
    let said = running.until("it is told", |daemon| daemon["problems"][0].is_object());
    assert_eq!((&said["problems"][0]["about"], &said["failing"]), (&"gpu".into(), &Value::Null));
    let (code, told) = laid.fails(&["status"]);
    let sentence =
        "problem: the daemon keeps this machine so: 1 problem: gpu: GPU 0 is configured and left out: ";
    assert!(code == 3 && told.contains(sentence), "{told}");
    node(&laid, true);
    running.until("it is none any more", |daemon| daemon["problems"] == serde_json::json!([]));
}

#[test]
fn the_question_about_a_workers_first_tags_is_a_problem_that_the_daemon_reports_and_no_tag_comes() {
    let laid = machine("concourse: {tags: false}\n");
    tag(&laid, "");
    let running = applied(&laid);
    let before = laid.text(TAGS);
    laid.put("etc/rocworker/config.yaml", "restart: drain\n");
    let said = running.until("it is told", |daemon| daemon["problems"][0].is_object());
    let about = said["problems"][0]["text"].as_str().unwrap();
    assert!(about.starts_with("this Concourse worker has no tags") && said["failing"].is_null(), "{said:#}");
    assert_eq!(laid.text(TAGS), before);
    assert!(!before.contains("CONCOURSE_TAG"), "{before}");
    laid.put("etc/rocworker/config.yaml", "concourse: {tags: true}\n");
    eventually("the answer is followed", || laid.text(TAGS).contains("CONCOURSE_TAG=gpu,"));
}

#[test]
fn a_chosen_gpu_that_has_gone_from_the_bus_is_offered_no_more() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let running = applied(&laid);
    lose_cards(&laid);
    let said = running.look();
    assert!(!laid.path(SPEC).exists(), "{said:#}");
    let what = said["failing"]["what"][0]["text"].as_str().unwrap();
    assert!(what.contains("gpu-device-ids") && said["config"]["problem"].is_null(), "{said:#}");
    // One that begins then knows that it was followed.
    drop(running);
    laid.put(SPEC, "{}");
    let said = Running::begin(&laid).says();
    assert!(said["config"]["problem"].is_null() && said["failing"].is_object(), "{said:#}");
}

#[test]
fn beside_a_half_written_template_what_has_gone_is_offered_no_more_and_the_rest_stays() {
    let laid = machine("daemon: {settle-s: 1}\n");
    let running = applied(&laid);
    let template = "etc/rocworker/templates/udev/70-amdgpu.rules";
    laid.put(template, "{% if broken");
    running.until("it says so", |daemon| daemon["failing"].is_object());
    let tags = laid.text(TAGS);
    node(&laid, false);
    eventually("it is offered no more", || !laid.text(SPEC).contains("renderD129"));
    assert!(laid.text(SPEC).contains("renderD130") && laid.text(TAGS) == tags);
    let took = eventually("tags that say more than is there go", || !laid.path(TAGS).exists());
    eprintln!("after {took:?}");
    fs::remove_file(laid.path(template)).unwrap();
    eventually("they say what is there", || {
        fs::read_to_string(laid.path(TAGS)).is_ok_and(|text| text.contains("gpu-count=8"))
    });
    node(&laid, true);
    eventually("it is offered again", || laid.text(SPEC).contains("renderD129"));
}

#[test]
fn a_gpu_that_resets_takes_no_tag_away() {
    let laid = machine("daemon: {settle-s: 3600}\n");
    let running = applied(&laid);
    let (tags, written) = (laid.text(TAGS), fs::metadata(laid.path(TAGS)).unwrap().ino());
    assert!(tags.contains("linux,gpu,") && tags.contains("gpu-count=9"), "{tags}");
    for _ in 0..2 {
        node(&laid, false);
        eventually("it is offered no more", || !laid.text(SPEC).contains("renderD129"));
        let said = running.until("tags are kept", |daemon| daemon["tags_held_until"].is_u64());
        assert_eq!(why(&said, TAGS), Some("settling".into()), "{said:#}");
        node(&laid, true);
        running.until("nothing is kept back", |daemon| {
            daemon["tags_held_until"].is_null() && daemon["differs"] == serde_json::json!([])
        });
    }
    assert_eq!((laid.text(TAGS), fs::metadata(laid.path(TAGS)).unwrap().ino()), (tags, written));
}

#[test]
fn tags_are_kept_over_a_start_a_reload_and_an_edit_that_decides_nothing_about_gpus() {
    let config = |more: &str| format!("daemon: {{settle-s: 3600{more}}}\n");
    let laid = machine(&config(""));
    laid.run(&["apply"]).success();
    let tags = laid.text(TAGS);
    node(&laid, false);
    let running = Running::begin(&laid);
    let is_held = |said: &Value, when: &str| {
        let why = why(said, TAGS);
        assert_eq!((laid.text(TAGS), why), (tags.clone(), Some("settling".into())), "{when}: {said:#}");
    };
    let said = running.says();
    is_held(&said, "at the start");
    assert!(!laid.text(SPEC).contains("renderD129"), "it is offered no more");
    is_held(&running.look(), "after a reload");
    laid.put("etc/rocworker/config.yaml", &config(", restart: drain"));
    running.until("the edit counts", |daemon| daemon["restart"] == "drain");
    let edited = running.look();
    is_held(&edited, "after an edit");
    // Since the same moment, as far as whole seconds tell.
    let until = |said: &Value| said["tags_held_until"].as_u64().unwrap();
    assert!(until(&edited).abs_diff(until(&said)) <= 1, "{said:#} {edited:#}");
    laid.put("etc/rocworker/config.yaml", &format!("{}gpu-device-ids: 1\n", config("")));
    eventually("one GPU is offered", || laid.text(TAGS).contains("gpu-count=1"));
}

#[test]
fn a_gpu_that_stays_away_takes_its_tags_with_it_after_a_while() {
    let laid = machine("daemon: {settle-s: 1}\n");
    let running = applied(&laid);
    node(&laid, false);
    let took = eventually("the tags are fewer", || laid.text(TAGS).contains("gpu-count=8"));
    eprintln!("after {took:?}");
    assert!(took >= Duration::from_secs(1), "{took:?}");
    running.until("nothing is kept back", |daemon| daemon["tags_held_until"].is_null());
    // One that comes does not wait.
    node(&laid, true);
    eventually("the tags are more", || laid.text(TAGS).contains("gpu-count=9"));
}

/// Why a path differs, as the daemon says it.
fn why(said: &Value, path: &str) -> Option<Value> {
    let differs = said["differs"].as_array().unwrap();
    differs.iter().find(|it| it["path"] == format!("/{path}")).map(|it| it["why"].clone())
}

#[test]
fn one_that_only_reports_does_not_wait_again_and_again_with_the_tags_of_a_gpu_that_stays_away() {
    let laid = machine("daemon: {settle-s: 1, enforce: false}\n");
    let running = applied(&laid);
    node(&laid, false);
    let said = running.until("they are kept at first", |daemon| daemon["tags_held_until"].is_u64());
    assert_eq!(why(&said, TAGS), Some("settling".into()), "{said:#}");
    running.until("they might go", |daemon| daemon["tags_held_until"].is_null());
    for text in ["{}", "[]"] {
        let before = running.says();
        laid.put(SPEC, text);
        let said =
            running.until("it has looked", |daemon| daemon["counts"]["looks"] != before["counts"]["looks"]);
        assert_eq!(said["last"]["causes"], serde_json::json!(["files"]), "{said:#}");
        assert_eq!((why(&said, TAGS), &said["tags_held_until"]), (Some("reported".into()), &Value::Null));
    }
}

#[test]
fn a_look_that_fails_when_tags_may_go_is_not_repeated_without_a_pause() {
    let laid = machine("daemon: {settle-s: 1}\n");
    let running = applied(&laid);
    node(&laid, false);
    running.until("tags are kept", |daemon| daemon["tags_held_until"].is_u64());
    laid.put("var/lib/rocworker/receipt.json", "{");
    // The receipt is heard of in one event or two, and the time is over once.
    let said = running.until("it has failed four times", |daemon| daemon["failing"]["times"] == 4);
    assert_eq!(said["last"]["causes"], serde_json::json!(["retry"]), "{said:#}");
}

#[test]
fn what_a_person_or_the_charm_decides_about_tags_does_not_wait() {
    let laid = machine("daemon: {settle-s: 3600}\n");
    let _running = applied(&laid);
    tag(&laid, "windows");
    eventually("the charm's own tags come through", || laid.text(TAGS).contains("=windows,gpu,"));
    laid.put("etc/rocworker/config.yaml", "daemon: {settle-s: 3600}\ngpu-device-ids: 0\n");
    eventually("one GPU is offered", || laid.text(TAGS).contains("gpu-count=1"));
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    eventually("none is", || !laid.path(TAGS).exists());
}

#[test]
fn a_machine_that_has_lost_every_card_stays_set_up_and_offers_none() {
    let laid = machine("daemon: {settle-s: 0}\nwrapper: {requests: count}\n");
    let running = applied(&laid);
    let shim = "usr/local/lib/rocworker/shim/runc";
    assert!(fs::symlink_metadata(laid.path(shim)).is_ok());
    lose_cards(&laid);
    let said = running.look();
    assert_eq!(
        laid.json(&["detect"])["gpus"].as_array().unwrap().iter().filter(|it| it["vendor"] == "amd").count(),
        0
    );
    assert_eq!((laid.path(SPEC).exists(), laid.path(TAGS).exists()), (false, false), "{said:#}");
    assert!(laid.path("etc/udev/rules.d/70-amdgpu.rules").exists());
    let why: Vec<_> = said["differs"].as_array().unwrap().iter().map(|it| it["why"].clone()).collect();
    assert!(!why.is_empty() && why.iter().all(|why| why == "apply"), "{said:#}");
}
