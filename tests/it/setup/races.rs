//! More than one at work on the same machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use config::Config;
use host::timestamp::Timestamp;
use reconcile::{Progress, Stage};
use rocworker::run::{Own, Run};
use root::Root;
use serde_json::Value;

use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

fn spawn(laid: &Laid, arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(laid.top()).args(arguments).args(["--output", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How many changes each of twenty made that were started at once.
fn twenty(laid: &Laid, command: &str) -> Vec<usize> {
    let running: Vec<_> = (0..20).map(|_| spawn(laid, &[command])).collect();
    let changes = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["changes"].as_array().unwrap().len()
    };
    running.into_iter().map(changes).collect()
}

#[test]
fn of_twenty_at_once_one_does_it_and_the_others_find_nothing_to_do() {
    let laid = Laid::demo("");
    laid.put("etc/docker/daemon.json", "{}\n");
    let before = laid.tree();
    for command in ["apply", "undo"] {
        let changes = twenty(&laid, command);
        assert_eq!(changes.iter().filter(|count| **count > 0).count(), 1, "{command}: {changes:?}");
        let events = laid.json(&["history"])["events"].as_array().unwrap().len();
        assert_eq!(events, if command == "apply" { 1 } else { 2 });
    }
    assert_eq!(laid.tree(), before);
    assert!(laid.all().paths().all(|path| !support::killed::is_temporary(path)));
}

/// The second stage tells engines of the machine as the first has left it, not as it was when apply began.
#[test]
fn a_gpu_that_goes_while_apply_runs_is_not_told_of() {
    let laid = Laid::demo("");
    let root = Root::open(laid.top()).unwrap();
    let config = Config::read(&root).unwrap();
    let programs = laid.path("usr/lib/rocworker");
    let setup = Run {
        root: &root,
        config: &config,
        programs: None,
        own: Own { beside: Some(programs), ..Own::default() },
        now: Timestamp::of(std::time::SystemTime::now()),
        caller: "a test".to_owned(),
    };
    let recorded = laid.text("capture.json");
    assert!(recorded.contains("/dev/dri/renderD128\""), "{recorded}");
    let mut stages = Vec::new();
    let applied = setup
        .apply(None, &mut |progress| {
            let Progress::Begins(change) = progress else { return };
            stages.push(change.stage);
            laid.put("capture.json", &recorded.replace("/dev/dri/renderD128\"", "/dev/dri/renderD228\""));
        })
        .unwrap();
    assert_eq!(stages.first(), Some(&Stage::Shape), "nothing was changed before the second stage");
    assert!(!laid.text(SPEC).contains("renderD128"), "{applied:#?}");
    assert!(laid.text(SPEC).contains("renderD129"));
    assert_eq!(laid.json(&["plan"])["changes"], serde_json::json!([]));
}

/// A change that somebody prevents at the last moment is not reported as one that is made.
#[test]
fn a_change_is_told_once_it_is_made_and_not_before() {
    let laid = Laid::demo("");
    let root = Root::open(laid.top()).unwrap();
    let config = Config::read(&root).unwrap();
    let own = Own { beside: Some(laid.path("usr/lib/rocworker")), ..Own::default() };
    let now = Timestamp::of(std::time::SystemTime::now());
    let setup = Run { root: &root, config: &config, programs: None, own, now, caller: "a test".to_owned() };
    let (mut begun, mut made) = (Vec::new(), Vec::new());
    let applied = setup
        .apply(None, &mut |progress| match progress {
            Progress::Begins(change) => {
                if change.path == Path::new("/etc/cdi/amd.json") {
                    laid.put(SPEC, "somebody was faster\n");
                }
                begun.push(change.path.clone());
            }
            Progress::Made(change) => {
                assert!(laid.path(&change.path.to_string()).exists(), "{}", change.path);
                made.push(change.path.clone());
            }
            _ => {}
        })
        .unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|it| it.path.clone()).collect();
    assert_eq!(failed, [Path::new("/etc/cdi/amd.json")]);
    assert!(begun.contains(&failed[0]) && !made.contains(&failed[0]), "{begun:?} {made:?}");
    assert_eq!(made, applied.changes.iter().map(|it| it.path.clone()).collect::<Vec<_>>());
}

/// A writer that replaces the file whole, as packages and rocworker itself do, while applies and undos run.
#[test]
fn a_file_that_somebody_keeps_replacing_is_ours_or_theirs_and_never_both() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let ours = laid.text(SPEC);
    laid.run(&["undo"]).success();
    let theirs: Vec<String> = (0..3)
        .map(|n| format!("{{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[],\"n\":{n}}}"))
        .collect();
    let over = AtomicBool::new(false);
    let path = laid.path(SPEC);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (mut seen, mut changes) = (BTreeSet::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for text in theirs.iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                replace(&path, text);
            }
        });
        for round in 0..40 {
            let command = if round % 4 == 3 { "undo" } else { "apply" };
            let output = spawn(&laid, &[command]).wait_with_output().unwrap();
            let (out, said) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            // What it could not do it says.
            assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {said}");
            let answer: Value =
                serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{said}"));
            changes += answer["changes"].as_array().unwrap().len();
            seen.insert(fs::read_to_string(&path).unwrap_or_default());
        }
        over.store(true, Ordering::Relaxed);
    });
    let known = |text: &String| text.is_empty() || *text == ours || theirs.contains(text);
    assert!(seen.iter().all(known), "{seen:#?}");
    assert!(changes > 3, "they hardly met: {changes} changes");

    // The receipt is true: undo reverts what it calls managed, and leaves the rest.
    let last = fs::read_to_string(&path).unwrap_or_default();
    let (code, said) = laid.fails(&["undo"]);
    let left = fs::read_to_string(&path).unwrap_or_default();
    assert_ne!(left, ours, "{said}");
    assert!(left == last || last == ours, "{code}: {said}");
    laid.run(&["undo", "--force"]).success();
    let left = fs::read_to_string(&path).unwrap_or_default();
    assert!(left.is_empty() || theirs.contains(&left), "{left}");
    assert!(!laid.path("var/lib/rocworker/receipt.json").exists());
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("theirs");
    fs::write(&beside, text).unwrap();
    // The folder goes when an undo finds it empty.
    if fs::rename(&beside, path).is_err() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
}
