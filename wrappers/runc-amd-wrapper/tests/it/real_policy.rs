//! What the machine's policy adds to a container, seen from inside of one that real runc made.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use serde_json::{Value, json};
use support::real;

use crate::machine::{CONCOURSE, Like, Machine, Program, Said};

const NEEDS: &[&str] = &["runc", "unshare", "nsenter", "busybox"];

/// Prints how much memory a process may lock, the size of /dev/shm, and the variable for the GPU's version.
const SHOW: &[&str] = &[
    "sh",
    "-c",
    "echo locks $(ulimit -H -l) $(ulimit -S -l) KiB; echo shm $(busybox stat -f -c '%b %S' /dev/shm); \
     echo gfx ${HSA_OVERRIDE_GFX_VERSION-unset}",
];

/// The machine's policy with these keys in it.
fn policy(machine: &Machine, default: &str, keys: &Value) {
    machine.policy("all", default);
    let path = machine.path("etc/rocworker/wrapper.json");
    let mut policy: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    policy.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    std::fs::write(path, policy.to_string()).unwrap();
}

fn config_of(bundle: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap()
}

fn run(machine: &Machine, bundle: &Path, id: &str) -> Said {
    machine.wrapper(&["run", "--bundle", bundle.to_str().unwrap(), id])
}

#[test]
fn real_folders_are_in_every_container_and_only_those_with_the_name_for_it_can_be_written_to() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    let srv = machine.path("srv");
    for folder in ["models", "cache_rw", "closed", "other"] {
        std::fs::create_dir_all(srv.join(folder)).unwrap();
    }
    std::fs::write(srv.join("models/weights"), "heavy\n").unwrap();
    std::fs::set_permissions(srv.join("cache_rw"), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(srv.join("closed"), std::fs::Permissions::from_mode(0o700)).unwrap();
    chown(srv.join("closed"), Some(1), Some(1)).unwrap();
    // A file system of its own, with flags that a user namespace may not take away.
    let other = srv.join("other");
    let mounting =
        ["mount", "-t", "tmpfs", "-o", "nosuid,nodev,noexec,mode=755", "none", other.to_str().unwrap()];
    assert!(machine.inside(&mounting).status().unwrap().success());

    let script = format!(
        "cd {}; cat models/weights; echo written > cache_rw/$0 && echo cache is written; \
         (echo x > models/x) 2>/dev/null || echo models refuses; (echo x > other/x) 2>/dev/null || echo other refuses; \
         echo *",
        srv.display()
    );
    let expected =
        "heavy\ncache is written\nmodels refuses\nother refuses\ncache_rw closed models other\n".to_owned();
    for (n, (default, env, mapping)) in [
        ("none", &[][..], &[][..]),
        ("none", &["AMD_VISIBLE_DEVICES=0"], &[]),
        ("all", &["AMD_VISIBLE_DEVICES=none"], &[]),
        ("all", &[], &[]),
        ("none", &[], CONCOURSE),
        ("none", &["AMD_VISIBLE_DEVICES=0"], CONCOURSE),
    ]
    .into_iter()
    .enumerate()
    {
        policy(&machine, default, &json!({"folders": [srv]}));
        let id = format!("c{n}");
        let args = ["sh", "-c", &script, &id];
        let bundle = machine.bundle(&format!("b{n}"), Like { args: &args, env, mapping });
        let reported = machine.create_and_start(Program::Wrapper, &bundle, &id);
        assert!(
            reported.status.success() && reported.stderr.is_empty(),
            "{default} {env:?} {mapping:?}: {reported:?}"
        );
        assert_eq!(reported.stdout, expected, "{default} {env:?} {mapping:?}");
        assert_eq!(std::fs::read_to_string(srv.join("cache_rw").join(&id)).unwrap(), "written\n");
        let once = config_of(&bundle);
        machine.wrapper(&["delete", "--force", &id]);
        let reported = run(&machine, &bundle, &id);
        assert_eq!((&reported.stdout, config_of(&bundle)), (&expected, once), "a second pass: {reported:?}");
    }
}

