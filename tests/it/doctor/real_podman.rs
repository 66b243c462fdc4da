//! Real podman obeys the spec that rocworker writes: the container has the nodes of its request and no other, with
//! the numbers of the machine, and may open them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use layout::Machine;
use support::cdi_names::{self, BESIDE, NODE, Says, Takes};
use support::stage::{Stage, stdout};
use support::waiting::eventually;
use support::{real, rootfs};

/// Lists every GPU node with its number, and tries to open each.
const LOOK: &str = r#"
for node in $(find /dev/dri /dev/kfd -type c 2>/dev/null | sort); do
    echo "$node $(stat -c '%t:%T' $node) $(head -c 0 $node 2>&1 && echo opened)"
done"#;

/// The program to run and its arguments up to the rootfs. Without CAP_SYS_RESOURCE podman may raise no limit, so
/// that it is told to keep these.
fn podman(stage: &Path) -> String {
    let stage = stage.display();
    format!(
        "podman --root {stage}/podman --runroot {stage}/podman-run --cgroup-manager cgroupfs --storage-driver vfs \
         --events-backend none run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
    )
}

/// When a container ends, conmon starts podman to clean up, and podman makes its folder again if it is gone.
fn wait_for_conmon(stage: &Stage) {
    let programs = format!("^[^ ]*(conmon|podman) .*{}/", stage.folder().display());
    let is_there = || Command::new("pgrep").args(["-f", &programs]).output().unwrap().status.success();
    eventually("conmon ends", || !is_there());
}

/// The nodes that a container saw, and that each could be opened as far as the device cgroup goes.
#[track_caller]
fn nodes(seen: &str) -> BTreeSet<String> {
    let mut nodes = BTreeSet::new();
    for line in seen.lines() {
        let (node, outcome) = line.split_at(line.match_indices(' ').nth(1).unwrap().0);
        // ENXIO: past the cgroup, to a driver that this kernel does not have.
        assert!(outcome.contains("No such device or address"), "{line}");
        nodes.insert(node.to_owned());
    }
    nodes
}

/// Card and render node of the demo machine's GPU with this index, as stat prints them: in hexadecimal.
fn gpu(index: u32) -> [String; 2] {
    // tests/layout/src/sample.rs: card1 and renderD129 are the W7900, card2 and renderD130 on the partitions.
    let (card, render) = (1 + index, 129 + index);
    [format!("/dev/dri/card{card} e2:{card:x}"), format!("/dev/dri/renderD{render} e2:{render:x}")]
}

fn expected(indexes: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    // KFD's major in that machine is 241.
    indexes.into_iter().flat_map(gpu).chain(["/dev/kfd f1:0".to_owned()]).collect()
}

#[test]
fn real_podman_gives_a_container_exactly_the_gpus_that_it_names() {
    if !real::require_root(&["podman", "runc", "unshare", "busybox", "pgrep"]) {
        return;
    }
    let stage = Stage::set(&Machine::demo());
    rootfs::lay_out(&stage.folder().join("rootfs"));
    let look = stage.folder().join("rootfs/look");
    fs::write(&look, LOOK).unwrap();
    let rocworker = env!("CARGO_BIN_EXE_rocworker");
    let runc = real::program("runc").unwrap();
    for (device, indexes) in [
        ("0", 0..1),
        ("3", 3..4),
        ("0000:03:00.0", 0..1),
        ("0000:c1:00.0", 1..9),
        ("GPU-5ca1ab1e00000001", 0..1),
        ("all", 0..9),
    ] {
        let seen = stage.shell(&format!(
            "{rocworker} cdi generate >&2; {rocworker} cdi validate >&2; \
             {} --runtime {} --device amd.com/gpu={device} --rootfs {} /bin/sh /look",
            podman(stage.folder()),
            runc.display(),
            stage.folder().join("rootfs").display(),
        ));
        assert_eq!(nodes(&stdout(&seen)), expected(indexes), "{device}");
    }
    wait_for_conmon(&stage);
}

