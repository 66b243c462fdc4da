//! A container that crun runs lives by what crun keeps of it, one that runc runs by what runc keeps: its record and its
//! lease stay as long, whoever of its keepers dies first, and go then.

use std::fs;

use real_engines::containerd::{Containerd, SHIM};
use real_engines::engine::{SHIM_FOLDER, releases};
use real_engines::look;
use real_engines::machine::seen_on_demo;
use support::rootfs;
use support::said::Said;

/// A policy with crun as its runtime, and these further keys.
fn policy(keys: &str) -> String {
    policy_of(r#""/usr/bin/crun""#, keys)
}

fn policy_of(runtime: &str, keys: &str) -> String {
    format!(r#"{{"schema_version":1,"runtime":{runtime},"requests":"all","default":"none",{keys}}}"#)
}

#[test]
fn real_what_crun_runs_is_seen_to_live_and_to_be_dead() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let containerd = Containerd::on_demo(&engine, &unpacked, &policy(r#""sharing":"shared""#));
        // crun refuses a machine with both kinds of cgroups: leave it the first.
        containerd.host().busybox(&["umount", "/sys/fs/cgroup/unified"]);
        let has_record =
            |id: &str| containerd.host().records().iter().any(|name| name.ends_with(&format!("@{id}")));

        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=0"], "lives");
        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=1"], "killed");
        let root = "/run/containerd/runc/concourse";
        let kept = containerd.host().names_in(&format!("{root}/lives"));
        assert!(kept.iter().any(|name| name == "status"), "{}: {kept:?}", engine.name);

        // A count looks at who has which GPU: neither of those two is the least used.
        let counted = containerd.look(&["--env", "AMD_GPU_COUNT=1"], "count");
        for taken in ["renderD129 ", "renderD130 "] {
            assert!(counted.contains("renderD") && !counted.contains(taken), "{}: {counted}", engine.name);
        }
        assert!(has_record("lives") && has_record("killed"), "{}", engine.name);
        // Further processes of the container still have what create gave.
        let seen = containerd.look_in("lives", "look");
        assert_eq!(seen, seen_on_demo(0..1, "open"), "{}", engine.name);

        containerd.ctr(&["task", "kill", "--signal", "SIGKILL", "killed"]).well();
        containerd.until("the end of killed", || {
            containerd.look(&["--env", "AMD_GPU_COUNT=1"], "count");
            !has_record("killed")
        });
        assert!(has_record("lives"), "{}", engine.name);
        containerd.remove_whatever_it_is("killed");
        containerd.remove("lives");
        assert_eq!(containerd.host().records(), [""; 0], "{}", engine.name);
    }
}

#[test]
fn real_a_lease_of_a_container_that_crun_runs_is_its_own_until_it_ends_or_idles() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let exclusive = r#""sharing":"exclusive""#;
        let containerd = Containerd::on_demo(&engine, &unpacked, &policy(exclusive));
        containerd.host().busybox(&["umount", "/sys/fs/cgroup/unified"]);
        let first = ["--env", "AMD_VISIBLE_DEVICES=0"];

        containerd.start_sleeping(&first, "holds");
        for _ in 0..2 {
            let refused = containerd.run(&first, "next", &look::look("refused"));
            let said = "held by the container holds of runc root";
            assert!(refused.stderr.contains(said), "{}: {refused:?}", engine.name);
        }
        containerd.remove("holds");
        assert_eq!(containerd.look(&first, "next"), seen_on_demo(0..1, "open"), "{}", engine.name);

        // Which of its processes is the first one, and that there is no other, is known of crun, too.
        rootfs::put_waiting(&containerd.outside("/stage/rootfs"));
        let flags = [&["--detach"], &first[..]].concat();
        let started = containerd.run_command(&flags, "idles", &[rootfs::WAITING]).output();
        Said::from(started.unwrap()).well();
        let policy = policy(&format!(r#"{exclusive},"idle_grace_s":0"#));
        let write = format!("echo '{policy}' >/etc/rocworker/wrapper.json");
        containerd.host().busybox(&["sh", "-c", &write]).well();
        assert_eq!(containerd.look(&first, "takes"), seen_on_demo(0..1, "open"), "{}", engine.name);
        containerd.remove_whatever_it_is("idles");
    }
}

/// The program that keeps a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Containerd,
    Shim,
    Init,
}

/// The first process of the only container.
const INIT: &str = "sleep";

/// Kills what runs this program, if anything does: containerd ends the container of a shim that is gone, and a shim ends
/// with its container, at any moment.
fn end(containerd: &Containerd, program: &str) {
    let pids = containerd.host().pids_of(program);
    let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
    containerd.host().busybox(&[&["kill", "-KILL"], &pids[..]].concat());
}

/// Whether a create that bypasses containerd gets the GPU; deletes its container again.
#[track_caller]
fn gets_it(containerd: &Containerd, config: &str) -> bool {
    let bundle = containerd.outside("/stage/asks");
    fs::create_dir_all(&bundle).unwrap();
    fs::write(bundle.join("config.json"), config).unwrap();
    let call = |arguments: &[&str]| {
        let runc = format!("{SHIM_FOLDER}/runc");
        let argv = [&[runc.as_str(), "--root", "/run/other"], arguments].concat();
        let path = format!("{SHIM_FOLDER}:/usr/sbin:/usr/bin");
        // The output goes to a file: the container would keep a pipe open.
        let said = fs::File::create(bundle.join("said")).unwrap();
        let status =
            containerd.host().command(&path, &argv).stdout(said.try_clone().unwrap()).stderr(said).status();
        (status.unwrap().success(), fs::read_to_string(bundle.join("said")).unwrap())
    };
    let (made, said) = call(&["create", "--bundle", "/stage/asks", "asks"]);
    assert!(made || said.contains("is held by the container holds of runc root"), "{said}");
    if made {
        call(&["delete", "--force", "asks"]);
    }
    made
}

#[test]
fn real_a_lease_ends_with_its_container_whoever_of_its_keepers_is_killed_first() {
    use Keeper::{Containerd as Daemon, Init, Shim};
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        for (runtime, order) in [
            ("null", [Shim, Daemon, Init]),
            ("null", [Daemon, Shim, Init]),
            ("null", [Daemon, Init, Shim]),
            (r#""/usr/bin/crun""#, [Daemon, Shim, Init]),
        ] {
            let policy = policy_of(runtime, r#""sharing":"exclusive""#);
            let mut containerd = Containerd::on_demo(&engine, &unpacked, &policy);
            containerd.host().busybox(&["umount", "/sys/fs/cgroup/unified"]);
            let asking = ["--env", "AMD_VISIBLE_DEVICES=0"];
            let config = containerd.spec(&asking, &["/bin/cat"]).to_string();
            containerd.start_sleeping(&asking, "holds");
            let what = format!("{}, {runtime}, {order:?}", engine.name);
            assert!(!gets_it(&containerd, &config), "{what}");
            for keeper in order {
                match keeper {
                    Daemon => containerd.kill(),
                    Shim => end(&containerd, SHIM),
                    Init => end(&containerd, INIT),
                }
                // Never while it lives; whether containerd has ended it meanwhile is seen first.
                let lived = gets_it(&containerd, &config) && !containerd.host().pids_of(INIT).is_empty();
                assert!(!lived, "{what}: behind the end of {keeper:?}");
                if keeper == Init {
                    containerd.until("the GPU is free", || gets_it(&containerd, &config));
                }
            }
            assert_eq!(containerd.host().pids_of(INIT), [""; 0], "{what}");
        }
    }
}
