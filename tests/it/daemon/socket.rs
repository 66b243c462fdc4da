//! What the socket does with those who do not ask as `rocworker status` does.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use layout::{Machine, Nodes};
use rocworker::daemon::socket::{Answer, ask, serving};
use root::Root;
use serde_json::Value;
use support::detect::scratch;

use crate::daemon::running::{Running, SOCKET, answer, applied, command, eventually};
use crate::setup::laid::Laid;

#[test]
fn one_line_is_answered_by_one_object_and_nothing_else_is() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let mode = laid.path(SOCKET).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let text = answer(&laid, b"status\n");
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["pid"], running.pid());
    assert_eq!(answer(&laid, b"else\n"), "{\"error\":\"ask for status\",\"schema_version\":1}\n");
    assert_eq!(answer(&laid, &[b'x'; 4096]), "null", "it was left");
    assert_eq!(answer(&laid, &[b"status", &[0; 80][..], b"\n"].concat()), "null", "it was left");
}

#[test]
fn many_that_say_nothing_keep_nobody_from_an_answer_and_are_left() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let mut silent: Vec<_> = (0..40).map(|_| UnixStream::connect(laid.path(SOCKET)).unwrap()).collect();
    let mut slow = UnixStream::connect(laid.path(SOCKET)).unwrap();
    slow.write_all(b"sta").unwrap();
    let began = Instant::now();
    assert_eq!(laid.json(&["status"])["daemon"]["pid"], running.pid());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // Eight clients, one that may have just left, and six threads of the daemon's own: three publish a file, and one
    // reads for them.
    let threads = fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().count();
    assert!(threads <= 15, "{threads} threads");
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // read(2) with a time limit may be interrupted, which read_to_end goes on after.
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "it was left");
    }
}

