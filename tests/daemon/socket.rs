//! What the socket does with those who do not ask as `rocworker status` does.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use layout::{Machine, Nodes};
use rocworker::daemon::ask::{Answer, Serving, ask, serving};
use root::Root;
use serde_json::Value;
use support::detect::scratch;

use crate::laid::Laid;
use crate::running::{SOCKET, answer, applied, eventually};

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
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0, "it was left");
    }
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
    eventually(
        "it answers",
        || matches!(ask(&root), Some(Answer::Report(report)) if report.pid == served.0.id()),
    );
    assert_eq!(serving(&root, Duration::ZERO).unwrap(), Some(Serving::Process(served.0.id())));
    let mode = top.join(SOCKET).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    drop(served);
    assert_eq!(ask(&root), None);
}
