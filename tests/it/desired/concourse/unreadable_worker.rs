//! Nobody can tell how the worker runs: what is managed there stays, and the worker is not landed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::desired::concourse::reconciled::{assert_changed, execute};
use crate::desired::concourse::worker::{ENVIRONMENT_FILE, Machine, UNIT};
use crate::desired::concourse::{V7_8, V7_14, V8_1, V8_2, machine};

const UNIT_FILE: &str = "etc/systemd/system/concourse-worker.service";
const BIN: &str = "var/lib/concourse/bin";
const CONFIG: &str = "/etc/rocworker/concourse-containerd.toml";

/// What may be so for a while, done to a worker that is set up, and what is said then.
type Disturbance = (&'static str, fn(&Machine), &'static str);

const DISTURBANCES: [Disturbance; 9] = [
    (
        "the unit is masked",
        |it| {
            it.put(UNIT_FILE, "");
        },
        "is masked",
    ),
    (
        "it is not read",
        |it| {
            it.put(UNIT_FILE, &"#".repeat(300_000));
        },
        "is larger than",
    ),
    ("no shared storage", |it| moved(it, BIN), "it may not be mounted yet"),
    ("no containerd", |it| moved(it, "var/lib/concourse/bin/containerd"), "there is no containerd in"),
    (
        "the system's containerd only",
        |it| {
            moved(it, "var/lib/concourse/bin/containerd");
            it.put("usr/bin/containerd", "ELF");
        },
        "/usr/bin/containerd is not its own",
    ),
    (
        "a chosen one that is away",
        |it| {
            it.set("CONCOURSE_CONTAINERD_BIN=/opt/away/containerd");
        },
        "there is no /opt/away/containerd",
    ),
    ("no environment file", |it| moved(it, ENVIRONMENT_FILE), "worker-config.env"),
    (
        "a configuration of somebody's that is away",
        |it| {
            it.set("CONCOURSE_CONTAINERD_CONFIG=/opt/away/containerd.toml");
        },
        "the configuration of the worker's containerd is unknown",
    ),
    (
        "its runtime may stand in a file that is not followed",
        |it| {
            it.put(ENVIRONMENT_FILE, "");
            it.drop_in("a.conf", "[Service]\nEnvironmentFile=-/etc/env-%H\n");
        },
        "whether the worker runs containerd or guardian is not known",
    ),
];

fn moved(machine: &Machine, path: &str) {
    let path = machine.root().join(path);
    fs::rename(&path, away(&path)).unwrap();
}

fn away(path: &Path) -> PathBuf {
    path.with_extension("away")
}

#[track_caller]
fn assert_undecided(machine: &Machine, config: &str, said: &str) {
    let desired = machine.desired(config);
    assert!(desired.actions.is_empty(), "{desired:#?}");
    assert_eq!(desired.undecided, ["concourse"], "{desired:#?}");
    assert!(desired.notes.iter().any(|note| note.problem && note.text.contains(said)), "{desired:#?}");
}

#[test]
fn while_nobody_can_look_all_stays_and_the_worker_runs_on() {
    for (name, disturb, said) in DISTURBANCES {
        let machine = machine(V7_14);
        assert_eq!(execute(&machine, "tag: big").len(), 4);
        disturb(&machine);
        assert_undecided(&machine, "tag: big", said);
        assert_eq!(machine.set_up("tag: big"), "unknown", "{name}");
        assert_changed(&execute(&machine, "tag: big"), &[]);
        // What the configuration says itself needs no look.
        for config in ["concourse: {configure: never}", "compute-runtime: none"] {
            assert_eq!(machine.set_up(config), "no", "{name}");
        }
        assert_eq!(execute(&machine, "compute-runtime: none").len(), 4, "{name}");
    }
}

#[test]
fn a_version_that_is_not_told_takes_nothing_back() {
    // The runtime goes by the version of Concourse.
    let said = "no file of Concourse's names its version";
    let machine = machine(V8_1);
    machine.put(ENVIRONMENT_FILE, "");
    assert_eq!(execute(&machine, "").len(), 4);
    let machine = machine.with_unknown("/var/lib/concourse/bin/concourse");
    assert_undecided(&machine, "", said);
    assert_changed(&execute(&machine, ""), &[]);
    // The way goes by the version of the worker's containerd: another way would land the worker.
    let machine = crate::desired::concourse::machine(V8_2);
    assert_eq!(execute(&machine, "").len(), 4);
    let machine = machine.with_unknown("/var/lib/concourse/bin/containerd");
    assert_undecided(&machine, "", "the version of the worker's containerd is not known now");
    assert_changed(&execute(&machine, ""), &[]);
    assert!(machine.root().join(CONFIG.trim_start_matches('/')).exists());
}

#[test]
fn guardian_is_known_and_ours_is_taken_back() {
    let machine = machine(V7_8);
    assert_eq!(execute(&machine, "").len(), 4);
    machine.put(ENVIRONMENT_FILE, "");
    assert!(machine.desired("").undecided.is_empty());
    assert_eq!(execute(&machine, "").len(), 4);
}

#[test]
fn a_worker_whose_containers_pass_the_wrapper_by_is_not_set_up() {
    let machine = machine(V8_1);
    assert_eq!(machine.set_up(""), "yes");
    machine.set("CONCOURSE_RUNTIME=guardian");
    assert_eq!(machine.set_up(""), "no");
    // Its own configuration leads past the wrapper.
    machine.set("CONCOURSE_RUNTIME=containerd\nCONCOURSE_CONTAINERD_CONFIG=/etc/own.toml");
    machine.put("etc/own.toml", "[plugins.\"io.containerd.shim.v1.manager\"]\nenv = [\"PATH=/usr/bin\"]\n");
    assert_eq!(machine.set_up(""), "no");
    machine.put("etc/own.toml", "version = 3\n");
    assert_eq!(machine.set_up(""), "yes");
    let none = Machine::without_worker(&support::captures::phoenix());
    assert_eq!(none.set_up(""), "no");
    // Without a usable GPU none of it is set.
    let intel = Machine::without_worker(&support::captures::a380());
    intel.put(UNIT_FILE, UNIT);
    assert_eq!(intel.set_up(""), "no");
}
