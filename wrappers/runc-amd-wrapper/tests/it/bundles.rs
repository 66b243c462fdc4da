//! Bundles as somebody hostile, or a careless engine, would write them: a container that asks for nothing
//! starts from each with its bundle untouched; one that asks is given its GPUs or refused, never neither.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::stage::{Stage, config, names};

const ASKING: &[&str] = &["AMD_VISIBLE_DEVICES=0"];

/// Makes a bundle that cannot be edited of one that can.
type Make = fn(&str) -> Vec<u8>;

fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("17 MB", |config| padded(config, 17 << 20)),
        ("100 MB", |config| padded(config, 100 << 20)),
        ("process twice", |config| config.replacen('{', r#"{"process":{"env":[]},"#, 1).into_bytes()),
        ("Process and process", |config| config.replacen('{', r#"{"Process":{"env":[]},"#, 1).into_bytes()),
        ("process twice, once escaped", |config| {
            config.replacen('{', r#"{"\u0070rocess":{},"#, 1).into_bytes()
        }),
        ("linux twice", |config| config.replacen('{', r#"{"linux":{},"#, 1).into_bytes()),
        ("not UTF-8", |config| [&config.as_bytes()[..config.len() - 1], b",\"x\":\"\xff\"}"].concat()),
        ("half-written", |config| config.as_bytes()[..config.len() - 2].to_vec()),
        ("something behind it", |config| format!("{config} {{}}").into_bytes()),
    ]
}

fn padded(config: &str, length: usize) -> Vec<u8> {
    config.replacen('{', &format!("{{\"padding\":\"{}\",", "x".repeat(length)), 1).into_bytes()
}

#[test]
fn a_bundle_that_cannot_be_edited_stops_a_container_only_if_it_asks() {
    let stage = Stage::new();
    for (kind, make) in hostile() {
        stage.policy("all", "none");
        let bytes = make(&config(ASKING));
        let outcome = stage.create(&bytes);
        let reported = outcome.messages("error").concat();
        assert!(!outcome.runs() && reported.contains("bundle/config.json"), "{kind}: {outcome:?}");
        assert!(stage.config() == bytes && !stage.record_path("c1").exists(), "{kind}");

        for default in ["none", "all"] {
            stage.policy("all", default);
            let bytes = make(&config(&[]));
            let outcome = stage.create(&bytes);
            assert!(outcome.runs() && stage.config() == bytes, "{kind}, default {default}: {outcome:?}");
            let warnings = outcome.messages("warning");
            assert_eq!(warnings.len(), usize::from(default == "all"), "{kind}, {default}: {warnings:?}");
        }
        assert_eq!(names(&stage.path("bundle")), ["config.json"], "{kind}");
    }
}

#[test]
fn a_config_that_is_a_link_is_never_edited_through_it() {
    let stage = Stage::new();
    for (env, runs) in [(ASKING, false), (&["AMD_VISIBLE_DEVICES=none"], true), (&[], true)] {
        for default in ["none", "all"] {
            stage.policy("all", default);
            stage.bundle("");
            stage.write("elsewhere", config(env));
            std::fs::remove_file(stage.path("bundle/config.json")).unwrap();
            symlink(stage.path("elsewhere"), stage.path("bundle/config.json")).unwrap();
            let outcome = stage.create_as_it_is("c1");
            assert_eq!(outcome.runs(), runs, "{env:?} {default}: {outcome:?}");
            assert!(runs || outcome.messages("error")[0].contains("symbolic link"), "{outcome:?}");
            assert_eq!(stage.config(), config(env).as_bytes());
            assert!(stage.path("bundle/config.json").is_symlink());
        }
    }
}

#[test]
fn what_is_no_file_at_all_is_left_to_runc() {
    let stage = Stage::new();
    stage.policy("all", "all");
    stage.bundle("");
    let path = stage.path("bundle/config.json");
    std::fs::remove_file(&path).unwrap();
    let outcome = stage.create_as_it_is("c1");
    assert!(outcome.runs() && outcome.log.is_empty(), "missing: {outcome:?}");

    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let outcome = stage.create_as_it_is("c1");
    assert!(
        outcome.runs() && outcome.messages("warning")[0].contains("no regular file"),
        "fifo: {outcome:?}"
    );
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    let outcome = stage.create_as_it_is("c1");
    assert!(outcome.runs() && outcome.messages("warning").len() == 1, "folder: {outcome:?}");

    for (kind, text) in [("empty", ""), ("null", "null"), ("a list", "[]"), ("a word", "mud")] {
        let outcome = stage.create(text);
        assert!(outcome.runs() && stage.config() == text.as_bytes(), "{kind}: {outcome:?}");
    }
}
