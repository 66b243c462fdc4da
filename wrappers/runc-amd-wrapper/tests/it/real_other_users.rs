//! What an ordinary user of the machine can do to other people's containers: nothing.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::real;

use crate::machine::creates::{sleeper, spawn, wait_for};
use crate::machine::{Like, Machine, Program, Said};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "flock", "setpriv"];

/// Nobody's: no folder of a test belongs to this user unless the test says so.
const STRANGER: u32 = 64_999;

fn as_stranger(argv: &[&str]) -> Command {
    let id = STRANGER.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).args(argv);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

/// Ends its process when it goes.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tries to hold a lock on each of these; those that hold one do so until they are dropped.
fn locks_of_a_stranger(paths: &[&Path]) -> Vec<Ended> {
    let lock = |path: &&Path| {
        let path = path.to_str().unwrap();
        Ended(as_stranger(&["flock", "--no-fork", "--nonblock", path, "sleep", "1000"]).spawn().unwrap())
    };
    let mut holders: Vec<Ended> = paths.iter().map(lock).collect();
    // Each has become `sleep`, with the lock, or has ended without one.
    for holder in &mut holders {
        let began = Instant::now();
        loop {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", holder.0.id())).unwrap_or_default();
            if comm.trim_end() == "sleep" || holder.0.try_wait().unwrap().is_some() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "flock neither holds nor ends");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    holders
}

#[test]
fn real_a_lock_of_an_ordinary_user_delays_no_create() {
    if !real::require_root(NEEDED) {
        return;
    }
    for made_before in [true, false] {
        let machine = Machine::with_eight_gpus();
        machine.policy_of_eight(&json!({}));
        let run = machine.path("run/rocworker");
        let inside = ["records", "leases", "waiting"].map(|name| run.join(name));
        let lock = run.join("lock");
        if made_before {
            // The daemon, a looser umask or a person may have made the folders.
            for folder in &inside {
                std::fs::create_dir_all(folder).unwrap();
                set_mode(folder, 0o755);
            }
            set_mode(&run, 0o755);
            std::fs::write(&lock, "").unwrap();
            set_mode(&lock, 0o644);
        }
        let first = machine.bundle("first", sleeper(&["AMD_GPU_COUNT=1"]));
        assert!(spawn(&machine, &first, "first").wait().unwrap().success());
        let paths: Vec<&Path> = [&run, &lock].into_iter().chain(&inside).map(|path| path.as_path()).collect();
        let holders = locks_of_a_stranger(&paths);
        let began = Instant::now();
        let second = machine.bundle("second", sleeper(&["AMD_GPU_COUNT=1"]));
        let succeeded = spawn(&machine, &second, "second").wait().unwrap().success();
        let output = std::fs::read_to_string(second.join("stderr")).unwrap();
        assert!(succeeded, "made before: {made_before}: {output}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        drop(holders);
        // Other programs publish there what everybody may read; what the wrapper keeps is root's alone.
        assert_eq!(mode(&run), 0o755, "made before: {made_before}");
        assert_eq!(mode(&lock), 0o600, "made before: {made_before}");
        assert_eq!(mode(&inside[0]), 0o700, "made before: {made_before}");
        assert_eq!(mode(&inside[1]), 0o700, "made before: {made_before}");
    }
}

/// The policy of three GPUs, with these parents of folders.
fn folders_of(machine: &Machine, parents: &[&Path]) {
    machine.policy("all", "none");
    let file = machine.path("etc/rocworker/wrapper.json");
    let mut policy: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    policy["folders"] = json!(parents);
    std::fs::write(file, policy.to_string()).unwrap();
}

/// A container that prints what it finds in a file, and then that it ran.
fn reads(machine: &Machine, file: &Path) -> Said {
    let script = format!("cat {} 2>/dev/null; echo ran", file.display());
    let bundle = machine.bundle("b", Like { args: &["sh", "-c", &script], ..Like::default() });
    let output = machine.create_and_start(Program::Wrapper, &bundle, "b");
    assert!(machine.wrapper(&["delete", "--force", "b"]).status.success());
    output
}

/// A folder of root's alone, which a policy never named, with a secret in it.
fn make_secret(machine: &Machine) -> std::path::PathBuf {
    let secret = machine.path("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("file"), "the secret\n").unwrap();
    set_mode(&secret, 0o700);
    secret
}

/// The stranger puts a link to the secret in the place of what they may rename, and takes it away, without end.
#[test]
fn real_an_exchange_of_a_folder_for_a_link_never_mounts_what_the_policy_does_not_name() {
    if !real::require_root(NEEDED) {
        return;
    }
    const EXCHANGE: &str = "cd \"$1\" && ln -s \"$3\" link && touch began; while :; do \
                            mv -T \"$2\" away; mv -T link \"$2\"; mv -T \"$2\" link; mv -T away \"$2\"; done";
    for exchanged in ["the folder", "its parent"] {
        let machine = Machine::new();
        let secret = make_secret(&machine);
        let srv = machine.path("open/srv");
        std::fs::create_dir_all(srv.join("data_rw")).unwrap();
        std::fs::create_dir(secret.join("data_rw")).unwrap();
        std::fs::write(secret.join("data_rw/file"), "the secret\n").unwrap();
        let (open, name, target) = match exchanged {
            "the folder" => (srv.clone(), "data_rw", secret.clone()),
            _ => (machine.path("open"), "srv", secret.clone()),
        };
        chown(&open, Some(STRANGER), Some(STRANGER)).unwrap();
        folders_of(&machine, &[&srv]);
        let arguments = [open.to_str().unwrap(), name, target.to_str().unwrap()];
        let exchanging = ["sh", "-c", EXCHANGE, "sh"].into_iter().chain(arguments).collect::<Vec<_>>();
        let _attacker = Ended(as_stranger(&exchanging).spawn().unwrap());
        wait_for("the exchange", || open.join("began").exists());
        for attempt in 0..20 {
            let output = reads(&machine, &srv.join("data_rw/file"));
            assert_eq!(output.stdout, "ran\n", "{exchanged}, attempt {attempt}: {output:?}");
            assert!(output.stderr.contains("level=warning"), "{exchanged}, attempt {attempt}: {output:?}");
        }
    }
}

#[test]
fn real_folders_are_mounted_only_from_where_root_alone_can_exchange_them() {
    if !real::require_root(NEEDED) {
        return;
    }
    type Make = fn(&Path, &Path);
    // Each state with the warning's text, or None where the folder is mounted.
    let states: [(&str, Make, Option<&str>); 9] = [
        ("root's", |_, _| {}, None),
        (
            "the folder itself is a user's",
            |srv, _| chown(srv.join("a"), Some(STRANGER), Some(STRANGER)).unwrap(),
            None,
        ),
        (
            "a link of root's",
            |srv, _| {
                std::fs::rename(srv, srv.with_file_name("moved")).unwrap();
                symlink("./../above/moved", srv).unwrap();
            },
            None,
        ),
        (
            "a user's",
            |srv, _| chown(srv, Some(STRANGER), None).unwrap(),
            Some("/above/srv is not root's alone"),
        ),
        ("writable by all", |srv, _| set_mode(srv, 0o777), Some("/above/srv is not root's alone")),
        ("writable by a group", |srv, _| set_mode(srv, 0o775), Some("/above/srv is not root's alone")),
        // In a folder with the sticky bit, users may rename files of their own.
        ("as /tmp", |srv, _| set_mode(srv, 0o1777), Some("/above/srv is not root's alone")),
        (
            "beneath a user's",
            |_, above| chown(above, Some(STRANGER), None).unwrap(),
            Some("/above is not root's alone"),
        ),
        (
            "a link in a user's folder",
            |srv, above| {
                std::fs::rename(srv, above.with_file_name("moved")).unwrap();
                symlink("../moved", srv).unwrap();
                chown(above, Some(STRANGER), None).unwrap();
            },
            Some("/above is not root's alone"),
        ),
    ];
    for (kind, make, refused) in states {
        let machine = Machine::new();
        let above = machine.path("above");
        let srv = above.join("srv");
        std::fs::create_dir_all(srv.join("a")).unwrap();
        std::fs::write(srv.join("a/file"), "from the host\n").unwrap();
        make(&srv, &above);
        folders_of(&machine, &[&srv]);
        let output = reads(&machine, &srv.join("a/file"));
        match refused {
            None => {
                assert_eq!(output.stdout, "from the host\nran\n", "{kind}: {output:?}");
                assert_eq!(output.stderr, "", "{kind}");
            }
            Some(part) => {
                assert_eq!(output.stdout, "ran\n", "{kind}: {output:?}");
                let line = output.stderr.trim_end();
                assert!(line.contains("level=warning") && line.contains(part), "{kind}: {output:?}");
                assert_eq!(line.lines().count(), 1, "{kind}: {output:?}");
            }
        }
    }
}
