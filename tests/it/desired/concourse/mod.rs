//! What should be so for a Concourse worker, on laid-out machines.

mod after_upgrade;
mod charm;
mod existing_configuration;
mod facts;
mod program;
mod real;
mod reconciled;
mod tagging;
mod unreadable_worker;
mod worker;

use worker::{ENVIRONMENT_FILE, Machine, WRITTEN_CONFIG, shown, text, value};

/// Releases of Concourse, with the containerd that each brings.
const V7_8: ((u32, u32, u32), (u32, u32, u32)) = ((7, 8, 3), (1, 6, 8));
const V7_14: ((u32, u32, u32), (u32, u32, u32)) = ((7, 14, 3), (2, 1, 4));
const V8_1: ((u32, u32, u32), (u32, u32, u32)) = ((8, 1, 0), (2, 2, 1));
const V8_2: ((u32, u32, u32), (u32, u32, u32)) = ((8, 2, 0), (2, 3, 0));

const OURS: &str = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=1,gfx1103";

fn machine((concourse, containerd): ((u32, u32, u32), (u32, u32, u32))) -> Machine {
    Machine::with_worker(concourse, containerd)
}

#[test]
fn each_release_gets_what_it_understands() {
    for (name, release) in [("7.8", V7_8), ("7.14", V7_14), ("8.1", V8_1), ("8.2", V8_2)] {
        let machine = machine(release);
        for (gpu, config) in [("gpu", ""), ("off", "compute-runtime: none")] {
            for (tags, lines, tag) in
                [("no-tags", "", ""), ("tags", "CONCOURSE_TAG=linux,builder", "\ntag: builder,big")]
            {
                let machine_with = &machine;
                machine_with.put(ENVIRONMENT_FILE, worker::ENVIRONMENT);
                machine_with.set(lines);
                let desired = machine_with.desired(&format!("{config}{tag}"));
                insta::assert_snapshot!(format!("{name}-{gpu}-{tags}"), shown(&desired));
            }
        }
    }
}

#[test]
fn what_was_applied_changes_nothing_of_what_should_be() {
    for release in [V7_8, V7_14, V8_2] {
        let machine = machine(release);
        machine.set("CONCOURSE_TAG=linux");
        let desired = machine.desired("tag: big");
        machine.apply(&desired);
        assert_eq!(machine.desired("tag: big"), desired);
        // Turned off, only the user's tags remain, and without those nothing.
        assert_eq!(
            value(&machine.desired("compute-runtime: none\ntag: big"), "CONCOURSE_TAG").unwrap(),
            "linux,big"
        );
        assert_eq!(shown(&machine.desired("compute-runtime: none")), "nothing\n");
    }
}

#[test]
fn the_users_own_tags_come_first_and_none_stands_twice() {
    for (lines, config, expected) in [
        ("", "", Some(OURS.to_owned())),
        ("CONCOURSE_TAG=a,b", "tag: b,c", Some(format!("a,b,c,{OURS}"))),
        ("CONCOURSE_TAG=\"gpu\"", "", Some(OURS.to_owned())),
        (
            "CONCOURSE_TAG=rocm,linux",
            "",
            Some("rocm,linux,gpu,gpu-type=amd,compute-runtime=rocm,gpu-count=1,gfx1103".into()),
        ),
        ("CONCOURSE_TAG=a\nCONCOURSE_TAG='b' # no", "", Some(format!("b# no,{OURS}"))),
        ("export CONCOURSE_TAG=a", "", Some(OURS.to_owned())),
        ("CONCOURSE_TAG=", "tag: a", Some(format!("a,{OURS}"))),
        ("CONCOURSE_TAG=a b,c", "", Some(format!("a b,c,{OURS}"))),
        ("CONCOURSE_TAG=a,b", "compute-runtime: cuda\ntag: b", None),
        ("", "compute-runtime: cuda\ntag: b", Some("b".into())),
        (
            "",
            "gpu-device-ids: 0",
            Some("gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=1,gpu-devices=0,gfx1103".into()),
        ),
    ] {
        let machine = machine(V7_14);
        machine.set(lines);
        assert_eq!(value(&machine.desired(config), "CONCOURSE_TAG"), expected, "{lines} {config}");
    }
}