/// Each request with both specs there, although `cdi generate` refuses to make a spec that loses a name.
#[test]
fn real_podman_takes_the_device_that_rocworker_says_where_two_specs_have_a_name() {
    if !real::require_root(&["podman", "runc", "unshare", "busybox", "pgrep"]) {
        return;
    }
    let stage = Stage::set(&Machine::demo());
    rootfs::lay_out(&stage.folder().join("rootfs"));
    fs::write(stage.folder().join("rootfs/look"), LOOK).unwrap();
    let rocworker = env!("CARGO_BIN_EXE_rocworker");
    let runc = real::program("runc").unwrap();
    for (file, version, name, asked, takes, says) in
        BESIDE.into_iter().chain([cdi_names::of_a_version_that_is_too_low(Takes::Nothing)])
    {
        fs::write(stage.folder().join("beside"), cdi_names::spec(version, name)).unwrap();
        let seen = stage.shell(&format!(
            "{rocworker} cdi generate --file - > {folder}/amd.json; mkdir -p /etc/cdi /run/cdi\n\
             cp {folder}/beside /{file}; {rocworker} --output json plan; echo; echo ===\n\
             {rocworker} cdi generate >&2 && echo generated || echo refused\n\
             cp {folder}/amd.json /etc/cdi/amd.json\n\
             {rocworker} cdi validate >&2 && echo alone || echo shared\n\
             {podman} --runtime {runc} --device amd.com/gpu={asked} --rootfs {folder}/rootfs /bin/sh /look || echo failed",
            folder = stage.folder().display(),
            podman = podman(stage.folder()),
            runc = runc.display(),
        ));
        let (out, err) = (stdout(&seen), String::from_utf8_lossy(&seen.stderr).into_owned());
        let case = format!("{file} {version} {name}, asked for {asked}: {out}{err}");
        let (plan, rest) = out.split_once("===\n").unwrap();
        let [generated, shared, seen] = rest.splitn(3, '\n').collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        match takes {
            Takes::Nothing => {
                assert_eq!(seen, "failed\n", "{case}");
                assert!(err.contains(&format!("unresolvable CDI devices amd.com/gpu={asked}")), "{case}");
            }
            Takes::Others => assert_eq!(nodes(seen), BTreeSet::from([NODE.to_owned()]), "{case}"),
            Takes::Rocworkers => assert_eq!(nodes(seen), expected(0..1), "{case}"),
        }
        assert_eq!(generated, if says == Says::Refuses { "refused" } else { "generated" }, "{case}");
        assert_eq!(shared, if says == Says::Nothing { "alone" } else { "shared" }, "{case}");
        let text = format!("/{file} has amd.com/gpu=");
        assert_eq!(plan.contains(&text), says != Says::Nothing, "{case}");
        assert_eq!(plan.contains("no CDI spec is written"), says == Says::Refuses, "{case}");
    }
    wait_for_conmon(&stage);
}

#[test]
fn real_podman_with_the_wrapper_as_its_runtime_gives_what_the_environment_asks_for() {
    let Some(wrapper) =
        real::require_root_and_built("ROCWORKER_WRAPPER", &["podman", "runc", "unshare", "busybox", "pgrep"])
    else {
        return;
    };
    let stage = Stage::set(&Machine::demo());
    rootfs::lay_out(&stage.folder().join("rootfs"));
    fs::write(stage.folder().join("rootfs/look"), LOOK).unwrap();
    stage.put(
        "etc/rocworker/wrapper.json",
        r#"{"schema_version":1,"requests":"all","default":"none","sharing":"shared"}"#,
    );
    let run = |environment: &str| {
        stage.shell(&format!(
            "{} cdi generate >&2; {} --runtime {} {environment} --rootfs {} /bin/sh /look",
            env!("CARGO_BIN_EXE_rocworker"),
            podman(stage.folder()),
            wrapper.display(),
            stage.folder().join("rootfs").display(),
        ))
    };
    for (environment, indexes) in [
        ("--env AMD_VISIBLE_DEVICES=2", 2..3),
        ("--env AMD_VISIBLE_DEVICES=all", 0..9),
        ("--env AMD_VISIBLE_DEVICES=0000:c1:00.0", 1..9),
        ("--env AMD_GPU_COUNT=1", 0..1),
    ] {
        assert_eq!(nodes(&stdout(&run(environment))), expected(indexes), "{environment}");
    }
    for environment in ["", "--env AMD_VISIBLE_DEVICES=none", "--env NVIDIA_VISIBLE_DEVICES=all"] {
        assert_eq!(stdout(&run(environment)), "", "{environment}");
    }
    let refused = run("--env AMD_VISIBLE_DEVICES=17");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("the policy has no GPU") && said.contains("17"),
        "{said}"
    );
    wait_for_conmon(&stage);
}

/// Flags of `podman run`, those of `podman exec`, and whether the process of each may open the nodes of GPU 1.
type Users<'a> = (&'a str, &'a str, [bool; 2]);

