//! runc of an ordinary user, with the wrapper in front of it.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use real_engines::machine::{self, ASKED};
use real_engines::pair::{Pair, Program, timeless};
use serde_json::{Value, json};
use support::said::Said;

/// An ordinary user, who calls runc.
const USER: u32 = 1000;

/// A script with which a container shows its user and its nodes.
const SHOW: &str = "id -u; for node in /dev/kfd /dev/dri; do test -e $node && echo $node; done; exit 5";

/// runc of every release, each with a folder of the user's own, at `/stage/user`.
#[track_caller]
fn pairs(policy: &str) -> Vec<Pair> {
    let pairs = Pair::of_every_engine(policy);
    for pair in &pairs {
        let folder = pair.outside("user");
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(USER), Some(USER)).unwrap();
    }
    pairs
}

/// Runs one of the two as that user; its streams are files of the user's, as runc gives them to the container's root.
fn as_user(pair: &Pair, program: Program, layer: &[&str], arguments: &[&str]) -> Said {
    const TO_FILES: &str = "exec \"$@\" </dev/null >/stage/user/out 2>/stage/user/err";
    let before = [&["/usr/bin/busybox", "sh", "-c", TO_FILES, "sh"], layer].concat();
    let inner = pair.command_within(program, &before, arguments);
    let mut command = Command::new(inner.get_program());
    command.args(["--setuid", &USER.to_string(), "--setgid", &USER.to_string()]).args(inner.get_args());
    command.env_clear().envs(inner.get_envs().map(|(name, value)| (name, value.unwrap())));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let read = |name: &str| fs::read_to_string(pair.outside("user").join(name)).unwrap();
    timeless(Said { status: output.status, stdout: read("out"), stderr: read("err") })
}

/// Runs a container from runc's own description of a rootless one.
fn run(pair: &Pair, program: Program, env: &str, layer: &[&str]) -> Said {
    let bundle = pair.outside("user/bundle");
    let _ = fs::remove_dir_all(&bundle);
    fs::create_dir(&bundle).unwrap();
    chown(&bundle, Some(USER), Some(USER)).unwrap();
    let spec = ["spec", "--rootless", "--bundle", "/stage/user/bundle"];
    as_user(pair, program, &[], &spec).well();
    let config = bundle.join("config.json");
    let mut spec: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    spec["process"]["terminal"] = false.into();
    spec["process"]["args"] = json!(["/bin/sh", "-c", SHOW]);
    spec["process"]["env"] = json!(["PATH=/bin", env]);
    spec["root"]["path"] = "/stage/rootfs".into();
    if !layer.is_empty() {
        // The container is in a user namespace already, which it is to keep.
        for key in ["uidMappings", "gidMappings"] {
            spec["linux"].as_object_mut().unwrap().remove(key);
        }
        let namespaces = spec["linux"]["namespaces"].as_array_mut().unwrap();
        namespaces.retain(|namespace| namespace["type"] != "user");
    }
    fs::write(&config, spec.to_string()).unwrap();
    let edited = fs::read(&config).unwrap();
    let arguments = ["--root", "/stage/user/state", "run", "--bundle", "/stage/user/bundle", "c1"];
    let said = as_user(pair, program, layer, &arguments);
    assert!(fs::read(&config).unwrap() == edited, "a bundle was edited for an ordinary user");
    said
}

#[test]
fn real_runc_of_an_ordinary_user_is_hindered_in_nothing_and_given_no_gpu() {
    for pair in pairs(ASKED) {
        for env in ["A=b", "AMD_VISIBLE_DEVICES=none", "AMD_GPU_COUNT=0"] {
            let said = Program::BOTH.map(|program| run(&pair, program, env, &[]));
            assert_eq!(said[0], said[1], "{}: {env}", pair.engine.name);
            assert_eq!((said[1].status.code(), said[1].stdout.as_str()), (Some(5), "0\n"), "{said:?}");
        }
        let refused = run(&pair, Program::Wrapper, "AMD_VISIBLE_DEVICES=0", &[]);
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.starts_with("runc-amd-wrapper: "), "{refused:?}");
        assert!(refused.stderr.contains("only root's runc can be given GPUs"), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        assert_eq!(pair.host.records(), [""; 0]);
    }
    for pair in pairs(machine::ALL) {
        let plain = run(&pair, Program::Runc, "A=b", &[]);
        let said = run(&pair, Program::Wrapper, "A=b", &[]);
        assert_eq!((said.status, &said.stdout), (plain.status, &plain.stdout), "{said:?}");
        assert!(said.stderr.contains("the container starts without GPUs"), "{said:?}");
        assert_eq!(pair.host.records(), [""; 0]);
    }
}

/// Runs as rootless engines do: the user is root in a namespace, which does not map the policy's owner.
#[test]
fn real_runc_in_a_users_own_namespace_is_plain_runc_that_says_why() {
    const LAYER: &[&str] = &["/usr/bin/busybox", "unshare", "--user", "--map-root-user"];
    for pair in pairs(machine::ALL) {
        for env in ["A=b", "AMD_VISIBLE_DEVICES=0"] {
            let plain = run(&pair, Program::Runc, env, LAYER);
            assert_eq!((plain.status.code(), plain.stdout.as_str()), (Some(5), "0\n"), "{plain:?}");
            let said = run(&pair, Program::Wrapper, env, LAYER);
            assert_eq!((said.status, &said.stdout), (plain.status, &plain.stdout), "{said:?}");
            assert!(said.stderr.contains("in a user namespace without the machine's root"), "{said:?}");
        }
        assert_eq!(pair.host.records(), [""; 0]);
    }
}
