//! What should be, carried out by what carries out everything, and reverted by it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use reconcile::{Effect, Plan, Resource, Transaction};
use root::Root;

use crate::desired::concourse::worker::{ENVIRONMENT_FILE, Machine, WRITTEN_CONFIG};
use crate::desired::concourse::{V7_8, V8_2, machine};

const NOW: u64 = 1_795_300_000;
const LINK: &str = "/usr/local/lib/rocworker/shim/runc";
const LAUNCHER: &str = "/usr/local/lib/rocworker/concourse-containerd";
const CONFIG: &str = "/etc/rocworker/concourse-containerd.toml";
const FILE: &str = "/etc/rocworker/concourse.env";
const DROP_IN: &str = "/etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf";

/// Brings the machine there, and tells which paths were changed.
pub(crate) fn execute(machine: &Machine, config: &str) -> Vec<Resource> {
    let root = Root::open(machine.root()).unwrap();
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
    let plan = Plan::make(&root, &machine.desired(config), work.receipt(), None, false, NOW);
    assert!(plan.blocked.is_empty() && plan.left.is_empty(), "{plan:?}");
    let carried = work.execute(&plan, NOW, &mut |_| {}).unwrap();
    assert!(carried.failed.is_empty(), "{carried:?}");
    let owed = work.pending();
    let restart = |effect: &Effect| matches!(effect, Effect::Restart { unit, .. } if unit == "concourse-worker.service");
    assert!(carried.done.is_empty() || owed.iter().any(restart), "{owed:?}");
    carried.done
}

/// Every path with its mode and what it holds, without rocworker's own memory.
fn tree(machine: &Machine) -> BTreeMap<PathBuf, String> {
    fn add(tree: &mut BTreeMap<PathBuf, String>, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if path.ends_with("var/lib/rocworker") || path.ends_with("sys") {
                continue;
            }
            let held = if meta.is_dir() {
                add(tree, &path);
                String::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
            };
            tree.insert(path, format!("{:o} {held}", meta.permissions().mode()));
        }
    }
    let mut found = BTreeMap::new();
    add(&mut found, machine.root());
    found
}

#[track_caller]
pub(crate) fn assert_changed(changed: &[Resource], expected: &[&str]) {
    let changed: Vec<String> = changed.iter().map(Resource::to_string).collect();
    assert_eq!(changed, expected);
}

#[test]
fn the_gpu_comes_and_goes_and_the_machine_is_as_it_was() {
    let machine = machine(V8_2);
    machine.set("CONCOURSE_TAG=linux");
    let before = tree(&machine);
    // What is named comes before what names it, and goes after it.
    assert_changed(&execute(&machine, "tag: big"), &[LINK, CONFIG, FILE, DROP_IN]);
    assert_changed(&execute(&machine, "tag: big"), &[]);
    assert_changed(&execute(&machine, "compute-runtime: none\ntag: big"), &[FILE, CONFIG, LINK]);
    assert_changed(&execute(&machine, "compute-runtime: none"), &[DROP_IN, FILE]);
    assert_eq!(tree(&machine), before);
}

#[test]
fn an_upgrade_of_concourse_changes_the_way_and_leaves_nothing_behind() {
    let machine = machine(V7_8);
    let before = tree(&machine);
    assert_changed(&execute(&machine, ""), &[LINK, LAUNCHER, FILE, DROP_IN]);
    let machine = machine
        .with_program("/var/lib/concourse/bin/concourse", V8_2.0)
        .with_program("/var/lib/concourse/bin/containerd", V8_2.1);
    assert_changed(&execute(&machine, ""), &[CONFIG, FILE, LAUNCHER]);
    // Its charm rewrites its own file, and the user's tags with it.
    let text = fs::read_to_string(machine.root().join(ENVIRONMENT_FILE)).unwrap();
    machine.put(ENVIRONMENT_FILE, &format!("CONCOURSE_TAG=new\n{text}"));
    assert_changed(&execute(&machine, ""), &[FILE]);
    // The worker's own file of an earlier release says nothing of this one.
    let old = machine.put(WRITTEN_CONFIG, "version = 2\n");
    assert_changed(&execute(&machine, ""), &[]);
    fs::remove_dir_all(old.parent().unwrap()).unwrap();
    machine.put(ENVIRONMENT_FILE, &text);
    // In reverse of how they came; nothing restarts in between.
    assert_changed(&execute(&machine, "concourse: {configure: never}"), &[CONFIG, DROP_IN, FILE, LINK]);
    assert_eq!(tree(&machine), before);
}
