//! What is managed and was changed by somebody is put right within a second, three times.

use std::fs;

use crate::daemon::running::{Running, applied, eventually};
use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

/// From the change by hand until the managed text stands there again.
fn repair(running: &Running<'_>, change: impl Fn()) -> u128 {
    let ours = running.laid.text(SPEC);
    change();
    let is_ours = || fs::read_to_string(running.laid.path(SPEC)).is_ok_and(|text| text == ours);
    eventually("the spec is ours again", is_ours).as_millis()
}

#[test]
fn a_spec_that_is_edited_replaced_or_removed_is_ours_again_within_a_second_and_contested_after_the_third_time()
 {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let spec = laid.path(SPEC);
    let steps: [(&str, &dyn Fn()); 3] = [
        ("edited", &|| laid.put(SPEC, "{}")),
        ("replaced", &|| {
            laid.put("etc/cdi/new.part", "{}");
            fs::rename(laid.path("etc/cdi/new.part"), &spec).unwrap();
        }),
        ("removed", &|| fs::remove_file(&spec).unwrap()),
    ];
    for (what, step) in steps {
        let took = repair(&running, step);
        eprintln!("{what}: ours again after {took} ms");
        assert!(took < 1000, "{what}: {took} ms");
    }
    laid.put(SPEC, "{}");
    let said = running.until("it is contested", |daemon| daemon["contested"][0].is_object());
    let contested = &said["contested"][0];
    assert_eq!(contested["path"], "/etc/cdi/amd.json");
    let text = contested["text"].as_str().unwrap();
    assert!(text.starts_with("amd-ctk or the Concourse charm keeps writing it: repaired 3 times"), "{text}");
    running.look();
    assert_eq!(laid.text(SPEC), "{}", "it is repaired no more");
    assert_eq!(laid.json(&["history"])["events"].as_array().unwrap().len(), 4, "an apply and three repairs");
    let events = laid.json(&["history"]);
    assert_eq!(events["events"][3]["command"], "serve", "{events:#}");
}

#[test]
fn a_machine_that_is_as_it_should_be_is_looked_at_and_not_touched() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let times = laid.times();
    let said = running.look();
    assert_eq!(laid.times(), times);
    assert_eq!((&said["counts"]["changes"], &said["last"]["changed"]), (&0.into(), &serde_json::json!([])));
    assert_eq!((&said["set_up"], &said["failing"]), (&true.into(), &serde_json::Value::Null), "{said:#}");
}

#[test]
fn one_that_only_reports_changes_nothing_and_says_what_differs() {
    let laid = Laid::demo("daemon: {enforce: false}\n");
    let running = applied(&laid);
    laid.put(SPEC, "{}");
    let said = running.until("it says so", |daemon| daemon["differs"][0].is_object());
    assert_eq!(said["differs"][0], serde_json::json!({ "path": "/etc/cdi/amd.json", "why": "reported" }));
    assert_eq!((said["enforce"].as_bool(), laid.text(SPEC).as_str()), (Some(false), "{}"));
}

#[test]
fn it_is_small_and_holds_no_gpu_open() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    for text in ["{}", "[]"] {
        repair(&running, || laid.put(SPEC, text));
    }
    eventually("the GPUs' health is judged", || laid.path(inventory::health::PATH).exists());
    // Of a program with debug information some twenty megabytes are mapped from its file: the whole of an optimized one is
    // measured by `cargo xtask bench`.
    let (own, most) = (running.kib("RssAnon:"), running.kib("VmHWM:"));
    eprintln!("resident: {own} KiB of its own, at most {most} KiB with what is mapped of the program");
    assert!(own <= 4 << 10, "{own} KiB");
    let open: Vec<_> = fs::read_dir(format!("/proc/{}/fd", running.pid()))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    assert!(open.len() > 4, "{open:?}");
    let is_gpu = |path: &&std::path::PathBuf| {
        let path = path.to_string_lossy();
        path.contains("/dri/") || path.ends_with("/kfd")
    };
    assert_eq!(open.iter().filter(is_gpu).count(), 0, "{open:?}");
}
