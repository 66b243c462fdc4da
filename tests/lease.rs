//! `rocworker lease`, beneath a root with a made-up proc: process 7 lives since tick 100.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn lease(gpu: u32, id: &str, root: &str, start_time: u64) -> Value {
    json!({
        "schema_version": 1,
        "gpu": {"index": gpu, "pci": "0000:64:00.0", "render": format!("/dev/dri/renderD{}", 128 + gpu)},
        "root": root, "id": id, "kind": "counted", "since": "2026-11-21T07:13:46Z",
        "creator": {"pid": 7, "start_time": start_time, "boot_id": "this"},
        "cgroups_path": "/c/x", "idle_since_ms": null,
    })
}

/// GPUs 0 and 1 have a living holder, 2 a dead one, 3 a lease that nobody can read; one waits.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    let stat = |pid: u32| format!("{pid} (x) S {}100 0\n", "0 ".repeat(18));
    write(&at("proc/7/stat"), &stat(7));
    write(&at("proc/7/cgroup"), "0::/\n");
    write(&at("proc/sys/kernel/random/boot_id"), "this\n");
    for (gpu, id, start_time) in [(0, "build", 100), (1, "build", 100), (2, "gone", 99)] {
        let text = lease(gpu, id, "/run/runc", start_time).to_string();
        write(&at(&format!("run/rocworker/leases/renderD{}", 128 + gpu)), &text);
    }
    write(&at("run/rocworker/leases/renderD131"), "{");
    let ticket = json!({
        "schema_version": 1, "root": "/run/runc", "id": "next", "wants": {"count": 2}, "since": "later",
        "creator": {"pid": 7, "start_time": 100, "boot_id": "this"},
    });
    write(&at("run/rocworker/waiting/00000000000000000001"), &ticket.to_string());
    for folder in ["", "/leases", "/waiting", "/records"] {
        let path = at(&format!("run/rocworker{folder}"));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    root
}

fn rocworker(root: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_rocworker")).arg("--root").arg(root).args(arguments).assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn list_says_who_has_which_gpu_by_what_it_lives_and_who_waits() {
    let root = machine();
    let said = rocworker(root.path(), &["lease", "list", "--output", "json"]).success();
    let answer: Value = serde_json::from_slice(&said.get_output().stdout).unwrap();
    let leases: Vec<[&Value; 3]> = answer["leases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| [&l["render"], &l["id"], &l["alive_by"]])
        .collect();
    let expected = [
        [json!("renderD128"), json!("build"), json!("creator")],
        [json!("renderD129"), json!("build"), json!("creator")],
        [json!("renderD130"), json!("gone"), json!(null)],
        [json!("renderD131"), json!(null), json!(null)],
    ];
    assert_eq!(leases, expected.each_ref().map(|row| row.each_ref()));
    assert!(answer["leases"][3]["problem"].as_str().unwrap().starts_with("is no lease"));
    let waiting = json!([{"id": "next", "runc_root": "/run/runc", "wants": "any 2 GPUs", "since": "later"}]);
    assert_eq!((&answer["waiting"], &answer["schema_version"]), (&waiting, &json!(1)));

    let said = rocworker(root.path(), &["lease", "list"]).success();
    let table = text(&said.get_output().stdout);
    for part in
        ["2 (0000:64:00.0, renderD130)", "free at the next decision", "waiting: next of runc root /run/runc"]
    {
        assert!(table.contains(part), "{table}");
    }
    let empty = tempfile::tempdir().unwrap();
    write(&empty.path().join("proc/sys/kernel/random/boot_id"), "this\n");
    rocworker(empty.path(), &["lease", "list"]).success().stdout("no GPU is leased\n");
}

#[test]
fn release_frees_what_is_dead_and_by_force_what_is_not() {
    let root = machine();
    let is_there = |gpu: u32| root.path().join(format!("run/rocworker/leases/renderD{}", 128 + gpu)).exists();
    for (name, part) in [
        (
            "build",
            "the lease of renderD128 is not released: the container build lives, by its creator; --force",
        ),
        ("renderD131", "the lease of renderD131 is not released: its file is no lease"),
        ("nobody", "no container and no GPU named nobody has a lease"),
    ] {
        let said = rocworker(root.path(), &["lease", "release", name]).code(1);
        let error = text(&said.get_output().stderr);
        assert!(error.contains(part), "{name}: {error}");
    }
    assert!((0..4).all(is_there));
    rocworker(root.path(), &["lease", "release", "gone"]).success().stdout("released renderD130\n");
    let both = "released renderD128, renderD129\n";
    rocworker(root.path(), &["lease", "release", "--force", "build"]).success().stdout(both);
    rocworker(root.path(), &["lease", "release", "--force", "renderD131"]).success();
    assert!(!(0..4).any(is_there));
}

#[test]
fn release_does_not_guess_which_of_two_containers_is_meant() {
    let root = machine();
    let other = lease(3, "gone", "/run/other", 99).to_string();
    write(&root.path().join("run/rocworker/leases/renderD131"), &other);
    let said = rocworker(root.path(), &["lease", "release", "gone"]).code(1);
    let error = text(&said.get_output().stderr);
    assert!(error.contains("of 2 runc roots have leases (/run/other, /run/runc)"), "{error}");
    rocworker(root.path(), &["lease", "release", "renderD131"]).success().stdout("released renderD131\n");
}