#[test]
fn a_client_that_writes_a_byte_now_and_then_has_two_seconds_in_all() {
    let laid = Laid::demo("");
    let _running = applied(&laid);
    let mut slow = UnixStream::connect(laid.path(SOCKET)).unwrap();
    let began = Instant::now();
    while slow.write_all(b"s").is_ok() {
        assert!(began.elapsed() < Duration::from_secs(6), "it is still served");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(began.elapsed() > Duration::from_secs(2), "it was left after {:?}", began.elapsed());
}

#[test]
fn status_does_not_wait_for_one_that_does_not_answer() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    laid.put("run/rocworker/none", "");
    let listener = UnixListener::bind(laid.path(SOCKET)).unwrap();
    let began = Instant::now();
    let status = laid.json(&["status"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let problem = status["daemon"]["problem"].as_str().unwrap();
    assert!(problem.ends_with("daemon.sock: no answer within 1 s"), "{problem}");
    drop(listener);
    assert_eq!(laid.json(&["status"])["daemon"], Value::Null, "the socket leads to nobody");
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A socket's path has at most 107 bytes (unix(7)).
#[test]
fn beneath_a_root_whose_path_is_longer_than_a_sockets_the_daemon_is_asked_all_the_same() {
    let above = scratch();
    let top = above.path().join("a".repeat(130));
    fs::create_dir(&top).unwrap();
    Machine::demo().lay_out(&top, Nodes::Recorded).unwrap();
    let root = Root::open(&top).unwrap();
    assert_eq!(ask(&root), None);
    let mut serve = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    serve.arg("--root").arg(&top).arg("serve").stdin(Stdio::null()).stderr(Stdio::null());
    let served = Served(serve.spawn().unwrap());
    let is_its = |answer| matches!(answer, Some(Answer::Report(report)) if report.pid == served.0.id());
    eventually("it answers", || is_its(ask(&root)));
    assert!(is_its(serving(&root, Duration::ZERO).unwrap()));
    let mode = top.join(SOCKET).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    drop(served);
    assert_eq!(ask(&root), None);
}

/// At once, for the daemon is faster than a removal file by file.
fn remove_run_folder(laid: &Laid) {
    fs::rename(laid.path("run/rocworker"), laid.path("gone")).unwrap();
    fs::remove_dir_all(laid.path("gone")).unwrap();
}

/// A cleaner of /run, or a person: the daemon makes its lock and its socket again, and stays the only one.
#[test]
fn a_daemon_whose_run_folder_is_removed_is_asked_again_at_once_and_a_second_one_refuses() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    let gone: [&dyn Fn(); 3] =
        [&|| remove_run_folder(&laid), &|| fs::remove_file(laid.path(SOCKET)).unwrap(), &|| {
            fs::remove_file(laid.path("run/rocworker/daemon.lock")).unwrap()
        }];
    for remove in gone {
        remove();
        let began = Instant::now();
        eventually("it has its lock and is asked", || {
            let daemon = &laid.json(&["status"])["daemon"];
            laid.path("run/rocworker/daemon.lock").exists() && daemon["pid"] == running.pid()
        });
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let second = command(&laid).output().unwrap();
        let said = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(1), "{said}");
        assert!(said.contains("another rocworker serve runs already"), "{said}");
        assert_eq!(laid.path(SOCKET).metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    }
    assert_eq!(running.says()["pid"], running.pid(), "it is the first that answers");
}

/// The run folder is removed again and again, also while the daemon is making its lock and its socket anew.
#[test]
#[ignore = "cargo xtask test --all"]
fn a_daemon_whose_run_folder_is_removed_many_times_in_a_row_has_lock_and_socket_in_the_end() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    for _ in 0..5 {
        for _ in 0..60 {
            // By a program: as slow as a person's, so that the daemon is met at each of its steps.
            Command::new("rm").arg("-rf").arg(laid.path("run/rocworker")).status().unwrap();
        }
        eventually("it has its lock and is asked", || {
            let daemon = &laid.json(&["status"])["daemon"];
            laid.path("run/rocworker/daemon.lock").exists() && daemon["pid"] == running.pid()
        });
        assert!(!command(&laid).status().unwrap().success(), "a second one refuses");
    }
}

/// The wrapper refuses such a folder too. One that an older wrapper has kept for root alone is opened to readers.
#[test]
fn a_daemon_refuses_a_run_folder_that_others_write_or_that_is_a_link_and_opens_a_private_one_to_readers() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let run = laid.path("run/rocworker");
    let mode = |mode| fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
    let refused = || {
        let ended = command(&laid).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        assert!(fs::read_dir(laid.path("run/rocworker")).unwrap().next().is_none(), "nothing is made there");
        String::from_utf8(ended.stderr).unwrap()
    };
    fs::remove_dir_all(&run).ok();
    fs::create_dir_all(&run).unwrap();
    mode(0o777);
    let said = refused();
    assert!(said.contains("run/rocworker can be written by others (mode 0777)"), "{said}");
    fs::remove_dir(&run).unwrap();
    fs::create_dir(laid.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &run).unwrap();
    let said = refused();
    assert!(said.contains("run/rocworker: Not a directory"), "{said}");
    fs::remove_file(&run).unwrap();
    fs::create_dir(&run).unwrap();
    mode(0o700);
    let _running = Running::begin(&laid);
    assert_eq!(run.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
}

/// Whoever begins in the moment between is the daemon from then on: never are there two.
#[test]
fn of_two_daemons_that_begin_while_the_run_folder_is_removed_one_stays() {
    let laid = Laid::demo("");
    let running = applied(&laid);
    running.signal(nix::sys::signal::Signal::SIGSTOP);
    remove_run_folder(&laid);
    let second = Running::begin(&laid);
    running.signal(nix::sys::signal::Signal::SIGCONT);
    let (status, said) = running.ends_by_itself();
    assert!(!status.success() && said.contains("another rocworker serve runs already"), "{said}");
    assert_eq!(laid.json(&["status"])["daemon"]["pid"], second.pid(), "its socket is left to it");
}
