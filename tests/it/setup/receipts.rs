//! What stands in /var/lib/rocworker, old, cut, altered, or from the future.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use crate::setup::laid::Laid;

const RECEIPT: &str = "var/lib/rocworker/receipt.json";
const SPEC: &str = "etc/cdi/amd.json";

/// One line on stderr that begins with the program's name: what was attempted, on which path, and what to do.
#[track_caller]
pub(crate) fn one_sentence(laid: &Laid, arguments: &[&str], code: i32, parts: &[&str]) {
    let output = laid.run(arguments).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    assert!(said.starts_with("rocworker: "), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?}: no {part:?} in: {said}");
    }
}

/// With what schema_version 1 has of each kind: golden bytes, which this and every later version must undo with.
#[test]
fn a_receipt_of_schema_version_1_is_undone_with() {
    const DOCKER: &str = "{\n  \"debug\": false\n}\n";
    let laid = Laid::demo("");
    laid.put("etc/docker/daemon.json", DOCKER);
    laid.put("usr/local/lib/rocworker/runc-amd-wrapper", "somebody else's\n");
    let mode = |mode| {
        fs::set_permissions(
            laid.path("usr/local/lib/rocworker/runc-amd-wrapper"),
            fs::Permissions::from_mode(mode),
        )
    };
    mode(0o700).unwrap();
    let before = laid.tree();

    let ours = "\"runtimes\": {\n    \"amd\": {\n      \"path\": \"/usr/local/lib/rocworker/runc-amd-wrapper\"\n    }\n  }";
    laid.put("etc/docker/daemon.json", &format!("{{\n  \"debug\": false,\n  {ours}\n}}\n"));
    laid.put("usr/local/lib/rocworker/runc-amd-wrapper", "the program\n");
    mode(0o755).unwrap();
    // Of the run that was killed the older one is there still, and what it was writing.
    laid.put(SPEC, "an older one\n");
    laid.put("etc/cdi/.rocworker-amd.json.4194304", "half");
    symlink("/usr/local/lib/rocworker", laid.path("etc/rocworker-link")).unwrap();
    // root wrote the stored receipt; here its files are whoever's that runs this test.
    let meta = fs::metadata(laid.path("etc/docker/daemon.json")).unwrap();
    let (uid, gid) = (meta.uid(), meta.gid());
    let receipt = include_str!("stored/receipt-1.json");
    let receipt = receipt.replace("\"uid\": 0", &format!("\"uid\": {uid}"));
    laid.put(RECEIPT, &receipt.replace("\"gid\": 0", &format!("\"gid\": {gid}")));
    for (digest, text) in [
        ("ad27eb0888f603e5ec5a27c78ab13c906c8af5acd5e4479e42f4bd36b26edfc7", DOCKER),
        ("03c14859e95fd1701252a0bdc3de8211899cdea2d1bf84d9121cbc9c8f30cd02", "somebody else's\n"),
    ] {
        laid.put(&format!("var/lib/rocworker/before/{digest}"), text);
    }

    let status = laid.json(&["status"]);
    assert_eq!(status["ours"].as_array().unwrap().len(), 5, "{status:#}");
    assert_eq!(status["pending"][0]["unit"], "concourse-worker.service");
    laid.run(&["undo"]).success();
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert!(!laid.path(RECEIPT).exists());
}

