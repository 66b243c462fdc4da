//! Folders of the policy on a real FUSE file system whose program does not answer.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test lays out a machine and runs runc on it"
)]

mod machine;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use machine::creates::{sleeper, spawn};
use machine::{Machine, Program};
use serde_json::{Value, json};
use support::fuse;
use support::real;

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "mount"];

/// What the file system's program does with requests after the first one, by which it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// It is stopped: the kernel keeps them.
    TakesNone,
    /// It waits itself, as for a server that is gone: only its answer ends the wait (fs/fuse/dev.c, `request_wait_answer`).
    TakesAll,
}

/// A mounted file system that does not answer. Its end answers: with an error.
struct Dead {
    /// The connection, which ends with its last descriptor.
    _fuse: File,
    /// Ends the thread that takes requests.
    _stop: std::sync::mpsc::Sender<()>,
}

impl Dead {
    fn mount(machine: &Machine, at: &Path, program: Requests) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let fuse = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = "fd=0,rootmode=40755,user_id=0,group_id=0,allow_other";
        let mount = ["mount", "-i", "-t", "fuse", "-o", options, "none", at.to_str().unwrap()];
        let mounted = machine.inside(&mount).stdin(Stdio::from(fuse.try_clone().unwrap())).status();
        assert!(mounted.unwrap().success());
        let mut requests = fuse.try_clone().unwrap();
        Self::answer_the_first(&mut requests);
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        if program == Requests::TakesAll {
            nix::fcntl::fcntl(&requests, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
                .unwrap();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 17];
                // Until the sender is gone.
                while stopped.recv_timeout(Duration::from_millis(5))
                    == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    let _ = requests.read(&mut buffer);
                }
            });
        }
        Self { _fuse: fuse, _stop: stop }
    }

    /// FUSE_INIT, with what linux/fuse.h calls `fuse_init_out`.
    fn answer_the_first(requests: &mut File) {
        let mut buffer = vec![0; 1 << 17];
        assert!(requests.read(&mut buffer).unwrap() >= 40);
        let mut answer = Vec::new();
        answer.extend(80_u32.to_ne_bytes());
        answer.extend(0_i32.to_ne_bytes());
        answer.extend(&buffer[8..16]);
        answer.extend([7_u32, 31].map(u32::to_ne_bytes).concat());
        answer.resize(80, 0);
        // The longest write that it takes.
        answer[36..40].copy_from_slice(&4096_u32.to_ne_bytes());
        requests.write_all(&answer).unwrap();
    }
}

fn policy(machine: &Machine, default: &str) {
    machine.policy("all", default);
    let path = machine.path("etc/rocworker/wrapper.json");
    let mut policy: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    policy["folders"] = json!([machine.path("srv")]);
    std::fs::write(path, policy.to_string()).unwrap();
}