#[test]
fn a_worker_that_runs_something_else_gets_no_variable_of_containerds_and_no_tag_of_ours() {
    for (release, runtime, said) in [
        (V7_8, "", "guardian, which Concourse 7.8.3 does by default"),
        (V7_14, "", "guardian, which Concourse 7.14.3 does"),
        (V8_1, "CONCOURSE_RUNTIME=guardian", "the worker runs guardian,"),
        (V8_1, "CONCOURSE_RUNTIME=houdini", "the worker runs houdini,"),
    ] {
        let machine = machine(release);
        machine.put(ENVIRONMENT_FILE, runtime);
        let desired = machine.desired("tag: a");
        assert_eq!(value(&desired, "CONCOURSE_TAG").as_deref(), Some("a"), "{runtime}");
        let file = text(&desired, "/etc/rocworker/concourse.env").unwrap();
        assert!(!file.contains("CONCOURSE_CONTAINERD"), "{file}");
        assert_eq!(desired.actions.len(), 2, "{desired:#?}");
        let [note] = desired.notes.as_slice() else { panic!("{:?}", desired.notes) };
        assert!(note.problem && note.text.contains(said), "{note:?}");
        assert!(
            note.text.ends_with("set CONCOURSE_RUNTIME=containerd in /etc/default/concourse"),
            "{note:?}"
        );
        // Nobody asked for tags: there is nothing to write at all.
        assert!(machine.desired("").actions.is_empty());
    }
    // A unit that reads no file: the remedy names one only where the unit reads it.
    let machine = machine(V8_1);
    let unit = "etc/systemd/system/concourse-worker.service";
    let reads_none = worker::UNIT.replace("EnvironmentFile=-/etc/default/concourse\n", "").replace(
        "EnvironmentFile=/var/lib/concourse-worker/worker-config.env",
        "Environment=CONCOURSE_RUNTIME=guardian",
    );
    assert!(!reads_none.contains("EnvironmentFile"), "{reads_none}");
    machine.put(unit, &reads_none);
    for time in ["before an apply", "after it"] {
        let notes = machine.desired("tag: a").notes;
        let end = "run `systemctl edit concourse-worker.service`, and add [Service] and \
             Environment=CONCOURSE_RUNTIME=containerd";
        assert!(notes.len() == 1 && notes[0].text.ends_with(end), "{time}: {notes:?}");
        let ours = "[Service]\nEnvironmentFile=/etc/rocworker/concourse.env\n";
        machine.put("etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf", ours);
        machine.put("etc/rocworker/concourse.env", "CONCOURSE_TAG=a\n");
    }
    machine.put(unit, worker::UNIT);
    machine.put(ENVIRONMENT_FILE, "");
    assert!(machine.desired("tag: a").notes.is_empty(), "containerd is the default from 8.0");
}

#[test]
fn without_the_wrapper_there_is_no_gpu_to_tell_of() {
    let desired = machine(V8_1).desired_with("tag: a", None);
    assert_eq!(value(&desired, "CONCOURSE_TAG").as_deref(), Some("a"));
    assert_eq!(desired.actions.len(), 2, "{desired:#?}");
}

#[test]
fn of_an_unknown_version_nothing_is_assumed() {
    let launcher = "/usr/local/lib/rocworker/concourse-containerd";
    for path in ["concourse", "containerd"] {
        let machine = machine(V8_1).with_unknown(&format!("/var/lib/concourse/bin/{path}"));
        // The runtime is said: the launcher goes with every containerd.
        let desired = machine.desired("");
        let is_launched = value(&desired, "CONCOURSE_CONTAINERD_BIN").as_deref() == Some(launcher);
        assert_eq!(is_launched, path == "containerd", "{desired:#?}");
        assert_eq!(value(&desired, "CONCOURSE_TAG").as_deref(), Some(OURS));
    }
}

