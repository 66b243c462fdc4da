//! A worker that the Concourse charm has set up for GPUs by itself.

use crate::desired::concourse::worker::{Machine, text, value};
use crate::desired::concourse::{OURS, V7_8, V7_14, V8_1, machine};

const SCRIPT: &str = "#!/bin/bash\nexec /opt/bin/runc.real \"$@\"\n";
const CHARMS_CONFIG: &str = "version = 3\n\noom_score = -999\ndisabled_plugins = []\n\n[plugins]\n  \
                             [plugins.\"io.containerd.runtime.v2.task\"]\n    runtime = \"/opt/bin/runc\"\n";

fn with_charm(release: ((u32, u32, u32), (u32, u32, u32)), tags: &str) -> Machine {
    let machine = machine(release).with_program("/var/lib/concourse/bin/runc.real", (1, 2, 0));
    machine.put("opt/bin/runc-amd-wrapper", SCRIPT);
    machine.link("opt/bin/runc", "/opt/bin/runc-amd-wrapper");
    machine.link("var/lib/concourse/bin/runc", "/opt/bin/runc-amd-wrapper");
    machine.put("var/lib/concourse/containerd-gpu.toml", CHARMS_CONFIG);
    machine.set(&format!(
        "CONCOURSE_TAG={tags}\nCONCOURSE_CONTAINERD_CONFIG=/var/lib/concourse/containerd-gpu.toml"
    ));
    machine
}

#[test]
fn the_charms_own_mode_is_left_alone_and_told() {
    for config in ["", "concourse: {existing: leave}", "tag: a", "compute-runtime: none\ntag: a"] {
        let machine = with_charm(V7_14, "linux,rocm,gpu-count=2,gpu-devices=0,1");
        let desired = machine.desired(config);
        assert!(desired.actions.is_empty(), "{desired:#?}");
        let [note] = desired.notes.as_slice() else { panic!("{:?}", desired.notes) };
        assert!(!note.problem);
        assert_eq!(
            note.text,
            "the Concourse charm has set this worker up for AMD's GPUs by itself (/var/lib/concourse/bin/runc leads to \
             /opt/bin/runc-amd-wrapper, /opt/bin/runc leads to /opt/bin/runc-amd-wrapper, containerd's configuration is \
             /var/lib/concourse/containerd-gpu.toml): it is left alone. With `concourse: {existing: adopt}` rocworker's \
             settings would come after the charm's and win"
        );
    }
}

#[test]
fn an_adopted_worker_keeps_the_charms_files_and_ours_win() {
    for release in [V7_8, V7_14, V8_1] {
        let machine = with_charm(release, "linux,rocm,gpu-count=2,gpu-devices=0,1");
        let desired = machine.desired("concourse: {existing: adopt}");
        // The charm's count is of every vendor's cards; rocworker's is of those that a container can be given.
        assert_eq!(value(&desired, "CONCOURSE_TAG").unwrap(), format!("linux,{OURS}"));
        assert_eq!(
            value(&desired, "CONCOURSE_CONTAINERD_BIN").as_deref(),
            Some("/usr/local/lib/rocworker/concourse-containerd")
        );
        assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_CONFIG"), None);
        assert!(desired.notes.is_empty(), "{:?}", desired.notes);
        let worker = machine.concourse().worker.unwrap();
        assert_eq!(
            worker.charm.real_runc.as_ref().unwrap().to_str(),
            Some("/var/lib/concourse/bin/runc.real")
        );
    }
}

#[test]
fn turned_off_an_adopted_worker_loses_the_tags_that_the_charm_left() {
    let off = "compute-runtime: none\nconcourse: {existing: adopt}";
    let desired = with_charm(V7_14, "linux,rocm,gpu-count=2").desired(off);
    assert_eq!(value(&desired, "CONCOURSE_TAG").as_deref(), Some("linux"));
    assert_eq!(desired.actions.len(), 2);
    // An empty value would be the empty tag, and a tagged worker refuses untagged steps.
    let machine = with_charm(V7_14, "rocm,gpu-count=2,gpu-devices=0,1");
    let desired = machine.desired(off);
    assert_eq!(text(&desired, "/etc/rocworker/concourse.env"), None);
    let drop_in = text(&desired, "/etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf").unwrap();
    assert_eq!(
        drop_in,
        "# Written by rocworker: docs/concourse.md.\n[Service]\nUnsetEnvironment=CONCOURSE_TAG\n"
    );
    machine.apply(&desired);
    assert_eq!(machine.desired(off), desired);
}

#[test]
fn of_the_charms_scripts_only_those_that_the_wrapper_replaces_are_passed_by() {
    for (script, passed) in [("runc-amd-wrapper", true), ("runc-wrapper", true), ("runc-gpu-wrapper", false)]
    {
        for with_real in [true, false] {
            let mut machine = machine(V7_14);
            if with_real {
                machine = machine.with_program("/var/lib/concourse/bin/runc.real", (1, 2, 0));
            }
            machine.put(&format!("opt/bin/{script}"), SCRIPT);
            machine.link("var/lib/concourse/bin/runc", &format!("/opt/bin/{script}"));
            let worker = machine.concourse().worker.unwrap();
            assert_eq!(worker.charm.real_runc.is_some(), passed && with_real, "{script}");
            assert_eq!(worker.charm.is_in_force(), script == "runc-amd-wrapper", "{script}");
            let desired = machine.desired("concourse: {existing: adopt}");
            let warned =
                desired.notes.iter().any(|note| note.problem && note.text.contains("no runc.real beside it"));
            // The plain one adds no nodes.
            let adds_nodes = script == "runc-amd-wrapper";
            assert_eq!(warned, adds_nodes && !with_real, "{script}: {:?}", desired.notes);
        }
    }
}

#[test]
fn rocworkers_own_wrapper_at_the_charms_place_is_no_sign() {
    let machine = machine(V7_14).with_program("/opt/bin/runc-amd-wrapper", (1, 0, 0));
    machine.link("var/lib/concourse/bin/runc", "/opt/bin/runc-amd-wrapper");
    assert!(!machine.concourse().worker.unwrap().charm.is_in_force());
    // What is left of a mode that was turned off and whose links are gone neither.
    let machine = machine_with_leftovers();
    assert!(!machine.concourse().worker.unwrap().charm.is_in_force());
}

fn machine_with_leftovers() -> Machine {
    let machine = machine(V7_14).with_program("/var/lib/concourse/bin/runc", (1, 2, 0));
    machine.put("opt/bin/runc-amd-wrapper", SCRIPT);
    machine
}
