//! Policies, requests, records and process files in every state: one sentence that names the file
//! or the GPU where something asked for is not done, and a container that asks for nothing starts.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use runc_amd_wrapper::wrap::Verdict;
use serde_json::json;

use crate::stage::{Outcome, Stage, config, policy};

const ASKING: &[&str] = &["AMD_VISIBLE_DEVICES=0"];

/// The result for a container of each kind.
#[derive(Clone, Copy, Debug)]
enum Meets<'a> {
    /// All containers start, with so many warnings.
    PlainRunc(usize),
    /// A container that asks fails with a sentence that holds this text.
    Refusal(&'a str),
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn failed_with(outcome: &Outcome, part: &str) -> bool {
    let messages = outcome.messages("error");
    outcome.verdict == Verdict::Fail && messages.len() == 1 && messages[0].contains(part)
}

#[test]
fn a_policy_that_cannot_be_used_stops_only_what_asks_and_one_that_is_not_roots_stops_nothing() {
    type Make = fn(&Stage, &Path);
    let good = || policy("all", "none").to_string();
    let with = |key: &str, value: serde_json::Value| {
        let mut policy = policy("all", "none");
        policy[key] = value;
        policy.to_string()
    };
    let texts = [
        ("half-written", good()[..40].to_owned(), Meets::Refusal("wrapper.json")),
        ("empty file", String::new(), Meets::Refusal("wrapper.json")),
        ("newer", with("schema_version", json!(3)), Meets::Refusal("schema_version 3")),
        ("unknown key", with("gpu", json!(1)), Meets::Refusal("unknown field `gpu`")),
        ("a wait of hours", with("wait_limit_s", json!(7200)), Meets::Refusal("wait_limit_s")),
        ("folders", with("folders", json!(["srv"])), Meets::Refusal("absolute path like")),
        ("edits", with("edits", json!({"env": []})), Meets::Refusal("unknown field `env`")),
        ("wrong type", with("gpus", json!("all")), Meets::Refusal("wrapper.json")),
        ("2 MB", format!("{}{}", good(), " ".repeat(2 << 20)), Meets::Refusal("longer than")),
        ("says nothing", "{}".to_owned(), Meets::PlainRunc(0)),
        ("no requests", with("requests", json!(null)), Meets::PlainRunc(0)),
    ];
    let states: [(&str, Make, Meets<'_>); 6] = [
        ("absent", |_, path| std::fs::remove_file(path).unwrap(), Meets::PlainRunc(0)),
        ("writable by others", |_, path| set_mode(path, 0o646), Meets::PlainRunc(1)),
        ("writable by the group", |_, path| set_mode(path, 0o664), Meets::PlainRunc(1)),
        (
            "a link",
            |stage, path| {
                std::fs::rename(path, stage.path("elsewhere")).unwrap();
                symlink(stage.path("elsewhere"), path).unwrap();
            },
            Meets::PlainRunc(1),
        ),
        (
            "a fifo",
            |_, path| {
                std::fs::remove_file(path).unwrap();
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            },
            Meets::PlainRunc(1),
        ),
        (
            "a folder",
            |_, path| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            Meets::PlainRunc(1),
        ),
    ];
    let keep: Make = |_, _| {};
    let texts = texts.iter().map(|(kind, text, meets)| (*kind, text.clone(), keep, *meets));
    let states = states.into_iter().map(|(kind, make, meets)| (kind, good(), make, meets));
    for (kind, text, make, meets) in texts.chain(states) {
        let stage = Stage::new();
        let path = stage.path("wrapper.json");
        std::fs::write(&path, text).unwrap();
        make(&stage, &path);
        let asking = stage.create(config(ASKING));
        match meets {
            Meets::PlainRunc(warnings) => {
                assert!(asking.runs() && asking.messages("warning").len() == warnings, "{kind}: {asking:?}");
            }
            Meets::Refusal(part) => {
                assert!(failed_with(&asking, part), "{kind}: {asking:?}");
                assert!(asking.messages("error")[0].contains("wrapper.json"), "{kind}: {asking:?}");
            }
        }
        assert_eq!(stage.config(), config(ASKING).as_bytes(), "{kind}");
        for env in [&[][..], &["AMD_VISIBLE_DEVICES=none"], &["AMD_VISIBLE_DEVICES="], &["AMD_GPU_COUNT=0"]] {
            let silent = stage.create(config(env));
            assert!(silent.runs() && stage.config() == config(env).as_bytes(), "{kind} {env:?}: {silent:?}");
        }
        assert!(!stage.path("run").exists(), "{kind}");
    }
    let mut strangers = Stage::new();
    strangers.policy("all", "all");
    strangers.paths.lease.owner += 1;
    let outcome = strangers.create(config(ASKING));
    assert!(outcome.runs() && outcome.messages("warning")[0].contains("owner"), "{outcome:?}");
}

#[test]
fn a_request_that_is_not_honoured_fails_with_a_sentence_that_names_it() {
    let million = format!("AMD_VISIBLE_DEVICES={}", "0,".repeat(500_000));
    let kubernetes =
        config(ASKING).replacen('{', r#"{"annotations":{"io.kubernetes.cri.container-type":"x"},"#, 1);
    for (requests, config, part) in [
        ("all", config(&["AMD_VISIBLE_DEVICES=../.."]), "../.."),
        ("all", config(&["AMD_VISIBLE_DEVICES=0-9999"]), "1024"),
        ("all", config(&["AMD_GPU_COUNT=10000"]), "AMD_GPU_COUNT"),
        ("all", config(&[&million]), "AMD_VISIBLE_DEVICES has 1000000 bytes"),
        ("all", config(&["AMD_VISIBLE_DEVICES=\u{1b}[31m"]), "\\u{1b}[31m"),
        ("all", config(&["AMD_VISIBLE_DEVICES=7"]), "no GPU \"7\""),
        ("all", config(&["AMD_VISIBLE_DEVICES=0000:99:00.0"]), "0000:99:00.0"),
        ("all", config(&["AMD_GPU_COUNT=3"]), "3 GPUs"),
        ("all", config(&["AMD_GPU_COUNT=1", "AMD_VISIBLE_DEVICES=0"]), "only one"),
        ("all", config(&["AMD_VISIBLE_DEVICES=none", "AMD_VISIBLE_DEVICES=7"]), "no GPU \"7\""),
        ("all", kubernetes, "Kubernetes"),
        ("deny", config(ASKING), "deny"),
        ("named", config(&["AMD_GPU_COUNT=1"]), "AMD_VISIBLE_DEVICES"),
        ("named", config(&["AMD_VISIBLE_DEVICES=all"]), "AMD_VISIBLE_DEVICES"),
        ("count", config(ASKING), "AMD_GPU_COUNT"),
    ] {
        let stage = Stage::new();
        stage.policy(requests, "none");
        let outcome = stage.create(&config);
        assert!(failed_with(&outcome, part), "{requests}, {part}: {outcome:?}");
        assert!(outcome.messages("error")[0].len() < 600, "{outcome:?}");
        assert!(stage.config() == config.as_bytes() && stage.record("c1").is_none(), "{part}");
    }
}

#[test]
fn records_that_cannot_be_kept_stop_a_request_and_not_the_default() {
    type Make = fn(&Stage);
    let states: [(&str, Make); 3] = [
        ("a file", |stage| stage.write("run", "")),
        ("a link", |stage| symlink(stage.path("bin"), stage.path("run")).unwrap()),
        ("world-writable", |stage| {
            std::fs::create_dir(stage.path("run")).unwrap();
            set_mode(&stage.path("run"), 0o777);
        }),
    ];
    for (kind, make) in states {
        let stage = Stage::new();
        make(&stage);
        stage.policy("all", "all");
        let asking = stage.create(config(ASKING));
        assert!(failed_with(&asking, stage.path("run").to_str().unwrap()), "{kind}: {asking:?}");
        let default = stage.create(config(&[]));
        assert!(default.runs() && default.messages("warning").len() == 1, "{kind}: {default:?}");
        let none = stage.create(config(&["AMD_VISIBLE_DEVICES=void"]));
        assert!(none.runs() && none.log.is_empty(), "{kind}: {none:?}");
    }
}

#[test]
fn a_process_file_is_edited_only_where_it_is_plainly_the_callers_own() {
    type Make = fn(&Stage, &Path);
    let process = json!({"args": ["x"], "cwd": "/", "user": {"uid": 0, "gid": 0}}).to_string();
    let states: [(&str, Make, Option<&str>); 7] = [
        ("plain", |_, _| {}, None),
        (
            "a link",
            |stage, path| {
                std::fs::rename(path, stage.path("elsewhere")).unwrap();
                symlink(stage.path("elsewhere"), path).unwrap();
            },
            Some("symbolic link"),
        ),
        (
            "two hard links",
            |stage, path| std::fs::hard_link(path, stage.path("other")).unwrap(),
            Some("hard link"),
        ),
        ("no JSON", |_, path| std::fs::write(path, "mud").unwrap(), Some("cannot be edited")),
        ("doubled keys", |_, path| std::fs::write(path, r#"{"user":{},"User":{}}"#).unwrap(), Some("twice")),
        ("20 MB", |_, path| std::fs::write(path, vec![b' '; 20 << 20]).unwrap(), Some("longer than")),
        (
            "a folder",
            |_, path| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            Some("process"),
        ),
    ];
    for (kind, make, refused) in states {
        let stage = Stage::new();
        stage.policy("all", "none");
        stage.write("process", &process);
        let path = stage.path("process");
        make(&stage, &path);
        let before = std::fs::read(&path).ok();
        let exec = ["exec", "--process", path.to_str().unwrap(), "c1"];
        let without = stage.call(&exec);
        assert!(without.runs() && without.log.is_empty(), "{kind}, no record: {without:?}");
        assert_eq!(std::fs::read(&path).ok(), before, "{kind}");

        stage.write_record("c1", 0, &[992], true);
        let with = stage.call(&exec);
        match refused {
            Some(part) => {
                assert!(failed_with(&with, part) && failed_with(&with, "process"), "{kind}: {with:?}");
                assert_eq!(std::fs::read(&path).ok(), before, "{kind}");
            }
            None => {
                assert!(with.runs() && with.log.is_empty(), "{kind}: {with:?}");
                let text = std::fs::read(&path).unwrap();
                let edited: serde_json::Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(edited["user"]["additionalGids"], json!([992]));
                let again = stage.call(&exec);
                assert!(
                    again.runs() && std::fs::read(&path).unwrap() == text,
                    "a second pass changes nothing"
                );
                // Another user's runc has containers of its own, of which no record is kept.
                let stranger = stage.call_as(stage.user + 1, &exec);
                assert!(stranger.runs() && std::fs::read(&path).unwrap() == text, "{stranger:?}");
                if stage.user == 0 {
                    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
                    let foreign = stage.call(&exec);
                    assert!(failed_with(&foreign, "not the caller's"), "{foreign:?}");
                }
            }
        }
    }
}

#[test]
fn a_record_that_cannot_be_read_stops_an_exec_of_that_container_alone() {
    let stage = Stage::new();
    stage.policy("all", "none");
    stage.write_record("c1", 0, &[992], true);
    stage.write("process", "{}");
    let path = stage.path("process");
    let exec = |id| stage.call(&["exec", "-p", path.to_str().unwrap(), id]);
    for text in ["", "{}", r#"{"schema_version":2}"#, r#"{"schema_version":3}"#] {
        std::fs::write(stage.record_path("c1"), text).unwrap();
        assert!(failed_with(&exec("c1"), "container c1"), "{text}");
        assert!(exec("c2").runs());
    }
}

#[test]
fn a_record_goes_with_its_container_and_not_before() {
    let stage = Stage::new();
    stage.policy("all", "none");
    for (arguments, lives, stays) in [
        (&["delete", "c1"][..], true, true),
        (&["delete", "--force", "c1"], true, false),
        (&["delete", "c1"], false, false),
        (&["delete", "c2"], false, true),
        (&["kill", "c1", "KILL"], false, true),
        (&["state", "c1"], false, true),
    ] {
        stage.write_record("c1", 0, &[], lives);
        let outcome = stage.call(arguments);
        assert!(outcome.runs() && outcome.log.is_empty(), "{arguments:?}: {outcome:?}");
        assert_eq!(stage.record("c1").is_some(), stays, "{arguments:?}, lives: {lives}");
    }
    // A later container of that name which has no GPUs is not taken for the earlier one.
    let outcome = stage.create(config(&[]));
    assert!(outcome.runs() && stage.record("c1").is_none(), "{outcome:?}");
}

#[test]
fn a_flag_of_a_newer_runc_stops_a_call_only_where_gpus_depend_on_it() {
    let stage = Stage::new();
    stage.policy("all", "none");
    stage.write_record("c1", 0, &[992], true);
    stage.write("process", "{}");
    let path = stage.path("process").to_str().unwrap().to_owned();
    let doubtful = ["exec", "-p", &path, "--new", "c1", "c2"];
    assert!(failed_with(&stage.call(&doubtful), "not certain which container"));
    assert!(stage.call(&["exec", "-p", &path, "--new=x", "c1"]).runs());
    assert!(stage.call(&["exec", "-p", &path, "--new", "c3", "c4"]).runs());
    assert!(stage.call(&["exec", "--new", "c1", "c2"]).runs());

    stage.bundle(config(ASKING));
    let bundle = stage.path("bundle");
    let asking = ["--new", "state", "create", "--bundle", bundle.to_str().unwrap(), "c5"];
    assert!(failed_with(&stage.call(&asking), "not certain which container"));
    stage.bundle(config(&[]));
    assert!(stage.call(&asking).runs());
}

#[test]
fn the_runtime_of_a_policy_serves_every_call() {
    let stage = Stage::new();
    let other = stage.path("other-runc");
    std::fs::write(&other, "").unwrap();
    set_mode(&other, 0o755);
    let on_path = stage.path("bin/runc");
    for (runtime, expected) in [
        (json!(null), &on_path),
        (json!(other), &other),
        (json!("runc"), &on_path),
        (json!(7), &on_path),
        // A runtime that is gone keeps no container from starting: see the warning.
        (json!("/none"), &on_path),
    ] {
        let mut policy = policy("all", "none");
        policy["runtime"] = runtime.clone();
        stage.write("wrapper.json", policy.to_string());
        stage.bundle(config(&[]));
        let bundle = stage.path("bundle");
        for call in
            [&["state", "c1"][..], &["--version"], &["create", "-b", bundle.to_str().unwrap(), "c1"], &[]]
        {
            let outcome = stage.call(call);
            let run = Verdict::Run { runtime: expected.clone(), depth: 1 };
            assert_eq!(outcome.verdict, run, "{call:?}");
            let warned =
                outcome.log.iter().any(|(level, message)| level == "warning" && message.contains("/none"));
            assert_eq!(warned, runtime == json!("/none"), "{call:?}: {outcome:?}");
        }
    }
}
