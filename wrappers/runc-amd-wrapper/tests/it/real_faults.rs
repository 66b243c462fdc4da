//! What goes wrong around a decision: disks, clocks, reboots, numbers that come round again, processes that are
//! stopped or killed in the middle of it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::real;

use crate::machine::creates::{holder, sleeper, spawn, wait_for};
use crate::machine::{self, Machine, Program};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox"];

fn machine(sharing: &str) -> Machine {
    let machine = Machine::with_eight_gpus();
    machine.policy_of_eight(&json!({"sharing": sharing}));
    machine
}

/// The message of a create that must fail.
#[track_caller]
fn refused(machine: &Machine, bundle: &Path, id: &str) -> String {
    let succeeded = spawn(machine, bundle, id).wait().unwrap().success();
    let reported = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(!succeeded && reported.starts_with("runc-amd-wrapper: "), "{reported}");
    reported
}

#[track_caller]
fn created(machine: &Machine, bundle: &Path, id: &str) {
    let succeeded = spawn(machine, bundle, id).wait().unwrap().success();
    assert!(succeeded, "{}", std::fs::read_to_string(bundle.join("stderr")).unwrap());
}

fn renders_in(bundle: &Path) -> Vec<String> {
    let config: Value = serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    let devices = config["linux"]["devices"].as_array().cloned().unwrap_or_default();
    let paths = devices.iter().map(|device| device["path"].as_str().unwrap().to_owned());
    paths.filter(|path| path.contains("renderD")).collect()
}

#[test]
fn real_a_full_or_read_only_run_folder_stops_what_asks_and_says_what_was_attempted() {
    if !real::require_root(&[NEEDED, &["mount"]].concat()) {
        return;
    }
    const ROOM: &str = "No space left on device (os error 28): make room on that file system";
    const MOUNT: &str = "Read-only file system (os error 30): mount that file system for writing";
    for (sharing, options, part, end) in [
        ("exclusive", "size=4k,nr_inodes=1", "the lock /run/rocworker/lock cannot be opened: ", ROOM),
        ("exclusive", "size=4k,nr_inodes=2", "the folder /run/rocworker/records cannot be made: ", ROOM),
        // One page for the first lease, none for the second.
        ("exclusive", "size=4k", "the lease /run/rocworker/leases/renderD129 cannot be written: ", ROOM),
        ("shared", "size=4k,nr_inodes=3", "the record /run/rocworker/records/", ROOM),
        ("exclusive", "ro", "the lock /run/rocworker/lock cannot be opened: ", MOUNT),
        ("shared", "ro", "the lock /run/rocworker/lock cannot be opened: ", MOUNT),
    ] {
        let machine = machine(sharing);
        std::fs::create_dir(machine.path("run/rocworker")).unwrap();
        let mount = ["mount", "-t", "tmpfs", "-o", &format!("mode=700,{options}"), "none", "/run/rocworker"];
        assert!(machine.inside(&mount).status().unwrap().success());
        let asking = machine.bundle("asking", sleeper(&["AMD_VISIBLE_DEVICES=all"]));
        let reported = refused(&machine, &asking, "asking");
        assert!(
            reported.contains(part) && reported.trim_end().ends_with(end),
            "{sharing} {options}: {reported}"
        );
        assert!(renders_in(&asking).is_empty(), "{options}");
        let left = machine.inside(&["find", "/run/rocworker", "-mindepth", "2"]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(left).unwrap(), "", "{options}");
        machine.start_sleeping(Program::Wrapper, &machine.bundle("silent", sleeper(&[])), "silent");
    }
}