#[test]
fn real_a_container_with_gpus_has_the_memory_and_the_variable_of_the_policy_and_so_has_an_exec() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    let edits = json!({"shm_bytes": 123 << 20, "memlock_bytes": 5 << 20,
                       "gfx_override": {"/dev/dri/renderD128": "11.0.0", "/dev/dri/renderD129": "10.3.0"}});
    policy(&machine, "none", &json!({"edits": edits}));
    let given = "locks 5120 5120 KiB\nshm 31488 4096\ngfx 11.0.0\n";
    let asking = &["AMD_VISIBLE_DEVICES=0"][..];
    for (name, mapping) in [("host", &[][..]), ("mapped", CONCOURSE)] {
        let bundle = machine.bundle(name, Like { args: SHOW, env: asking, mapping });
        let reported = run(&machine, &bundle, name);
        assert!(reported.stdout == given && reported.stderr.is_empty(), "{name}: {reported:?}");
        let once = config_of(&bundle);
        let reported = run(&machine, &bundle, name);
        assert!(reported.stdout == given && config_of(&bundle) == once, "a second pass: {reported:?}");
    }
    // Two GPUs that need different values have none, and one who asks for no GPU has nothing.
    let two =
        machine.bundle("two", Like { args: SHOW, env: &["AMD_VISIBLE_DEVICES=0-1"], ..Like::default() });
    let reported = run(&machine, &two, "two");
    assert_eq!(reported.stdout, given.replace("11.0.0", "unset"), "{reported:?}");
    assert!(reported.stderr.contains("10.3.0 for renderD129"), "{reported:?}");
    let none = machine.bundle("none", Like { args: SHOW, ..Like::default() });
    let before = config_of(&none);
    let (ours, runcs) = (run(&machine, &none, "none"), machine.runc(&["run", "-b", "none", "none"]));
    assert_eq!((&ours.stdout, config_of(&none)), (&runcs.stdout, before));
    assert!(!ours.stdout.contains(" 5120 ") && ours.stdout.contains("gfx unset"), "{ours:?}");

    // A process of its own knows nothing of the bundle; one that sets the variable keeps its value.
    let sleeping = Like { args: &["sleep", "1000"], env: asking, mapping: CONCOURSE };
    let bundle = machine.bundle("task", sleeping);
    machine.start_sleeping(Program::Wrapper, &bundle, "task");
    assert_eq!(machine.record("task").unwrap()["schema_version"], 2);
    let file = machine.path("process");
    for (env, gfx) in
        [(&["PATH=/bin"][..], "11.0.0"), (&["PATH=/bin", "HSA_OVERRIDE_GFX_VERSION=9.0.0"], "9.0.0")]
    {
        let process = json!({"user": {"uid": 0, "gid": 0}, "args": SHOW, "env": env, "cwd": "/", "capabilities": {},
                             "noNewPrivileges": true, "rlimits": [{"type": "RLIMIT_MEMLOCK", "hard": 4096, "soft": 4096}]});
        std::fs::write(&file, process.to_string()).unwrap();
        let exec = ["exec", "--process", file.to_str().unwrap(), "task"];
        let reported = machine.runc(&exec);
        assert!(reported.stdout.starts_with("locks 4 4 KiB"), "plain runc: {reported:?}");
        let reported = machine.wrapper(&exec);
        assert_eq!(reported.stdout, given.replace("11.0.0", gfx), "{reported:?}");
        let once = std::fs::read(&file).unwrap();
        machine.wrapper(&exec);
        assert_eq!(std::fs::read(&file).unwrap(), once, "a second pass changes nothing");
    }
    machine.wrapper(&["delete", "--force", "task"]);
}

