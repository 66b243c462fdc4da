//! `rocworker lease`, beneath a root with a made-up proc: process 7 lives since tick 100.

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
    rocworker(empty.path(), &["lease", "list"]).success().stdout("no GPU is held\n");
}

/// Nobody can tell what is held where others could have put it there: a link, or a folder that others write.
#[test]
fn list_does_not_say_that_nothing_is_held_where_the_run_folder_is_not_roots_alone() {
    let root = machine();
    let run = root.path().join("run/rocworker");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    let said = text(&rocworker(root.path(), &["lease", "list"]).failure().get_output().stderr);
    assert!(said.contains("run/rocworker can be written by others (mode 0777)"), "{said}");
    fs::remove_dir_all(&run).unwrap();
    rocworker(root.path(), &["lease", "list"]).success();
    fs::create_dir(root.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &run).unwrap();
    let said = text(&rocworker(root.path(), &["lease", "list"]).failure().get_output().stderr);
    assert!(said.contains("run/rocworker") && said.contains("Not a directory"), "{said}");
}

#[test]
fn release_frees_what_is_dead_and_by_force_what_is_not() {
    let root = machine();
    let is_there = |gpu: u32| root.path().join(format!("run/rocworker/leases/renderD{}", 128 + gpu)).exists();
    for (name, part) in [
        ("build", "the GPU renderD128 is not released: the container build lives, by its creator; --force"),
        ("renderD131", "the GPU renderD131 is not released: its lease is no lease"),
        ("nobody", "no container named nobody holds a GPU, and no GPU of that name is held"),
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
    assert!(error.contains("of 2 runc roots hold GPUs (/run/other, /run/runc)"), "{error}");
    rocworker(root.path(), &["lease", "release", "renderD131"]).success().stdout("released renderD131\n");
}

/// What a container was given while GPUs were shared, as its record says.
fn put_record(root: &Path, id: &str, gpus: &[u32], start_time: u64) -> std::path::PathBuf {
    let gpu =
        |gpu: &u32| json!({"index": gpu, "pci": null, "render": format!("/dev/dri/renderD{}", 128 + gpu)});
    let record = json!({
        "schema_version": 1, "id": id, "root": "/run/runc", "gids": [992], "env": [],
        "gpus": gpus.iter().map(gpu).collect::<Vec<_>>(),
        "creator": {"pid": 7, "start_time": start_time, "boot_id": "this"},
    });
    let path = root.join(format!("run/rocworker/records/%2Frun%2Frunc@{id}"));
    write(&path, &record.to_string());
    path
}

/// The process 9, which no container's lease or record names, has memory on this GPU.
fn compute_on(root: &Path, gpu: u32) {
    let kfd = root.join("sys/class/kfd/kfd");
    let node = kfd.join("topology/nodes/1");
    write(&node.join("gpu_id"), "4711\n");
    write(&node.join("properties"), &format!("drm_render_minor {}\n", 128 + gpu));
    write(&kfd.join("proc/9/vram_4711"), "4096\n");
}

#[test]
fn what_a_record_or_a_process_holds_is_listed_beside_the_leases() {
    let root = machine();
    put_record(root.path(), "build", &[0, 1], 100);
    put_record(root.path(), "shared", &[4, 5], 100);
    put_record(root.path(), "dead", &[6], 99);
    compute_on(root.path(), 7);
    let said = rocworker(root.path(), &["lease", "list", "--output", "json"]).success();
    let answer: Value = serde_json::from_slice(&said.get_output().stdout).unwrap();
    let text_of = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let held = answer["leases"].as_array().unwrap().iter();
    let held: Vec<String> = held
        .map(|held| {
            ["render", "held_by", "id", "alive_by", "process"].map(|key| text_of(&held[key])).join(" ")
        })
        .collect();
    let expected = [
        "renderD128 lease build creator -",
        "renderD129 lease build creator -",
        "renderD130 lease gone - -",
        "renderD131 lease - - -",
        "renderD132 record shared creator -",
        "renderD133 record shared creator -",
        "renderD135 process - - the process 9 of another pid namespace",
    ];
    assert_eq!(held, expected);
    let said = rocworker(root.path(), &["lease", "list", "-o", "wide"]).success();
    let table = text(&said.get_output().stdout);
    for line in ["4 (renderD132)  record  shared", "renderD135      the process 9 of another pid namespace"] {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeeze(&table).contains(&squeeze(line)), "{table}");
    }
}

#[test]
fn release_frees_what_a_record_holds_and_leaves_the_container_its_groups() {
    let root = machine();
    let record = put_record(root.path(), "shared", &[4, 5], 100);
    let of_build = put_record(root.path(), "build", &[0, 1], 100);
    compute_on(root.path(), 7);
    let held = |record: &Path| -> Value {
        let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        assert_eq!(record["gids"], json!([992]));
        record["gpus"].as_array().unwrap().iter().map(|gpu| gpu["index"].clone()).collect()
    };
    for (name, part) in [
        ("shared", "the GPU renderD132 is not released: the container shared lives, by its creator; --force"),
        ("renderD133", "the GPU renderD133 is not released: the container shared lives"),
        (
            "renderD135",
            "the GPU renderD135 is in use by the process 9 of another pid namespace, and by no lease",
        ),
    ] {
        let said = rocworker(root.path(), &["lease", "release", name]).code(1);
        let error = text(&said.get_output().stderr);
        assert!(error.contains(part), "{name}: {error}");
    }
    assert_eq!(held(&record), json!([4, 5]));
    let forced = |name: &str| rocworker(root.path(), &["lease", "release", "--force", name]).success();
    forced("renderD133").stdout("released renderD133\n");
    assert_eq!(held(&record), json!([4]));
    forced("shared").stdout("released renderD132\n");
    assert_eq!(held(&record), json!([]));
    // A lease goes with what the record says of it: else that would hold the GPU in its place.
    forced("renderD128").stdout("released renderD128\n");
    assert_eq!(held(&of_build), json!([1]));
    forced("build").stdout("released renderD129\n");
    let said = rocworker(root.path(), &["lease", "list"]).success();
    let table = text(&said.get_output().stdout);
    assert!(!table.contains("build") && !table.contains("shared"), "{table}");
}

#[test]
fn cancel_takes_away_the_ticket_of_the_create_that_waits() {
    let root = machine();
    let said = rocworker(root.path(), &["lease", "cancel", "build"]).code(1);
    let error = text(&said.get_output().stderr);
    assert!(error.contains("no create of a container named build waits for GPUs"), "{error}");
    rocworker(root.path(), &["lease", "cancel", "next"]).success().stdout("cancelled next\n");
    assert_eq!(fs::read_dir(root.path().join("run/rocworker/waiting")).unwrap().count(), 0);
    rocworker(root.path(), &["lease", "cancel", "next"]).code(1);
}