/// The create's end, for which it has some seconds, and what it said.
#[track_caller]
fn ended(mut create: Child, bundle: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(8);
    let status = loop {
        match create.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                break create.kill().map(|()| create.wait().unwrap()).unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let said = std::fs::read_to_string(bundle.join("said")).unwrap();
    assert!(status.success(), "{status}: {said}");
    said
}

/// The names of the folders that a bundle mounts, and the number of its GPUs.
fn given(machine: &Machine, bundle: &Path) -> (Vec<String>, usize) {
    let config: Value = serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    let srv = machine.path("srv");
    let mounts = config["mounts"].as_array().unwrap().iter();
    let paths = mounts.map(|mount| Path::new(mount["destination"].as_str().unwrap()).to_owned());
    let names = paths.filter_map(|path| Some(path.strip_prefix(&srv).ok()?.to_str()?.to_owned())).collect();
    let devices = config["linux"]["devices"].as_array().cloned().unwrap_or_default();
    let is_gpu = |device: &&Value| device["path"].as_str().unwrap().contains("renderD");
    (names, devices.iter().filter(is_gpu).count())
}

#[test]
fn real_a_file_system_that_does_not_answer_holds_up_no_container_that_asks_for_nothing() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    // The folder that is mounted; what is left.
    for (at, expected) in [("srv/dead", &["a", "z"][..]), ("srv", &[]), ("", &[])] {
        for (program, default, gpus) in [
            (Requests::TakesAll, "none", 0),
            (Requests::TakesAll, "all", 3),
            (Requests::TakesNone, "none", 0),
        ] {
            if at.is_empty() && default == "all" {
                continue;
            }
            let machine = Machine::new();
            policy(&machine, default);
            for name in ["srv/a", "srv/z"] {
                std::fs::create_dir_all(machine.path(name)).unwrap();
            }
            let bundle = machine.bundle("b", sleeper(&[]));
            // The parent's own parent: a folder of its own, since the machine needs the rest of its files.
            let above = machine.path("above");
            let _dead = if at.is_empty() {
                let path = machine.path("etc/rocworker/wrapper.json");
                let mut policy: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                policy["folders"] = json!([above.join("srv")]);
                std::fs::write(path, policy.to_string()).unwrap();
                Dead::mount(&machine, &above, program)
            } else {
                Dead::mount(&machine, &machine.path(at), program)
            };
            let began = Instant::now();
            let said = ended(spawn(&machine, &bundle, "b"), &bundle);
            assert!(began.elapsed() < Duration::from_secs(4), "{at} {program:?}: {:?}", began.elapsed());
            assert!(said.contains("is a FUSE file system"), "{at} {program:?}: {said}");
            assert_eq!(
                given(&machine, &bundle),
                (expected.iter().map(|name| (*name).to_owned()).collect(), gpus)
            );
        }
    }
}

#[test]
fn real_a_container_that_asks_waits_for_a_file_system_within_limits_of_the_kernel() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    let machine = Machine::new();
    policy(&machine, "none");
    for name in ["srv/a", "srv/z"] {
        std::fs::create_dir_all(machine.path(name)).unwrap();
    }
    // The kernel ends the thread that asks: the request was not taken. As it ends one that waits for NFS.
    let stopped = Dead::mount(&machine, &machine.path("srv/dead"), Requests::TakesNone);
    let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let said = ended(spawn(&machine, &bundle, "b"), &bundle);
    assert!(
        said.contains("dead") && said.contains("is not mounted: its file system does not answer"),
        "{said}"
    );
    assert_eq!(given(&machine, &bundle), (vec!["a".to_owned(), "z".to_owned()], 1));
    drop(stopped);

    let machine = Machine::new();
    policy(&machine, "none");
    std::fs::create_dir_all(machine.path("srv/a")).unwrap();
    let waiting = Dead::mount(&machine, &machine.path("srv/dead"), Requests::TakesAll);
    let asking = machine.bundle("asking", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let mut create = spawn(&machine, &asking, "asking");
    std::thread::sleep(Duration::from_secs(2));
    assert!(create.try_wait().unwrap().is_none(), "the kernel lets it wait");
    // Nobody else does: it has no lock.
    let other = machine.bundle("other", sleeper(&[]));
    machine.start_sleeping(Program::Wrapper, &other, "other");
    drop(waiting);
    let said = ended(create, &asking);
    assert!(said.contains("dead") && said.contains("is not mounted"), "{said}");
    assert_eq!(given(&machine, &asking), (vec!["a".to_owned()], 1));
}

#[test]
fn real_a_pod_that_may_ask_has_its_gpu_and_no_folder() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    policy(&machine, "none");
    let path = machine.path("etc/rocworker/wrapper.json");
    let mut pods: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    pods["pods"] = json!("all");
    std::fs::write(path, pods.to_string()).unwrap();
    std::fs::create_dir_all(machine.path("srv/a")).unwrap();
    let bundle = machine.bundle("b", sleeper(&["AMD_VISIBLE_DEVICES=0"]));
    let config = bundle.join("config.json");
    let mut pod: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    pod["annotations"] = json!({"io.kubernetes.cri.container-type": "container"});
    std::fs::write(config, pod.to_string()).unwrap();
    ended(spawn(&machine, &bundle, "b"), &bundle);
    assert_eq!(given(&machine, &bundle), (Vec::new(), 1));
}