#[test]
fn real_a_shm_from_elsewhere_is_left_and_memory_is_locked_as_far_as_runc_may() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    let edits = json!({"shm_bytes": 1 << 20, "memlock_bytes": "unlimited"});
    policy(&machine, "all", &json!({"edits": edits}));
    let bundle = machine.bundle("b", Like { args: SHOW, ..Like::default() });
    let mut config = config_of(&bundle);
    let shm = machine.path("shm");
    std::fs::create_dir(&shm).unwrap();
    let mounting = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", shm.to_str().unwrap()];
    assert!(machine.inside(&mounting).status().unwrap().success());
    let bind = json!({"destination": "/dev/shm", "type": "bind", "source": shm, "options": ["rbind", "rw"]});
    config["mounts"].as_array_mut().unwrap().push(bind);
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let reported = run(&machine, &bundle, "c1");
    // Without CAP_SYS_RESOURCE, as in an unprivileged LXD container, runc could not make the container.
    let can_raise = machine.inside(&["sh", "-c", "ulimit -H -l unlimited"]).status().unwrap().success();
    let own = machine.inside(&["sh", "-c", "ulimit -H -l"]).output().unwrap().stdout;
    let own = String::from_utf8(own).unwrap().trim().to_owned();
    let most = if can_raise { "unlimited" } else { own.as_str() };
    assert_eq!(
        reported.stdout,
        format!("locks {most} {most} KiB\nshm 768 4096\ngfx unset\n"),
        "{reported:?}"
    );
    assert_eq!(reported.stderr.contains("CAP_SYS_RESOURCE"), most != "unlimited", "{reported:?}");
    assert!(
        reported.stderr.contains("level=warning") && reported.stderr.contains("/dev/shm is no tmpfs"),
        "{reported:?}"
    );
}

#[test]
fn real_a_container_that_cannot_make_the_folders_starts_without_them() {
    if !real::require_root(NEEDS) {
        return;
    }
    let machine = Machine::new();
    let srv = machine.path("srv");
    std::fs::create_dir_all(srv.join("models")).unwrap();
    policy(&machine, "none", &json!({"folders": [srv]}));
    let script = format!("[ -d {} ] && echo there; echo starts", srv.join("models").display());
    let bundle = machine.bundle("b", Like { args: &["sh", "-c", &script], ..Like::default() });
    let rootfs = bundle.join("rootfs");
    for folder in ["proc", "dev"] {
        std::fs::create_dir(rootfs.join(folder)).unwrap();
    }
    let rootfs = rootfs.to_str().unwrap();
    for mounting in [&["mount", "--bind", rootfs, rootfs][..], &["mount", "-o", "remount,bind,ro", rootfs]] {
        assert!(machine.inside(mounting).status().unwrap().success());
    }
    let before = config_of(&bundle);
    let reported = run(&machine, &bundle, "c1");
    assert_eq!((reported.stdout.as_str(), config_of(&bundle)), ("starts\n", before), "{reported:?}");
    assert!(
        reported.stderr.contains("\\\"models\\\"") && reported.stderr.contains("no place for it"),
        "{reported:?}"
    );
    assert!(machine.inside(&["umount", rootfs]).status().unwrap().success());

    // Files of users that the container does not have.
    let others =
        machine.bundle("o", Like { args: &["sh", "-c", &script], mapping: CONCOURSE, ..Like::default() });
    for folder in ["rootfs/proc", "rootfs/dev"] {
        std::fs::create_dir(others.join(folder)).unwrap();
    }
    chown(others.join("rootfs"), Some(0), Some(0)).unwrap();
    let reported = run(&machine, &others, "c2");
    assert!(reported.stdout == "starts\n" && reported.stderr.contains("no place for it"), "{reported:?}");
    chown(others.join("rootfs"), Some(65534), Some(65534)).unwrap();
    let reported = run(&machine, &others, "c2");
    assert!(reported.stdout == "there\nstarts\n" && reported.stderr.is_empty(), "{reported:?}");

    let reported = run(&machine, &bundle, "c1");
    assert!(reported.stdout == "there\nstarts\n" && reported.stderr.is_empty(), "{reported:?}");
}
