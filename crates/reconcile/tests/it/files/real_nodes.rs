//! Group and mode of device nodes, on real character devices beneath a folder.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::process::Command;

use crate::machine::{Machine, desired};
use reconcile::{Action, Desired, Kind, Stage};
use support::real;

const RENDER: u32 = 105;

fn node(path: &str, mode: u32) -> Action {
    Action::new(Stage::Shape, path, Kind::Node { mode, gid: RENDER }, "for the test")
}

fn wanted() -> Desired {
    desired([node("/dev/kfd", 0o660), node("/dev/dri/renderD128", 0o666)])
}

fn make(machine: &Machine, path: &str, mode: &str, owner: &str) {
    let file = machine.path(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let script = "rm -f \"$1\" && mknod \"$1\" c 1 3 && chown \"$2\" \"$1\" && chmod \"$3\" \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-ec", script, "sh"]).arg(file).args([owner, mode]);
    assert!(command.status().unwrap().success());
}

/// Mode, owner and group; it is a character device still.
fn rights(machine: &Machine, path: &str) -> (u32, u32, u32) {
    let meta = fs::symlink_metadata(machine.path(path)).unwrap();
    assert!(meta.file_type().is_char_device());
    (meta.mode() & 0o7777, meta.uid(), meta.gid())
}

fn laid_out() -> Machine {
    let machine = Machine::new();
    make(&machine, "dev/kfd", "600", "0:0");
    make(&machine, "dev/dri/renderD128", "660", "7:8");
    machine
}

#[test]
fn real_nodes_get_their_group_and_mode_once_and_get_back_what_they_had() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let machine = laid_out();
    let ran = machine.apply(&wanted());
    assert_eq!(ran.carried.done.len(), 2, "{ran:?}");
    assert_eq!(rights(&machine, "dev/kfd"), (0o660, 0, RENDER));
    assert_eq!(rights(&machine, "dev/dri/renderD128"), (0o666, 7, RENDER), "its owner is left");
    let changed = fs::metadata(machine.path("dev/kfd")).unwrap().ctime_nsec();
    assert!(machine.apply(&wanted()).carried.done.is_empty());
    assert_eq!(fs::metadata(machine.path("dev/kfd")).unwrap().ctime_nsec(), changed);
    machine.undo();
    assert_eq!(rights(&machine, "dev/kfd"), (0o600, 0, 0));
    assert_eq!(rights(&machine, "dev/dri/renderD128"), (0o660, 7, 8));
    assert!(machine.is_bare());
}

#[test]
fn real_nodes_that_are_made_anew_get_it_again_and_undo_gives_back_what_the_new_one_had() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let machine = laid_out();
    machine.apply(&wanted());
    // A boot, and another kernel's idea of who may open it. Many boots: that is no contest.
    for _ in 0..6 {
        make(&machine, "dev/kfd", "640", "0:44");
        let ran = machine.apply(&wanted());
        assert!(ran.contested.is_empty(), "{ran:?}");
        assert_eq!(rights(&machine, "dev/kfd"), (0o660, 0, RENDER));
    }
    machine.undo();
    assert_eq!(rights(&machine, "dev/kfd"), (0o640, 0, 44));

    // Made anew after the last apply: nothing managed is on it.
    machine.apply(&wanted());
    make(&machine, "dev/kfd", "604", "3:4");
    machine.undo();
    assert_eq!(rights(&machine, "dev/kfd"), (0o604, 3, 4));
    assert!(machine.is_bare());
}

#[test]
fn real_nodes_that_go_are_no_loss_and_what_is_no_node_is_not_touched() {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let machine = laid_out();
    machine.apply(&wanted());
    fs::remove_file(machine.path("dev/dri/renderD128")).unwrap();
    assert!(machine.apply(&wanted()).carried.done.is_empty());
    fs::remove_file(machine.path("dev/kfd")).unwrap();
    // A container's runtime leaves an empty file where it was to bind a missing device.
    machine.put("dev/kfd", "");
    let before = machine.tree();
    let ran = machine.apply(&wanted());
    assert!(ran.blocked[0].text.contains("not a device node"), "{ran:?}");
    assert_eq!(machine.tree(), before);
    assert!(machine.undo().left.is_empty());
    assert_eq!(machine.tree(), before);
    assert!(machine.is_bare());

    // A link in its place is not followed.
    fs::remove_file(machine.path("dev/kfd")).unwrap();
    make(&machine, "dev/other", "600", "0:0");
    std::os::unix::fs::symlink("other", machine.path("dev/kfd")).unwrap();
    let ran = machine.apply(&wanted());
    assert!(ran.blocked[0].text.starts_with("a link to other is there"), "{ran:?}");
    assert_eq!(rights(&machine, "dev/other"), (0o600, 0, 0));
}
