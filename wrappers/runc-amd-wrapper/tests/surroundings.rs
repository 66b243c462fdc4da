//! Surroundings of a call that do not concern its container: none of them hinders a container that asks for
//! no GPU.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic, reason = "a test lays out files")]

mod stage;

use std::os::unix::fs::symlink;
use std::process::Command;

use stage::{Stage, config};

#[test]
fn a_process_starts_in_a_container_of_which_nothing_can_have_been_kept() {
    type Make = fn(&Stage);
    let states: [(&str, Make); 5] = [
        ("nothing", |_| {}),
        ("a file", |stage| stage.write("run", "")),
        ("a fifo", |stage| {
            assert!(Command::new("mkfifo").arg(stage.path("run")).status().unwrap().success());
        }),
        ("a link to itself", |stage| symlink("run", stage.path("run")).unwrap()),
        ("a file for records", |stage| {
            std::fs::create_dir(stage.path("run")).unwrap();
            stage.write("run/records", "");
        }),
    ];
    // With the root's name in front of it, the longest id that runc takes is longer than a file's name can be.
    let long = "x".repeat(255);
    for (kind, make) in states {
        let stage = Stage::new();
        stage.policy("all", "none");
        stage.write("process", "{}");
        make(&stage);
        for id in ["c1", &long] {
            for call in [
                &["exec", "--process", stage.path("process").to_str().unwrap(), id][..],
                &["delete", id],
                &["delete", "--force", id],
            ] {
                let outcome = stage.call(call);
                assert!(outcome.runs() && outcome.log.is_empty(), "{kind}, {call:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_bundle_that_cannot_be_looked_through_starts_with_a_warning() {
    for policy in ["{", &stage::policy("all", "none").to_string()] {
        let stage = Stage::new();
        stage.write("wrapper.json", policy);
        let bundle = stage.bundle("");
        std::fs::remove_file(bundle.join("config.json")).unwrap();
        assert!(Command::new("mkfifo").arg(bundle.join("config.json")).status().unwrap().success());
        let outcome = stage.create_as_it_is("c1");
        let warnings = outcome.messages("warning");
        assert!(outcome.runs() && outcome.log.len() == 1 && warnings.len() == 1, "{policy}: {outcome:?}");
        assert!(warnings[0].contains("config.json") && !warnings[0].contains("  "), "{policy}: {outcome:?}");
        std::fs::remove_file(bundle.join("config.json")).unwrap();
        let outcome = stage.create_as_it_is("c1");
        assert!(outcome.runs() && outcome.log.is_empty(), "runc says that there is none: {outcome:?}");
    }
}

#[test]
fn a_request_behind_any_number_of_others_is_seen_in_a_bundle_that_is_not_edited() {
    let mut env = vec!["AMD_VISIBLE_DEVICES=none"; 100];
    for (last, asks) in [("AMD_VISIBLE_DEVICES=0", true), ("AMD_GPU_COUNT=0", false)] {
        env.push(last);
        let stage = Stage::new();
        stage.policy("all", "none");
        let bundle = stage.bundle("");
        stage.write("elsewhere", config(&env));
        std::fs::remove_file(bundle.join("config.json")).unwrap();
        symlink(stage.path("elsewhere"), bundle.join("config.json")).unwrap();
        let outcome = stage.create_as_it_is("c1");
        assert_eq!(outcome.runs(), !asks, "{last}: {outcome:?}");
        env.pop();
    }
}