/// The wrapper under strace, until it becomes runc: at the nth of these calls it gets this signal.
fn traced(
    machine: &Machine,
    calls: &str,
    signal: &str,
    nth: u32,
    bundle: &Path,
    id: &str,
) -> std::process::Command {
    let inject = format!("inject={calls}:signal={signal}:when={nth}");
    let (wrapper, bundle) = (Program::Wrapper.path(), bundle.to_str().unwrap());
    let strace = ["strace", "-o", "/dev/null", "-e", &inject, "-b", "execve"];
    let create = [&wrapper, "--root", "R", "create", "--bundle", bundle, id];
    let mut command = machine.inside(&[&strace[..], &create[..]].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn real_a_kill_at_any_write_leaves_nothing_that_blocks() {
    if !real::require_root(&[NEEDED, &["strace"]].concat()) {
        return;
    }
    // Eight leases, a record and a bundle are written under the one, the last two under the other.
    for (sharing, least) in [("exclusive", 20), ("shared", 5)] {
        let machine = machine(sharing);
        let mut kills = 0;
        for calls in [
            "?mkdir,?mkdirat",
            "write,?writev",
            "?rename,?renameat,?renameat2",
            "?unlink,?unlinkat",
            "?fchmod",
            "?flock",
        ] {
            for nth in 1..=12 {
                let id = format!("c{kills}");
                let bundle = machine.bundle(&id, sleeper(&["AMD_VISIBLE_DEVICES=all"]));
                let ended = traced(&machine, calls, "KILL", nth, &bundle, &id).status().unwrap();
                machine.wrapper(&["delete", "--force", &id]);
                if ended.success() {
                    break;
                }
                kills += 1;
                // All or nothing: a bundle that is half written would start with some of them.
                assert!([0, 8].contains(&renders_in(&bundle).len()), "{sharing} {calls} {nth}");
            }
            let bundle = machine.bundle(&format!("after-{kills}"), sleeper(&["AMD_VISIBLE_DEVICES=all"]));
            created(&machine, &bundle, "after");
            assert_eq!(renders_in(&bundle).len(), 8, "{sharing} {calls}");
            machine.wrapper(&["delete", "--force", "after"]);
        }
        assert!(kills >= least, "{sharing}: {kills}");
    }
}

#[test]
fn real_a_wrapper_that_is_stopped_in_a_decision_holds_up_only_who_asks_until_it_ends() {
    if !real::require_root(&[NEEDED, &["strace"]].concat()) {
        return;
    }
    let machine = machine("exclusive");
    // An earlier container of the id, which left a lease and a record: put back after the decision that is stopped,
    // since that clears them away.
    let earlier = machine.bundle("again", sleeper(&["AMD_VISIBLE_DEVICES=7"]));
    created(&machine, &earlier, "again");
    let records = machine.path("run/rocworker/records");
    let record = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    let left = [record, machine.path("run/rocworker/leases/renderD135")];
    let left = left.map(|path| (std::fs::read(&path).unwrap(), path));
    assert!(machine.runc(&["delete", "--force", "again"]).status.success());

    let bundle = machine.bundle("stopped", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let mut strace =
        traced(&machine, "?rename,?renameat,?renameat2", "STOP", 1, &bundle, "stopped").spawn().unwrap();
    let decided = machine.path("run/rocworker/leases/renderD128");
    wait_for("its decision", || decided.exists());
    let lease: Value = serde_json::from_slice(&std::fs::read(&decided).unwrap()).unwrap();
    let stopped = lease["creator"]["pid"].as_u64().unwrap();
    left.into_iter().for_each(|(text, path)| std::fs::write(path, text).unwrap());

    let waiting = machine.bundle("waiting", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let mut create = spawn(&machine, &waiting, "waiting");
    for id in ["silent", "again"] {
        let bundle = machine.bundle(id, sleeper(&[]));
        let began = Instant::now();
        created(&machine, &bundle, id);
        assert!(began.elapsed() < Duration::from_secs(5), "{id}: {:?}", began.elapsed());
    }
    let reported = std::fs::read_to_string(machine.path("again/stderr")).unwrap();
    let sentence = format!("lock could not be taken within 0.25 s: the process {stopped} (");
    assert!(
        reported.contains("warning")
            && reported.contains(&sentence)
            && reported.contains("is stopped: `kill -CONT"),
        "{reported}"
    );
    assert!(create.try_wait().unwrap().is_none(), "it waits for the lock");
    let stat = std::fs::read_to_string(format!("/proc/{stopped}/stat")).unwrap();
    assert!(stat.contains(") T ") || stat.contains(") t "), "{stat}");
    machine::creates::signal("-KILL", u32::try_from(stopped).unwrap());
    strace.wait().unwrap();
    assert!(create.wait().unwrap().success(), "{}", std::fs::read_to_string(waiting.join("stderr")).unwrap());
    assert_eq!(holder(&machine, 128).as_deref(), Some("waiting"));
}

/// A bundle that runc refuses, after the wrapper has given it its GPUs.
fn without_rootfs(machine: &Machine, id: &str, env: &[&str]) -> PathBuf {
    let bundle = machine.bundle(id, sleeper(env));
    std::fs::remove_dir_all(bundle.join("rootfs")).unwrap();
    bundle
}

#[test]
fn real_what_a_create_left_that_runc_refused_goes_at_the_next_decision_of_any_kind() {
    if !real::require_root(NEEDED) {
        return;
    }
    let kinds: [(&str, &str, &[&str]); 6] = [
        ("shared", "none", &["AMD_VISIBLE_DEVICES=0"]),
        ("shared", "none", &["AMD_VISIBLE_DEVICES=all"]),
        ("shared", "none", &["AMD_GPU_COUNT=1"]),
        ("shared", "all", &[]),
        ("exclusive", "none", &["AMD_VISIBLE_DEVICES=0"]),
        ("exclusive", "none", &["AMD_GPU_COUNT=1"]),
    ];
    for (sharing, default, env) in kinds {
        let machine = Machine::with_eight_gpus();
        machine.policy_of_eight(&json!({"sharing": sharing, "default": default}));
        let bundle = without_rootfs(&machine, "refused", &["AMD_VISIBLE_DEVICES=0,1"]);
        assert!(!spawn(&machine, &bundle, "refused").wait().unwrap().success());
        assert!(machine.record("refused").is_some(), "runc refused it, not the wrapper");
        let lives = machine.bundle("lives", sleeper(&["AMD_VISIBLE_DEVICES=5"]));
        machine.start_sleeping(Program::Wrapper, &lives, "lives");
        created(&machine, &machine.bundle("next", sleeper(env)), "next");
        assert!(machine.record("refused").is_none(), "{sharing} {default} {env:?}");
        assert!(machine.record("lives").is_some() && machine.record("next").is_some(), "{sharing} {env:?}");
        assert!(holder(&machine, 129).is_none(), "{sharing} {env:?}");
    }
}

#[test]
fn real_two_creates_from_one_bundle_never_make_it_hold_the_gpus_of_both() {
    if !real::require_root(NEEDED) {
        return;
    }
    for sharing in ["exclusive", "shared"] {
        let machine = machine(sharing);
        let mut refusals = 0;
        for round in 0..8 {
            let bundle = machine.bundle("both", sleeper(&["AMD_GPU_COUNT=1"]));
            let spawn = |id: &str| {
                let create = ["create", "--bundle", bundle.to_str().unwrap(), id];
                let mut command = machine.command(&Program::Wrapper.path(), &create);
                let reported = std::fs::File::create(bundle.join(id)).unwrap();
                command.stdout(Stdio::null()).stderr(reported).spawn().unwrap()
            };
            let ids = [format!("a{round}"), format!("b{round}")];
            let mut children = ids.each_ref().map(|id| spawn(id));
            let made = children.each_mut().map(|child| child.wait().unwrap().success());
            assert_eq!(renders_in(&bundle).len(), 1, "{sharing} {round}");
            for (id, made) in ids.iter().zip(made) {
                let reported = std::fs::read_to_string(bundle.join(id)).unwrap();
                let ours = reported.contains("another create is at work on this bundle")
                    || reported.contains("which is not free")
                    || reported.contains("already, which would be a GPU more");
                assert!(made || ours, "{sharing} {round} {id}: {reported}");
                refusals += usize::from(!made);
                machine.wrapper(&["delete", "--force", id]);
            }
            assert!(
                made.contains(&true) && (sharing == "shared" || made.contains(&false)),
                "{sharing} {round}"
            );
        }
        assert!(sharing == "shared" || refusals == 8, "{refusals}");
    }
}

/// Run as the first process of a process namespace: a create, the end of its container, and other processes with
/// the numbers of both its creator and its init; then what follows the first three arguments.
const SAME_NUMBERS: &str = r#"
wrapper=$1 bundle=$2 id=$3; shift 3
number() { sed "s/.*\"$1\":\([0-9]*\).*/\1/" "$2"; }
"$wrapper" --root R create --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1 || exit 10
creator=$(number pid /run/rocworker/leases/renderD128)
init=$(number init_process_pid "R/$id/state.json")
kill -KILL "$init"
while [ -e "/proc/$init" ]; do sleep 0.01; done
for again in "$creator" "$init"; do
    echo $((again - 1)) >/proc/sys/kernel/ns_last_pid
    sleep 1000 &
    [ $! = "$again" ] || exit 11
done
"$@" </dev/null >/dev/null
ended=$?
cat "/proc/$creator/comm" "/proc/$init/comm" >"$bundle/living"
runc --root R delete --force "$id"
exit $ended
"#;

#[test]
fn real_processes_with_the_numbers_of_the_dead_keep_no_lease() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = machine("exclusive");
    let wrapper = Program::Wrapper.path();
    let [first, second] =
        ["first", "second"].map(|id| machine.bundle(id, sleeper(&["AMD_VISIBLE_DEVICES=0"])));
    let [first, second] = [&first, &second].map(|bundle| bundle.to_str().unwrap());
    let namespace =
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SAME_NUMBERS, "sh"];
    let create = [&wrapper, first, "first", &wrapper, "--root", "R", "create", "--bundle", second, "second"];
    let output = machine.inside(&[&namespace[..], &create[..]].concat()).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {reported}", output.status);
    let living = std::fs::read_to_string(Path::new(first).join("living")).unwrap();
    assert_eq!(living, "sleep\nsleep\n");
    assert_eq!(holder(&machine, 128).as_deref(), Some("second"));
    assert!(machine.record("first").is_none());
}

#[test]
fn real_a_lease_of_an_earlier_boot_is_dead_whatever_lives_under_its_numbers() {
    if !real::require_root(&[NEEDED, &["mount"]].concat()) {
        return;
    }
    let machine = machine("exclusive");
    machine.start_sleeping(
        Program::Wrapper,
        &machine.bundle("before", sleeper(&["AMD_VISIBLE_DEVICES=0"])),
        "before",
    );
    let after = machine.bundle("after", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    assert!(refused(&machine, &after, "after").contains("held by the container before"));
    let another = machine.path("boot_id");
    std::fs::write(&another, "00000000-0000-4000-8000-000000000000\n").unwrap();
    let mount = ["mount", "--bind", another.to_str().unwrap(), "/proc/sys/kernel/random/boot_id"];
    assert!(machine.inside(&mount).status().unwrap().success());
    created(&machine, &after, "after");
    assert_eq!(holder(&machine, 128).as_deref(), Some("after"));
    assert!(machine.record("before").is_none());
}

#[test]
fn real_no_decision_looks_at_the_wall_clock() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = machine("exclusive");
    machine.start_sleeping(
        Program::Wrapper,
        &machine.bundle("lives", sleeper(&["AMD_VISIBLE_DEVICES=0"])),
        "lives",
    );
    created(&machine, &machine.bundle("dies", sleeper(&["AMD_VISIBLE_DEVICES=1"])), "dies");
    machine.wrapper(&["delete", "--force", "dies"]);
    // As they stand there after the clock was set back, and forth, while they were held.
    for (render, since) in [("renderD128", "2099-01-01T00:00:00Z"), ("renderD129", "1970-01-01T00:00:00Z")] {
        let path = machine.path("run/rocworker/leases").join(render);
        let mut lease: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        lease["since"] = json!(since);
        std::fs::write(&path, lease.to_string()).unwrap();
    }
    let next = machine.bundle("next", sleeper(&["AMD_VISIBLE_DEVICES=0,1"]));
    let reported = refused(&machine, &next, "next");
    let expected =
        "of which 1 of 2 are free: the GPU 0 (0000:64:00.0, renderD128) is held by the container lives of";
    assert!(reported.contains(expected) && reported.contains(" since 2099-01-01T00:00:00Z"), "{reported}");
    assert!(holder(&machine, 129).is_none());
}