#[test]
fn of_a_receipt_that_was_lost_what_is_right_is_told_and_left() {
    let laid = Laid::demo("");
    laid.put("etc/docker/daemon.json", "{}\n");
    laid.run(&["apply"]).success();
    let files = |answer: &serde_json::Value| {
        let held = answer["ours"].as_array().unwrap().iter().filter(|held| held["kind"] != "node");
        held.map(|held| held["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let ours = files(&laid.json(&["status"]));
    assert_eq!(laid.json(&["status"])["found"], serde_json::json!([]));
    let tree = laid.tree();
    fs::remove_dir_all(laid.path("var/lib/rocworker")).unwrap();

    let status = laid.json(&["status"]);
    assert_eq!(status["found"], serde_json::json!(ours));
    assert_eq!(laid.json(&["plan"])["found"], status["found"]);
    let said = |arguments: &[&str]| {
        String::from_utf8(laid.run(arguments).success().get_output().stdout.clone()).unwrap()
    };
    let n = ours.len();
    let summary =
        format!("rocworker manages nothing here; {n} files are already correct (-v), and undo leaves them\n");
    assert!(said(&["status"]).ends_with(&summary));
    for path in &ours {
        let path = laid.path(path);
        let line = format!("{} is already correct and unmanaged: undo leaves it", path.display());
        assert!(said(&["status", "-v"]).contains(&line) && said(&["plan", "-v"]).contains(&line), "{line}");
        assert!(!said(&["status"]).contains(&line));
    }
    laid.run(&["apply"]).success();
    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), tree);
}

#[test]
fn a_receipt_that_is_cut_changes_nothing_and_says_what_to_do() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let whole = laid.text(RECEIPT);
    laid.put(SPEC, "{}");
    let tree = laid.tree();
    // Every byte of the first and the last lines, and samples between.
    let lengths =
        (0..40).chain((40..whole.len() - 12).step_by(whole.len() / 12)).chain(whole.len() - 12..whole.len());
    for length in lengths.filter(|length| *length + 2 < whole.len()) {
        laid.put(RECEIPT, &whole[..length]);
        for command in ["plan", "apply", "status", "undo"] {
            let parts = [
                "/var/lib/rocworker/receipt.json cannot be read: ",
                "rocworker changes nothing now: restore it from a backup",
            ];
            one_sentence(&laid, &[command], 1, &parts);
            if length > 10 {
                break;
            }
        }
        assert_eq!(laid.tree(), tree, "{length}");
    }
    laid.put(RECEIPT, &whole);
    laid.run(&["apply"]).success();
    laid.run(&["undo"]).success();
}

#[test]
fn a_receipt_from_the_future_or_of_no_known_version_is_not_touched() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let whole = laid.text(RECEIPT);
    let tree = laid.tree();
    for (version, parts) in [
        ("2", ["has schema_version 2, which a newer rocworker wrote", "install the newer one again"]),
        ("4294967297", ["has schema_version 4294967297, which a newer", "undo with it before going back"]),
        ("0", ["there never was a schema_version 0", "restore it from a backup"]),
        ("-1", ["cannot be read: invalid value", "restore it from a backup"]),
        ("\"1\"", ["cannot be read: invalid type", "restore it from a backup"]),
    ] {
        let other = whole.replacen("\"schema_version\": 1", &format!("\"schema_version\": {version}"), 1);
        assert_ne!(other, whole);
        laid.put(RECEIPT, &other);
        for command in ["plan", "apply", "undo"] {
            one_sentence(&laid, &[command], 1, &parts);
        }
        assert_eq!(laid.text(RECEIPT), other);
        assert_eq!(laid.tree(), tree);
    }
    // From the future in another way: a kind that nobody here knows.
    laid.put(RECEIPT, &whole.replacen("\"kind\": \"owned\"", "\"kind\": \"borrowed\"", 1));
    one_sentence(&laid, &["undo"], 1, &["receipt.json cannot be read: unknown variant `borrowed`"]);
    assert_eq!(laid.tree(), tree);
}

#[test]
fn a_receipt_that_others_could_have_written_is_not_believed() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    fs::set_permissions(laid.path(RECEIPT), fs::Permissions::from_mode(0o666)).unwrap();
    let tree = laid.tree();
    for command in ["apply", "undo"] {
        one_sentence(
            &laid,
            &[command],
            1,
            &["receipt.json can be written by others (mode 0666): chmod go-w"],
        );
    }
    assert_eq!(laid.tree(), tree);
    // A link or a folder in its place.
    fs::remove_file(laid.path(RECEIPT)).unwrap();
    symlink("/etc/passwd", laid.path(RECEIPT)).unwrap();
    one_sentence(
        &laid,
        &["undo"],
        1,
        &["receipt.json is a symbolic link, not a regular file: move it out of the way"],
    );
    fs::remove_file(laid.path(RECEIPT)).unwrap();
    fs::create_dir(laid.path(RECEIPT)).unwrap();
    one_sentence(
        &laid,
        &["undo"],
        1,
        &["receipt.json is a folder, not a regular file: move it out of the way"],
    );
    assert_eq!(laid.tree(), tree);
}

