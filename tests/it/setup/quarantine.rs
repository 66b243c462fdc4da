//! `wrapper.quarantine`, from the configuration to a create.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::wrap::{Verdict, wrap};
use serde_json::{Value, json};

use crate::setup::laid::Laid;

const POLICY: &str = "etc/rocworker/wrapper.json";

/// What a plan says of it.
fn notes(laid: &Laid) -> Vec<String> {
    let plan = laid.json(&["plan"]);
    let texts =
        plan["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap().to_owned());
    texts.filter(|text| text.contains("wrapper.quarantine")).collect()
}

#[test]
fn quarantine_reaches_from_the_configuration_to_a_create() {
    let laid = Laid::with_engines("wrapper: {quarantine: true}\n");
    laid.run(&["apply"]).success();
    let policy: Value = serde_json::from_str(&laid.text(POLICY)).unwrap();
    assert_eq!(policy["quarantine"], true);
    let card = policy["gpus"][0]["card"].as_str().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let health = |card: &str| {
        let quarantine =
            json!({"since": 0, "unhealthy_at": 0, "reason": "A ring hangs.", "rules": ["hang-now"]});
        let gpu = json!({"pci": card, "state": "unhealthy", "score": 0, "hang": true, "deductions": [], "unknown": [],
                         "quarantine": quarantine, "leftover": null});
        json!({"schema_version": 1, "written_at": now, "gpus": [gpu], "unknown": []}).to_string()
    };
    laid.put("run/rocworker/health.json", &health(card));
    laid.put("bundle/config.json", r#"{"process": {"env": ["AMD_VISIBLE_DEVICES=0"]}, "linux": {}}"#);
    let create = || {
        let log = laid.path("log");
        let _ = fs::remove_file(&log);
        let paths = Paths {
            policy: laid.path(POLICY),
            health: laid.path("run/rocworker/health.json"),
            dev: laid.path("without-nodes"),
            lease: lease::paths::Paths {
                run: laid.path("run/rocworker"),
                owner: fs::metadata(laid.path(POLICY)).unwrap().uid(),
                ..lease::paths::Paths::system()
            },
            ..Paths::system()
        };
        let bundle = laid.path("bundle");
        let arguments =
            ["--log", log.to_str().unwrap(), "create", "--bundle", bundle.to_str().unwrap(), "c1"];
        let arguments = arguments.map(str::as_bytes);
        let verdict =
            wrap(&arguments, &Environment { entries: &[], effective_user: paths.lease.owner }, &paths);
        assert_eq!(verdict, Verdict::Fail, "the nodes are not this machine's");
        fs::read_to_string(log).unwrap()
    };
    let said = create();
    assert!(
        said.contains("the GPU 0 (") && said.contains("is quarantined since 1970-01-01T00:00:00Z: A ring"),
        "{said}"
    );
    laid.put("run/rocworker/health.json", &health("0000:ff:1f.7"));
    let said = create();
    assert!(said.contains("the device node") && !said.contains("quarantine"), "{said}");
}

#[test]
fn where_no_daemon_would_say_which_gpus_are_unhealthy_plan_says_so() {
    for (is_by_systemd, config, expected) in [
        (true, "wrapper: {quarantine: true}", false),
        (true, "wrapper: {quarantine: true}\ndaemon: {unit: false}", true),
        (false, "wrapper: {quarantine: true}", true),
        (false, "wrapper: {quarantine: true, requests: deny}", false),
        (false, "wrapper: {quarantine: false}", false),
    ] {
        let said = notes(&Laid::started(is_by_systemd, true, config));
        assert_eq!(said.len(), usize::from(expected), "{config}: {said:?}");
        let begins = "wrapper.quarantine withholds no GPU until rocworker's daemon runs";
        assert!(said.iter().all(|note| note.starts_with(begins)), "{said:?}");
    }
}
