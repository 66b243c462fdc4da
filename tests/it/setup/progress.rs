//! What long work says on the way: in a pipe by a line for each step, on a terminal by a line that goes again.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, Stdio};

use layout::{Machine, Nodes};
use support::real;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// The demo's machine, of which another run of rocworker has the lock as long as the file is open.
fn locked() -> (tempfile::TempDir, File) {
    let dir = support::detect::scratch();
    Machine::demo().lay_out(dir.path(), Nodes::Recorded).unwrap();
    let folder = dir.path().join("var/lib/rocworker");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    (dir, lock)
}

/// The beginning of the sentence: a terminal may be narrow.
const WAITING: &str = "waiting up to 60 s for another run of rocworker";

fn started(program: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(program);
    // A terminal that can go back in its line, wherever this test is started.
    command.env("TERM", "xterm");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Reads until `words` have come, and gives back what came so far.
fn until(stream: &mut impl Read, words: &str) -> String {
    let mut said = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 {
        said.push(byte[0]);
        if said.ends_with(words.as_bytes()) {
            break;
        }
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.ends_with(words), "{said:?} lacks {words:?}");
    said
}

fn rest(stream: &mut impl Read) -> String {
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn in_a_pipe_what_is_waited_for_is_a_line_on_stderr() {
    for options in [&[][..], &["--output", "json", "-v"]] {
        let (dir, lock) = locked();
        let top = dir.path().to_str().unwrap();
        let mut run = started(PROGRAM, &[&["--root", top, "undo"], options].concat());
        // Nothing is rocworker's here: undo takes no lock, and says nothing.
        assert_eq!(rest(run.stderr.as_mut().unwrap()), "");
        assert!(run.wait().unwrap().success());

        let mut run = started(PROGRAM, &[&["--root", top, "apply"], options].concat());
        let stderr = run.stderr.as_mut().unwrap();
        let said = until(stderr, "/lock\n");
        let held = dir.path().join("var/lib/rocworker/lock");
        assert_eq!(said, format!("{WAITING}, which has {}\n", held.display()));
        drop(lock);
        let out = rest(run.stdout.as_mut().unwrap());
        run.wait().unwrap();
        assert!(out.contains("/etc/cdi/amd.json"), "{out}");
        assert!(!out.contains("waiting"), "the answer is an answer: {out}");
    }
}

#[test]
fn a_program_that_asks_for_json_hears_of_steps_with_v_only() {
    let (dir, lock) = locked();
    let top = dir.path().to_str().unwrap();
    let mut run = started(PROGRAM, &["--root", top, "--output", "json", "apply"]);
    // The program has come to the lock once it has the file open.
    let fds = format!("/proc/{}/fd", run.id());
    let is_at_it = || {
        let fds = fs::read_dir(&fds).unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        fds.into_iter().any(|path| path.ends_with("rocworker/lock"))
    };
    while !is_at_it() {
        std::thread::yield_now();
    }
    drop(lock);
    assert_eq!(rest(run.stderr.as_mut().unwrap()), "");
    let answer: serde_json::Value = serde_json::from_str(&rest(run.stdout.as_mut().unwrap())).unwrap();
    assert_eq!(answer["schema_version"], 1);
    run.wait().unwrap();
}

#[test]
fn real_on_a_terminal_a_line_is_drawn_over_itself_and_goes_before_the_answer() {
    if !real::require(&["script"]) {
        return;
    }
    let (dir, lock) = locked();
    // script(1) runs the program on a terminal of its own, and copies what comes there.
    let top = dir.path().to_str().unwrap();
    let command = format!("{PROGRAM} --root {top} apply");
    let mut run = started("script", &["--quiet", "--return", "--command", &command, "/dev/null"]);
    let stdout = run.stdout.as_mut().unwrap();
    // The spinner lives: it is drawn again, after going back to the line's beginning, and no line is begun.
    until(stdout, WAITING);
    let again = until(stdout, WAITING);
    assert!(again.contains('\r') && !again.contains('\n'), "{again:?}");
    drop(lock);
    let answer = rest(stdout);
    // Erased (ECMA-48, EL) before the first change is written.
    let (before, after) = answer.split_once("/etc/udev/rules.d").unwrap();
    assert!(before.rsplit_once("\x1b[2K").is_some(), "{answer:?}");
    assert!(!after.contains("waiting"), "{answer:?}");
    run.wait().unwrap();

    // What takes no time shows nothing but its answer.
    let command = format!("{PROGRAM} --root {top} apply");
    let mut run = started("script", &["--quiet", "--return", "--command", &command, "/dev/null"]);
    let answer = rest(run.stdout.as_mut().unwrap());
    assert!(!answer.contains("\x1b[2K") && !answer.contains("\r\x1b"), "{answer:?}");
    run.wait().unwrap();
}