#[test]
fn bytes_from_before_that_are_altered_leave_the_path_as_it_is() {
    let laid = Laid::demo("");
    laid.put(SPEC, "{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}");
    laid.run(&["apply"]).success();
    let kept = fs::read_dir(laid.path("var/lib/rocworker/before")).unwrap().next().unwrap().unwrap().path();
    fs::write(&kept, "altered").unwrap();
    let ours = laid.text(SPEC);
    laid.run(&["apply"]).success();
    let (code, said) = laid.fails(&["undo"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("its bytes are not those that were kept") && said.contains("restore it from a backup"),
        "{said}"
    );
    assert_eq!(laid.text(SPEC), ours);
    // By hand, and then it is nobody's business any more.
    laid.put(SPEC, "by hand");
    laid.run(&["undo", "--force"]).code(1);
    assert_eq!(laid.text(SPEC), "by hand");
    laid.run(&["undo"]).success();
}

#[test]
fn a_memory_that_is_damaged_stops_an_apply_and_no_undo() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let before = laid.tree();
    laid.run(&["apply"]).success();
    laid.put("var/lib/rocworker/memory.json", "{\"schema_version\":2}");
    one_sentence(&laid, &["apply"], 1, &["memory.json has schema_version 2", "install that one again"]);
    for text in ["", "{", "[]"] {
        laid.put("var/lib/rocworker/memory.json", text);
        one_sentence(
            &laid,
            &["apply"],
            1,
            &[
                "memory.json cannot be read: ",
                "move it away, then run rocworker apply",
                " apply, with --config",
            ],
        );
    }
    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), before);
}

#[test]
fn a_history_that_is_damaged_is_kept_aside_and_hinders_nothing() {
    const HISTORY: &str = "var/lib/rocworker/history.json";
    let laid = Laid::demo("");
    laid.put(HISTORY, "{\"schema_version\":9,\"events\":[]}");
    one_sentence(
        &laid,
        &["history"],
        1,
        &["history.json has schema_version 9", "install the newer one again"],
    );
    for text in ["", "{\"schema_version\":1,", "\u{0}\u{1}"] {
        laid.put(HISTORY, text);
        one_sentence(
            &laid,
            &["history"],
            1,
            &["history.json cannot be read: ", "move it away: it only records what happened"],
        );
        laid.run(&["apply"]).success();
        assert_eq!(laid.text("var/lib/rocworker/history.json.damaged"), text);
        assert_eq!(laid.json(&["history"])["events"].as_array().unwrap().len(), 1);
        laid.run(&["undo"]).success();
    }
}

/// The changes are made and can be reverted; that nobody will read of them is reported.
#[test]
fn a_history_that_is_no_file_of_ours_is_told_after_the_changes() {
    type Place = fn(&std::path::Path);
    let places: [(Place, &str); 3] = [
        (|path| fs::create_dir(path).unwrap(), "history.json is a folder, not a regular file: move it out"),
        (
            |path| symlink("/etc/hostname", path).unwrap(),
            "history.json is a symbolic link, not a regular file",
        ),
        (
            |path| {
                fs::write(path, "{\"schema_version\":1,\"events\":[]}").unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
            },
            "history.json can be written by others (mode 0666): chmod go-w",
        ),
    ];
    for (place, part) in places {
        let laid = Laid::demo("");
        let before = laid.tree();
        fs::create_dir_all(laid.path("var/lib/rocworker")).unwrap();
        place(&laid.path("var/lib/rocworker/history.json"));
        let (code, said) = laid.fails(&["apply"]);
        assert!(code == 1 && said.contains("the history lacks them: ") && said.contains(part), "{said}");
        assert!(laid.text(SPEC).contains("amd.com/gpu"));
        let (code, said) = laid.fails(&["apply"]);
        assert!(code == 1 && said.contains(part) && said.contains("Nothing changed; "), "{said}");
        let (code, said) = laid.fails(&["undo"]);
        assert!(code == 1 && said.contains("the history lacks them: ") && said.contains(part), "{said}");
        assert_eq!(laid.tree(), before);
        // Nothing of it is lost.
        let place = laid.path("var/lib/rocworker/history.json");
        if place.is_dir() {
            fs::remove_dir(&place).unwrap()
        } else {
            fs::remove_file(&place).unwrap()
        }
        laid.run(&["undo"]).success();
        let history = laid.json(&["history"]);
        let told: Vec<_> = history["events"].as_array().unwrap().iter().map(|it| &it["command"]).collect();
        assert_eq!(told, ["apply", "undo"], "{history:#}");
    }
}
