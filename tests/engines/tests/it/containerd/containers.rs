//! The GPUs that a container gets when real containerd runs the wrapper as its runc: 1.6, 1.7 and 2.1.

use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::Path;

use layout::Machine;
use real_engines::containerd::Containerd;
use real_engines::engine::{Engine, Unpacked, releases};
use real_engines::machine::{self, ASKED, seen_on_demo, seen_on_instinct};
use real_engines::{image, look};
use serde_json::{Value, json};

/// Each engine with its unpacked files; none where the calling test is to be skipped.
#[track_caller]
fn each_engine() -> Vec<(Engine, Unpacked)> {
    let found = releases().into_iter().map(|engine| Some((engine, engine.unpacked()?)));
    found.collect::<Option<_>>().unwrap_or_default()
}

#[test]
fn real_containerd_gives_a_container_exactly_the_gpus_that_it_asks_for() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        for (n, (env, gpus)) in [
            ("A=b", 0..0),
            ("AMD_VISIBLE_DEVICES=none", 0..0),
            ("NVIDIA_VISIBLE_DEVICES=all", 0..0),
            ("AMD_VISIBLE_DEVICES=0", 0..1),
            ("AMD_VISIBLE_DEVICES=2,3-4", 2..5),
            ("AMD_VISIBLE_DEVICES=0000:c1:00.0", 1..9),
            ("AMD_VISIBLE_DEVICES=all", 0..9),
            ("AMD_GPU_COUNT=1", 0..1),
        ]
        .into_iter()
        .enumerate()
        {
            let seen = containerd.look(&["--env", env], &format!("c{n}"));
            assert_eq!(seen, seen_on_demo(gpus, "open"), "{}: {env}", engine.name);
        }
        containerd.assert_nothing_is_left();
    }
}

#[test]
fn real_containerd_through_a_worker_policy_gives_every_task_all_gpus_and_resources_none() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, machine::ALL);
        let task = containerd.look(&[], "task");
        assert_eq!(task, seen_on_demo(0..9, "open"), "{}", engine.name);
        let refused = containerd.look(&["--env", "AMD_VISIBLE_DEVICES=none"], "none");
        assert_eq!(refused, "", "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}

/// The device cgroup's answer is asked for with a node that the container makes itself, so that absence alone
/// cannot pass for a refusal.
#[test]
fn real_the_device_cgroup_denies_a_gpu_without_the_wrapper_and_lets_it_through_with_it() {
    for (engine, unpacked) in each_engine() {
        let asking = ["--env", "AMD_VISIBLE_DEVICES=0"];
        let plain = Containerd::without_wrapper(&engine, &unpacked, ASKED);
        assert_eq!(plain.look(&asking, "c1"), "", "{}", engine.name);
        assert_eq!(plain.forge(&asking, "c2", "226", "129"), "denied\n", "{}", engine.name);
        drop(plain);
        let wrapped = Containerd::on_demo(&engine, &unpacked, ASKED);
        for (flags, minor, outcome) in
            [(&asking[..], "129", "open\n"), (&asking[..], "130", "denied\n"), (&[], "129", "denied\n")]
        {
            let said = wrapped.forge(flags, "c", "226", minor);
            assert_eq!(said, outcome, "{}: {flags:?} 226:{minor}", engine.name);
        }
        wrapped.assert_nothing_is_left();
    }
}

#[test]
fn real_containerd_takes_the_wrapper_by_its_binary_option_too() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::without_wrapper(&engine, &unpacked, ASKED);
        let option = ["--runc-binary", "/opt/rocworker/shim/runc", "--env", "AMD_VISIBLE_DEVICES=8"];
        let seen = containerd.look(&option, "c1");
        assert_eq!(seen, seen_on_demo(8..9, "open"), "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}

#[test]
fn real_containerd_reports_in_our_words_why_a_request_cannot_be_met() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        for (env, sentence) in [
            ("AMD_VISIBLE_DEVICES=17", "the policy has no GPU \"17\""),
            ("AMD_VISIBLE_DEVICES=../..", "does not name a GPU"),
            ("AMD_GPU_COUNT=10", "asks for 10 GPUs"),
        ] {
            let refused = containerd.run(&["--env", env], "c1", &look::look("refused"));
            assert!(!refused.status.success() && refused.stdout.is_empty(), "{}: {refused:?}", engine.name);
            // containerd quotes runc's log: what stands there in quotes may be quoted again.
            let said = refused.stderr.replace('\\', "");
            assert!(
                said.contains("runc-amd-wrapper: ") && said.contains(sentence),
                "{}: {env}: {refused:?}",
                engine.name
            );
        }
        containerd.assert_nothing_is_left();
    }
}

/// The wrapper has given the GPU and left its record when runc refuses; containerd then deletes what there is.
#[test]
fn real_a_create_that_runc_refuses_leaves_no_gpu_held() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        let refused = containerd.run(&["--env", "AMD_VISIBLE_DEVICES=0"], "c1", &["/no/such/program"]);
        assert!(refused.stderr.contains("/no/such/program"), "{}: {refused:?}", engine.name);
        // containerd 2.1 calls no delete then: the record goes with the next count.
        let next = containerd.look(&["--env", "AMD_GPU_COUNT=1"], "c2");
        assert_eq!(next, seen_on_demo(0..1, "open"), "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}

#[test]
fn real_containerds_further_processes_have_what_create_gave() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=0"], "with");
        containerd.start_sleeping(&[], "without");
        let with = containerd.look_in("with", "look");
        assert_eq!(with, seen_on_demo(0..1, "open"), "{}", engine.name);
        assert_eq!(containerd.look_in("without", "look"), "", "{}", engine.name);
        assert_eq!(containerd.host().records().len(), 1, "{}", engine.name);
        containerd.remove("with");
        containerd.remove("without");
        containerd.assert_nothing_is_left();
    }
}