#[test]
fn what_the_worker_wrote_for_its_containerd_is_kept_whole_unless_it_is_out_of_date() {
    let config = "/etc/rocworker/concourse-containerd.toml";
    let newer = "version = 4\n\noom_score = -999\ndisabled_plugins = [\"a\", # why\n\"b\"]\n\n[debug]\n  format = \"json\"\n";
    for (release, written, is_taken) in [
        (V8_2, newer, true),
        (V8_2, &newer.replace("= 4", "= 5"), true),
        (V8_2, &newer.replace("= 4", "= 3"), false),
        (V8_2, "version = [", false),
        (V8_1, newer, false),
        (V8_1, &newer.replace("= 4", "= 3"), true),
    ] {
        let machine = machine(release);
        machine.put(WRITTEN_CONFIG, written);
        let desired = machine.desired("tag: a");
        let text = text(&desired, config).unwrap();
        assert_eq!(text.contains(written.trim_end()), is_taken, "{text}");
        assert!(text.contains("io.containerd.shim.v1.manager"), "{text}");
        let of_file = desired.notes.iter().filter(|note| !note.text.contains("first tags")).count();
        assert_eq!(of_file == 0, is_taken || release == V8_1, "{:?}", desired.notes);
    }
    // One that has that section already is left as it is.
    let machine = machine(V8_2);
    machine.put(WRITTEN_CONFIG, "version = 4\n[plugins.\"io.containerd.shim.v1.manager\"]\nenv = []\n");
    assert!(value(&machine.desired(""), "CONCOURSE_CONTAINERD_BIN").is_some());
}

#[test]
fn a_copy_of_the_workers_containerd_toml_is_for_root_alone() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let machine = machine(V8_1);
    let source = machine.put(WRITTEN_CONFIG, "version = 3\n[plugins.registry]\npassword = 'hunter2'\n");
    set_permissions(&source, Permissions::from_mode(0o600)).unwrap();
    set_permissions(source.parent().unwrap(), Permissions::from_mode(0o700)).unwrap();
    machine.apply(&machine.desired(""));
    let copy = machine.root().join("etc/rocworker/concourse-containerd.toml");
    assert!(std::fs::read_to_string(&copy).unwrap().contains("hunter2"));
    assert_eq!(metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn never_means_never_and_nothing_is_said_where_nobody_wishes_anything() {
    let machine = machine(V8_1);
    machine.put("etc/systemd/system/concourse-worker@.service", worker::UNIT);
    assert_eq!(shown(&machine.desired("concourse: {configure: never}\ntag: a")), "nothing\n");
    assert_eq!(shown(&machine.desired("compute-runtime: none")), "nothing\n");
    assert_eq!(
        machine.desired("").notes[0].text,
        "the unit concourse-worker@.service is not configured: only concourse-worker.service is"
    );
    // Another vendor's card is none of ours.
    let intel = Machine::without_worker(&support::captures::a380());
    intel.put("etc/systemd/system/concourse-worker.service", worker::UNIT);
    assert_eq!(shown(&intel.desired("")), "nothing\n");
}

#[test]
fn nothing_is_written_to_what_other_machines_may_share() {
    for release in [V7_8, V7_14, V8_2] {
        for path in
            machine(release).desired("tag: a").actions.iter().map(|action| action.path.path().unwrap())
        {
            let is_ours = [
                "/etc/rocworker",
                "/usr/local/lib/rocworker",
                "/etc/systemd/system/concourse-worker.service.d",
            ];
            assert!(is_ours.iter().any(|folder| path.starts_with(folder)), "{}", path.display());
        }
    }
}