const USER: &str = "--user 2000:2000";
const OTHER: &str = "--user 3000:3000";
/// In the groups of the demo machine's nodes (tests/layout/src/drm.rs), by the image's own files.
const MEMBER: &str = "--user member";

/// Holds what two users of a container may open: the one whom it runs as, and one who comes later by `podman exec`.
#[track_caller]
fn hold_users(runtime: &Path, gpu: &str, table: &[Users<'_>]) {
    let stage = Stage::set(&Machine::demo());
    let rootfs = stage.folder().join("rootfs");
    rootfs::lay_out(&rootfs);
    fs::write(rootfs.join("look"), LOOK).unwrap();
    fs::write(rootfs.join("etc/group"), "video:x:44:member\nrender:x:992:member\n").unwrap();
    fs::write(rootfs.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nmember:x:1000:1000::/:/bin/sh\n").unwrap();
    stage.put(
        "etc/rocworker/wrapper.json",
        r#"{"schema_version":1,"requests":"all","default":"none","sharing":"shared"}"#,
    );
    let run = podman(stage.folder());
    let (podman, run) = run.split_once(" run ").unwrap();
    let podman = format!("{podman} --runtime {}", runtime.display());
    let root = rootfs.display();
    let mut script = format!(
        "look() {{\n\
         echo; {podman} run {run} {gpu} $1 --rootfs {root} /bin/sh /look\n\
         echo; {podman} run {run} {gpu} $1 --detach --name one --rootfs {root} /bin/sleep 1000 >&2\n\
         {podman} exec $2 one /bin/sh /look\n\
         {podman} rm -ft 0 one >&2\n}}\n{} cdi generate >&2\n",
        env!("CARGO_BIN_EXE_rocworker")
    );
    for (flags, exec, _) in table {
        script += &format!("look '{flags}' '{exec}'\n");
    }
    let seen = stdout(&stage.shell(&script));
    wait_for_conmon(&stage);
    let mut seen = seen.split("\n\n").map(str::trim);
    for (flags, exec, opens) in table {
        for opens in opens {
            let seen = seen.next().unwrap();
            if *opens {
                assert_eq!(nodes(seen), expected(1..2), "{flags}; exec {exec}");
            } else {
                assert_eq!(seen.matches("Permission denied").count(), 3, "{flags}; exec {exec}: {seen}");
            }
        }
    }
}

#[test]
fn real_podman_opens_a_gpus_nodes_to_its_containers_user_and_to_members_of_their_groups() {
    if !real::require_root(&["podman", "runc", "unshare", "busybox", "pgrep"]) {
        return;
    }
    let with_groups = format!("{USER} --group-add 44 --group-add 992");
    let table = [
        ("", "", [true, true]),
        ("", USER, [true, false]),
        ("", MEMBER, [true, true]),
        // CDI's library gives a node to the container's user where the spec names no owner.
        (USER, "", [true, true]),
        (USER, USER, [true, true]),
        (USER, MEMBER, [true, true]),
        (USER, OTHER, [true, false]),
        // podman's exec passes on no group that the container was given.
        (&with_groups, OTHER, [true, false]),
    ];
    hold_users(&real::program("runc").unwrap(), "--device amd.com/gpu=1", &table);
}

#[test]
fn real_podman_with_the_wrapper_as_its_runtime_opens_a_gpus_nodes_to_every_user() {
    let needed = ["podman", "runc", "unshare", "busybox", "pgrep"];
    let Some(wrapper) = real::require_root_and_built("ROCWORKER_WRAPPER", &needed) else { return };
    let table = [("", "", [true, true]), (USER, "", [true, true]), (USER, OTHER, [true, true])];
    hold_users(&wrapper, "--env AMD_VISIBLE_DEVICES=1", &table);
}

#[test]
fn real_detect_and_doctor_tell_of_the_running_machine() {
    if !real::require_root(&["unshare"]) {
        return;
    }
    let stage = Stage::set(&Machine::demo());
    let rocworker = env!("CARGO_BIN_EXE_rocworker");
    let answer = stdout(&stage.run(&[rocworker, "detect", "--output", "json"]));
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let usable = answer["gpus"].as_array().unwrap().iter().filter(|gpu| gpu["usable"] == true).count();
    assert_eq!((usable, answer["kfd"]["major"].as_u64()), (9, Some(241)), "{answer:#}");
}
