//! Folders of the policy on real FUSE file systems, whose programs answer or do not.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::fuse;
use support::real;

use crate::machine::Machine;
use crate::machine::creates::{sleeper, spawn};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "mount"];

/// How the file system's program treats requests after the first one, with which it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// The program is stopped: the kernel keeps the requests.
    TakesNone,
    /// The program waits itself, as for a server that is gone: only its answer ends the wait (fs/fuse/dev.c,
    /// `request_wait_answer`).
    TakesAll,
    /// The program answers every request.
    Answers,
    /// The program answers all requests but those with this number.
    AnswersAllBut(u32),
}

/// Requests' numbers in linux/fuse.h.
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const READDIR: u32 = 28;

/// A mounted file system. Its end answers what waits: with an error.
struct Served {
    /// The connection, which ends with its last descriptor.
    _fuse: File,
    /// Ends the thread that takes requests.
    _stop: std::sync::mpsc::Sender<()>,
}

impl Served {
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
        if program != Requests::TakesNone {
            nix::fcntl::fcntl(&requests, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
                .unwrap();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 17];
                // Until the sender is gone.
                while stopped.recv_timeout(Duration::from_millis(5))
                    == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    while let Ok(length @ 40..) = requests.read(&mut buffer) {
                        let answers = match program {
                            Requests::TakesNone | Requests::TakesAll => false,
                            Requests::Answers => true,
                            Requests::AnswersAllBut(number) => Self::number(&buffer) != number,
                        };
                        if answers {
                            requests.write_all(&Self::answer(&buffer[..length])).unwrap();
                        }
                    }
                }
            });
        }
        Self { _fuse: fuse, _stop: stop }
    }

    fn number(request: &[u8]) -> u32 {
        u32::from_ne_bytes(request[4..8].try_into().unwrap())
    }

    /// A folder of root's: its attributes (`fuse_attr_out`), size (`fuse_statfs_out`) and one name (`fuse_dirent`); else
    /// ENOSYS.
    fn answer(request: &[u8]) -> Vec<u8> {
        let mut error = 0;
        let mut content = Vec::<u8>::new();
        match Self::number(request) {
            GETATTR => {
                content.resize(104, 0);
                content[16..24].copy_from_slice(&1_u64.to_ne_bytes());
                content[76..80].copy_from_slice(&0o40755_u32.to_ne_bytes());
                content[80..84].copy_from_slice(&2_u32.to_ne_bytes());
            }
            STATFS => content.resize(80, 0),
            // From the start. Inode and offset of the next one, the name's length, and that it is a folder.
            READDIR if request[48..56] == [0; 8] => {
                content.extend([2_u64, 1].map(u64::to_ne_bytes).concat());
                content.extend([1_u32, 4].map(u32::to_ne_bytes).concat());
                content.extend(*b"a\0\0\0\0\0\0\0");
            }
            READDIR => {}
            _ => error = -nix::libc::ENOSYS,
        }
        let length = u32::try_from(16 + content.len()).unwrap();
        [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &request[8..16], &content].concat()
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

/// Waits some seconds for the create's end, and returns its output.
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
    let reported = std::fs::read_to_string(bundle.join("stderr")).unwrap();
    assert!(status.success(), "{status}: {reported}");
    reported
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
                Served::mount(&machine, &above, program)
            } else {
                Served::mount(&machine, &machine.path(at), program)
            };
            let began = Instant::now();
            let reported = ended(spawn(&machine, &bundle, "b"), &bundle);
            assert!(began.elapsed() < Duration::from_secs(4), "{at} {program:?}: {:?}", began.elapsed());
            assert!(reported.contains("its file system does not answer"), "{at} {program:?}: {reported}");
            assert_eq!(
                given(&machine, &bundle),
                (expected.iter().map(|name| (*name).to_owned()).collect(), gpus)
            );
        }
    }
}

#[test]
fn real_a_file_system_that_answers_all_but_one_question_holds_up_no_container() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    // The folder that is mounted; what is left.
    for (at, number, expected) in
        [("srv", READDIR, &[][..]), ("srv", LOOKUP, &[]), ("srv/dead", GETATTR, &["a", "z"])]
    {
        let machine = Machine::new();
        policy(&machine, "none");
        for name in ["srv/a", "srv/z"] {
            std::fs::create_dir_all(machine.path(name)).unwrap();
        }
        let _half_dead = Served::mount(&machine, &machine.path(at), Requests::AnswersAllBut(number));
        let bundle = machine.bundle("b", sleeper(&[]));
        let began = Instant::now();
        let reported = ended(spawn(&machine, &bundle, "b"), &bundle);
        assert!(began.elapsed() < Duration::from_secs(4), "{at} {number}: {:?}", began.elapsed());
        assert!(reported.contains("its file system does not answer"), "{at} {number}: {reported}");
        assert_eq!(
            given(&machine, &bundle),
            (expected.iter().map(|name: &&str| (*name).to_owned()).collect(), 0),
            "{at} {number}: {reported}"
        );
    }
}

#[test]
fn real_a_container_that_asks_has_its_gpu_without_a_folder_that_does_not_answer() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    for program in [Requests::TakesNone, Requests::TakesAll] {
        let machine = Machine::new();
        policy(&machine, "none");
        for name in ["srv/a", "srv/z"] {
            std::fs::create_dir_all(machine.path(name)).unwrap();
        }
        let _dead = Served::mount(&machine, &machine.path("srv/dead"), program);
        for id in ["first", "second"] {
            let bundle = machine.bundle(id, sleeper(&["AMD_VISIBLE_DEVICES=0"]));
            let reported = ended(spawn(&machine, &bundle, id), &bundle);
            assert!(
                reported.contains("dead")
                    && reported.contains("is not mounted: its file system does not answer"),
                "{program:?}: {reported}"
            );
            assert_eq!(given(&machine, &bundle), (vec!["a".to_owned(), "z".to_owned()], 1));
        }
    }
}

#[test]
fn real_every_container_has_the_folder_of_a_fuse_file_system_that_answers() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    for (env, default, gpus) in
        [(&[][..], "none", 0), (&[], "all", 3), (&["AMD_VISIBLE_DEVICES=0"], "none", 1)]
    {
        let machine = Machine::new();
        policy(&machine, default);
        let _model = Served::mount(&machine, &machine.path("srv/model"), Requests::Answers);
        let bundle = machine.bundle("b", sleeper(env));
        let began = Instant::now();
        let reported = ended(spawn(&machine, &bundle, "b"), &bundle);
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!(given(&machine, &bundle), (vec!["model".to_owned()], gpus), "{reported}");
    }
}

#[test]
fn real_many_folders_of_a_server_that_does_not_answer_cost_no_more_than_a_few() {
    if !real::require_root(NEEDED) || !fuse::require() {
        return;
    }
    let machine = Machine::new();
    policy(&machine, "none");
    std::fs::create_dir_all(machine.path("srv/a")).unwrap();
    let dead: Vec<_> = (10..40)
        .map(|n| Served::mount(&machine, &machine.path(&format!("srv/d{n}")), Requests::TakesNone))
        .collect();
    let bundle = machine.bundle("b", sleeper(&[]));
    let began = Instant::now();
    let reported = ended(spawn(&machine, &bundle, "b"), &bundle);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(reported.matches("is not mounted: its file system does not answer").count(), 3, "{reported}");
    assert_eq!(reported.matches("no further folder beneath ").count(), 1, "{reported}");
    assert!(reported.contains("d13") && reported.contains("d39"), "{reported}");
    assert_eq!(given(&machine, &bundle), (vec!["a".to_owned()], 0));
    drop(dead);
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