/// The spec with Concourse's mapping: the container's root is the host's highest id, all other ids stay.
fn in_concourses_user_namespace(mut spec: Value) -> Value {
    let mapping = json!([
        {"containerID": 0, "hostID": 65534, "size": 1},
        {"containerID": 1, "hostID": 1, "size": 65533},
    ]);
    spec["linux"]["uidMappings"] = mapping.clone();
    spec["linux"]["gidMappings"] = mapping;
    spec["linux"]["namespaces"].as_array_mut().unwrap().push(json!({"type": "user"}));
    // Without capabilities, the node's mode and group decide.
    spec["process"]["capabilities"] = json!({});
    spec
}

/// Gives a root file system to the mapped root.
fn give_to(owner: u32, path: &Path) {
    if path.is_symlink() {
        lchown(path, Some(owner), Some(owner)).unwrap();
        return;
    }
    chown(path, Some(owner), Some(owner)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_to(owner, &entry.unwrap().path()));
    }
}

#[test]
fn real_a_containerd_task_in_concourses_user_namespace_opens_the_render_groups_nodes() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        let rootfs = containerd.outside("/stage/mapped");
        look::lay_out(&rootfs);
        give_to(65534, &rootfs);
        let spec = containerd.spec(&["--env", "AMD_VISIBLE_DEVICES=0,3"], &["/bin/sleep", "1000"]);
        let mut spec = in_concourses_user_namespace(spec);
        spec["root"]["path"] = "/stage/mapped".into();
        fs::write(containerd.outside("/stage/spec.json"), spec.to_string()).unwrap();
        containerd.ctr(&["run", "--detach", "--config", "/stage/spec.json", "task"]).well();

        let mapping = containerd.exec("task", "map", &["/bin/cat", "/proc/self/uid_map"]).well();
        assert!(
            mapping.split_whitespace().eq("0 65534 1 1 1 65533".split(' ')),
            "{}: {mapping}",
            engine.name
        );
        let seen = containerd.look_in("task", "look");
        let mut expected: Vec<String> = [0..1, 3..4]
            .into_iter()
            .flat_map(|gpu| seen_on_demo(gpu, "open").lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        expected.sort();
        expected.dedup();
        assert!(seen.lines().eq(&expected), "{}: {seen}", engine.name);
        // A process without what the record adds is shut out: it is the group that opens.
        let records = containerd.host().records();
        assert_eq!(records.len(), 1, "{}", engine.name);
        let record = format!("/run/rocworker/records/{}", records[0]);
        containerd.host().busybox(&["mv", &record, "/tmp/record"]).well();
        let shut = containerd.look_in("task", "look2");
        assert!(shut.lines().eq(expected.iter().map(|line| line.replace(" open", " shut"))), "{shut}");
        containerd.host().busybox(&["mv", "/tmp/record", &record]).well();
        containerd.remove("task");
        containerd.assert_nothing_is_left();
    }
}

#[test]
fn real_containerd_obeys_what_an_image_says_in_its_environment_and_what_overrides_it() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on_demo(&engine, &unpacked, ASKED);
        let folder = containerd.outside("/stage/made");
        fs::create_dir(&folder).unwrap();
        let environment = ["PATH=/bin", "AMD_VISIBLE_DEVICES=1"];
        image::write(&folder, &folder.join("image.tar"), &environment, &look::look("image"));
        containerd.ctr(&["images", "import", "/stage/made/image.tar"]).well();
        let run = |flags: &[&str]| {
            let cgroup = format!("/{}/image", containerd.host().cgroup());
            let call = [
                &["run", "--rm", "--cgroup", &cgroup, "--mount", look::MOUNT],
                flags,
                &[image::NAME, "image"],
            ]
            .concat();
            containerd.ctr(&call).well();
            containerd.seen("image")
        };
        assert_eq!(run(&[]), seen_on_demo(1..2, "open"), "{}", engine.name);
        assert_eq!(run(&["--env", "AMD_VISIBLE_DEVICES=none"]), "", "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}

#[test]
fn real_containerd_gives_sixty_four_partitions_to_a_container_with_a_read_only_root() {
    for (engine, unpacked) in each_engine() {
        let containerd = Containerd::on(&Machine::instinct(8, 8), &engine, &unpacked, ASKED);
        let flags = ["--read-only", "--env", "AMD_VISIBLE_DEVICES=all"];
        let seen = containerd.look(&flags, "all");
        assert_eq!(seen, seen_on_instinct("open"), "{}", engine.name);
        let touched = containerd.run(&flags, "touch", &["/bin/busybox", "touch", "/x"]);
        assert!(touched.stderr.contains("Read-only file system"), "{}: {touched:?}", engine.name);
        containerd.assert_nothing_is_left();
    }
}
